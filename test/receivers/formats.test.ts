import { describe, expect, test } from '@jest/globals';
import { ntfy as readNtfy } from '../../src/callers/ntfy.ts';
import { isIgnored } from '../../src/callers/core/message-form.ts';
import { renderText } from '../../src/callers/core/render-text.ts';
import type { ReceiverMessage } from '../../src/receivers/core/receiver-format.ts';
import { discord } from '../../src/receivers/discord.ts';
import { mattermost } from '../../src/receivers/mattermost.ts';
import { ntfy } from '../../src/receivers/ntfy.ts';
import { slack } from '../../src/receivers/slack.ts';

const ada = { id: 3, name: 'Ada Lovelace', nick: 'ada', kind: 'user', label: null, iconUrl: null } as const;
const grafana = {
  id: 2,
  name: 'Webhook',
  nick: null,
  kind: 'webhook',
  label: 'Grafana',
  iconUrl: 'https://grafana.example/icon.png',
} as const;

function message(changes: Partial<ReceiverMessage> = {}): ReceiverMessage {
  return {
    id: '7:42',
    sentAt: new Date('2026-11-21T10:00:00.123Z'),
    text: '!deploy web & <db>',
    trigger: '!',
    files: [],
    group: { id: 7, title: 'Ops' },
    sender: ada,
    ...changes,
  };
}

const photo = { id: 'f1', name: 'graph.png', url: 'https://chat.example/v1/files/f1?signature=s' };
const hook = (url: string) => ({ url: new URL(url), token: 'abcdef0123456789abcdef0123' });

describe('mattermost', () => {
  test('sends the form of an outgoing webhook', () => {
    const body = mattermost.body(message({ files: [photo, { ...photo, id: 'f2' }] }), hook('https://bot.example/hook'));
    expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
      token: 'abcdef0123456789abcdef0123',
      team_id: 'klatch',
      team_domain: 'klatch',
      channel_id: '7',
      channel_name: 'Ops',
      timestamp: '1795255200',
      user_id: '3',
      user_name: 'ada',
      post_id: '7:42',
      text: '!deploy web & <db>',
      trigger_word: '!',
      file_ids: 'f1,f2',
    });
  });

  test.each([
    ['a text', { text: 'pong' }, 'pong'],
    ['attachments', { attachments: [{ title: 'Build', text: 'is *green*', color: 'good' }] }, '🟢 Build\nis *green*'],
    [
      'blocks',
      { blocks: [{ type: 'section', text: { type: 'mrkdwn', text: 'from <https://a.example|A>' } }] },
      'from A (https://a.example)',
    ],
    ['a text that is longer than may be posted', { text: 'a'.repeat(300) }, `${'a'.repeat(93)}… (cut)`],
  ])('reads a reply with %s', (_what, answer, text) => {
    expect(mattermost.readReply!(answer, 100)).toMatchObject({ text, label: null, iconUrl: null });
  });

  test('reads who replies', () => {
    const answer = {
      text: 'pong',
      username: 'Ping bot',
      icon_url: 'https://bot.example/icon.png',
      response_type: 'comment',
    };
    expect(mattermost.readReply!(answer, 100)).toEqual({
      text: 'pong',
      cardsJson: null,
      label: 'Ping bot',
      iconUrl: 'https://bot.example/icon.png',
    });
  });

  test.each([
    {},
    { text: '' },
    { text: null },
    { text: 5, attachments: 'none' },
    { goto_location: 'https://a.example' },
  ])('takes %j for an answer that says nothing, or for what it says', (answer) => {
    expect(mattermost.readReply!(answer, 100)?.text ?? '').toBe(answer.text === 5 ? '5' : '');
  });
});

describe('ntfy', () => {
  const topic = hook('https://ntfy.sh/mytopic');
  const read = (body: string): Record<string, unknown> => JSON.parse(body) as Record<string, unknown>;

  test('publishes as JSON at the root of the topic, with its query', () => {
    expect(ntfy.requestUrl(new URL('https://ntfy.sh/mytopic?auth=QmVhcmVy'))).toBe('https://ntfy.sh/?auth=QmVhcmVy');
    expect(ntfy.requestUrl(new URL('https://chat.example/ntfy/mytopic'))).toBe('https://chat.example/ntfy/');
    expect(read(ntfy.body(message(), topic))).toEqual({
      topic: 'mytopic',
      title: 'Ada Lovelace · Ops',
      message: '!deploy web & <db>',
      priority: 3,
    });
  });

  test('is as loud as the mark of an alert, and opens its first link', () => {
    const text = '🔴 HighCPU (1 firing)\nsee http://prometheus.example/graph?g0.expr=cpu.\nhttp://b.example';
    expect(read(ntfy.body(message({ text, sender: grafana }), topic))).toEqual({
      topic: 'mytopic',
      title: 'Grafana · Ops',
      message: text,
      priority: 5,
      tags: ['rotating_light'],
      click: 'http://prometheus.example/graph?g0.expr=cpu',
    });
    expect(read(ntfy.body(message({ text: '🟠 Slow' }), topic))).toMatchObject({ priority: 4, tags: ['warning'] });
    expect(read(ntfy.body(message({ text: '🟢 Fine' }), topic))).toMatchObject({
      priority: 3,
      tags: ['white_check_mark'],
    });
  });

  test('names the group alone for a webhook without a name', () => {
    const sender = { ...grafana, label: null };
    expect(read(ntfy.body(message({ sender }), topic))).toMatchObject({ title: 'Ops' });
  });

  test.each([
    ['emoji', '😀'.repeat(10_000)],
    ['quotes', '"'.repeat(40_000)],
    ['control characters', '\u0001'.repeat(40_000)],
  ])('cuts %s so that ntfy takes them as a message', (_what, text) => {
    const title = '"'.repeat(500);
    const body = ntfy.body(message({ text, group: { id: 7, title } }), topic);
    const sent = read(body)['message'] as string;
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(8_192);
    expect(Buffer.byteLength(sent)).toBeLessThanOrEqual(4_096);
    expect(sent.endsWith('… (cut)')).toBe(true);
    expect(sent.isWellFormed()).toBe(true);
    expect(sent).not.toContain('\ufffd');
  });

  test.each([
    'https://ntfy.sh/',
    'https://ntfy.sh/topic/',
    'https://ntfy.sh/a%20b',
    `https://ntfy.sh/${'a'.repeat(65)}`,
  ])('has no topic in %s', (url) => {
    expect(ntfy.urlProblem(new URL(url))).toContain('https://ntfy.sh/mytopic');
  });

  test('says what a Klatch that gets it shows', () => {
    const body = read(ntfy.body(message({ text: 'disk full', sender: grafana }), topic));
    const form = readNtfy.read({ body, headers: {}, query: new URLSearchParams() });
    expect(isIgnored(form) ? '' : renderText(form)).toBe('Grafana · Ops\ndisk full');
  });
});

describe('discord', () => {
  const url = hook('https://discord.com/api/webhooks/1/secret?wait=true&thread_id=9');
  const read = (given: Partial<ReceiverMessage>): unknown => JSON.parse(discord.body(message(given), url));

  test('sends what an incoming webhook takes, which mentions nobody', () => {
    expect(discord.requestUrl(url.url)).toBe('https://discord.com/api/webhooks/1/secret?wait=true&thread_id=9');
    expect(read({ text: '@everyone look', files: [photo], sender: grafana })).toEqual({
      content: '@everyone look\ngraph.png: https://chat.example/v1/files/f1?signature=s',
      username: 'Grafana',
      avatar_url: 'https://grafana.example/icon.png',
      allowed_mentions: { parse: [] },
    });
  });

  test('cuts a long text with a mark, and no character in two', () => {
    const { content } = read({ text: '😀'.repeat(5_000) }) as { content: string };
    expect(content.length).toBeLessThanOrEqual(2_000);
    expect(content).toMatch(/^(?:😀)+… \(cut\)$/u);
  });

  test('sets a name that Discord refuses before the text', () => {
    expect(read({ sender: { ...ada, name: 'Clyde Barrow' } })).toEqual({
      content: 'Clyde Barrow: !deploy web & <db>',
      allowed_mentions: { parse: [] },
    });
  });
});

describe('slack', () => {
  test('sends what an incoming webhook takes, with its signs escaped', () => {
    const body = slack.body(message({ sender: grafana }), hook('https://hooks.slack.com/services/T/B/x'));
    expect(JSON.parse(body)).toEqual({
      text: '!deploy web &amp; &lt;db&gt;',
      username: 'Grafana',
      icon_url: 'https://grafana.example/icon.png',
    });
  });

  test('names a person without a picture', () => {
    const body = slack.body(message({ text: 'hi' }), hook('https://hooks.slack.com/services/T/B/x'));
    expect(JSON.parse(body)).toEqual({ text: 'hi', username: 'Ada Lovelace' });
  });
});
