import { PassThrough } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import type { Message } from '../../../client/core/shapes.ts';
import { noticeText } from '../../../client/core/notice-text.ts';
import { changeLines, jsonLine, messageLines } from '../../../client/terminal/chat-text.ts';
import { moodPaint } from '../../../client/terminal/mood-colours.ts';
import { sanitize } from '../../../client/core/safe-text.ts';
import { holdsInvisible } from '../../../src/model/invisible-text.ts';

const now = new Date('2026-11-20T12:00:00Z');
const place = { name: 'Lobby', now, paint: (mood: string, text: string) => `<${mood}>${text}</>` };
const alice = { id: 5, name: 'Alice', nick: 'alice', kind: 'user' };

function message(changes: Partial<Message> = {}): Message {
  return { id: '7:42', seq: 42, rev: 43, sender: alice, text: 'hello', sent_at: now.toISOString(), ...changes };
}

/** The lines that show a message, without its time, which depends on the time zone of the test. */
const shown = (changes: Partial<Message>): string[] =>
  messageLines(message(changes), place).map((line) => line.replace(/^\d\d:\d\d /, ''));

describe("others' text on a terminal", () => {
  test.each([
    ['commands', 'a\u001b[2Jb\u009b1mc\u0007', 'a [2Jb 1mc '],
    ['line breaks', 'a\r\nb\u2028c\u0085d', 'a  b c d'],
    ['turned directions', 'a\u202eb\u2066c\u200fd\u061ce', 'a\ufffdb\ufffdc\ufffdd\ufffde'],
    ['what is not seen', 'a\u200bb\ufeffc\u{e0041}d\u3164e', 'a\ufffdb\ufffdc\ufffdd\ufffde'],
  ])('holds no %s', (_, text, safe) => {
    expect(sanitize(text)).toBe(safe);
  });

  test('hides each character that the server removes, and no other', () => {
    const characters = Array.from({ length: 0x11_0000 }, (_, code) => String.fromCodePoint(code));
    const whole = characters.filter((character) => character.isWellFormed());
    expect(whole.filter((each) => (sanitize(each) !== each) !== holdsInvisible(each))).toEqual([]);
  });

  test('keeps other scripts and joined emoji as they are', () => {
    for (const text of ['Привет', 'שלום', 'نمی‌خواهم', '👩‍💻', 'naïve']) expect(sanitize(text)).toBe(text);
  });

  test('as JSON has them escaped, so that it reads back as it was', () => {
    const value = { text: 'a\u001b[2J\u009b\u202e\u2028\u{e0041}"ü' };
    expect(jsonLine(value)).toMatch(/^[\u0020-\u007eü]+$/);
    expect(JSON.parse(jsonLine(value))).toEqual(value);
  });
});

describe('a message', () => {
  test('is a line, and lines of its own are set off', () => {
    expect(shown({})).toEqual(['Lobby #42 alice: hello']);
    expect(shown({ text: 'one\n12:00 Lobby #43 bob: two\r\n\n' })).toEqual([
      'Lobby #42 alice: one',
      '    | 12:00 Lobby #43 bob: two',
      '    | ',
      '    | ',
    ]);
  });

  test('that was edited or deleted says so', () => {
    expect(shown({ edited_at: now.toISOString() })).toEqual(['Lobby #42 alice (edited): hello']);
    expect(shown({ deleted: true, text: '' })).toEqual(['Lobby #42 alice: (deleted)']);
  });

  test('of a machine cannot pass for a person', () => {
    const webhook = { id: 9, name: 'Lobby', nick: null, kind: 'webhook' };
    expect(shown({ sender: webhook, label: 'alice' })).toEqual(['Lobby #42 Lobby [WEBHOOK alice]: hello']);
    expect(shown({ sender: { ...alice, kind: 'bot' } })).toEqual(['Lobby #42 alice [BOT]: hello']);
  });

  test('has a line for each of its files, which no text can pass for', () => {
    const attachments = [{ id: 'x'.repeat(22), name: 'a\u001b[2J\n.pdf', type: 'application/pdf', size: 12_345 }];
    expect(shown({ text: '', attachments })).toEqual(['Lobby #42 alice:', `    [a [2J .pdf 12 KiB] ${'x'.repeat(22)}`]);
    expect(shown({ text: 'one\n[b.pdf 1 B]', attachments })[1]).toBe('    | [b.pdf 1 B]');
    expect(shown({ text: '', deleted: true, attachments })).toEqual(['Lobby #42 alice: (deleted)']);
  });

  test('shows the moods of its cards in their titles, and otherwise in its first line', () => {
    const cards = [{ title: 'Disk\u202e full', mood: 'danger' }, { title: 'Backup', mood: 'good' }, { title: 'Other' }];
    expect(shown({ text: 'See\n🔴 Disk\u202e full\nno room\n\nBackup\nOther', cards })).toEqual([
      'Lobby #42 alice: See',
      '    | <danger>🔴 Disk\ufffd full</>',
      '    | no room',
      '    | ',
      '    | <good>Backup</>',
      '    | Other',
    ]);
    expect(shown({ text: 'one\ntwo', cards: [{}, { mood: 'warning' }, { mood: 'good' }] })).toEqual([
      'Lobby #42 alice: <warning>one</>',
      '    | two',
    ]);
    expect(shown({ text: 'one', cards: [{ title: 'one' }] })).toEqual(['Lobby #42 alice: one']);
    expect(shown({ text: '', deleted: true, cards })).toEqual(['Lobby #42 alice: (deleted)']);
  });

  test('of another day has its date', () => {
    const [line] = messageLines(message({ sent_at: '2026-10-01T12:00:00Z' }), place);
    expect(line).toMatch(/^2026-10-01 \d\d:\d\d Lobby #42 /);
  });
});

describe('moods on a terminal', () => {
  const screen = (colorDepth: number): NodeJS.WriteStream =>
    Object.assign(new PassThrough(), { isTTY: true, getColorDepth: () => colorDepth }) as unknown as NodeJS.WriteStream;

  test.each([
    ['good', 32],
    ['info', 36],
    ['warning', 33],
    ['danger', 31],
  ])('%s has its colour where there are colours', (mood, colour) => {
    expect(moodPaint(screen(8))(mood, 'text')).toBe(`\u001b[${colour}mtext\u001b[39m`);
    expect(moodPaint(screen(1))(mood, 'text')).toBe('text');
    expect(moodPaint(new PassThrough())(mood, 'text')).toBe('text');
  });

  test('that are newer than the client have none', () => {
    for (const mood of ['furious', 'constructor', '\u001b[5m']) expect(moodPaint(screen(8))(mood, 'text')).toBe('text');
  });
});

describe('a notice', () => {
  test('is told in words', () => {
    const joined = { kind: 'joined', actor: alice, details: { account: 6, nick: 'bob' }, at: now.toISOString() };
    expect(noticeText(joined)).toBe('alice added bob');
    expect(noticeText({ ...joined, details: { account: 5, nick: 'alice' } })).toBe('alice joined');
    expect(changeLines({ rev: 1, notice: joined }, place)[0]).toMatch(/^\d\d:\d\d Lobby \* alice added bob$/);
  });

  test.each([
    [
      'removed',
      { token: 'seen', invites_seen: 2 },
      'alice removed bob; bob still knows the integration token and 2 open invitations',
    ],
    ['left', { invites_seen: 1 }, 'bob left; bob still knows 1 open invitation'],
    ['role', { role: 'member', token: 'seen' }, 'bob is member now; bob still knows the integration token'],
    ['removed', { token: 'rotated' }, 'alice removed bob'],
  ])('of kind %s with %j say what the account may still know', (kind, more, expected) => {
    const details = { account: 6, nick: 'bob', ...more };
    expect(noticeText({ kind, actor: alice, details, at: '' })).toBe(expected);
  });

  test.each([
    ['created', { title: 'Ops' }, 'alice created the group "Ops"'],
    ['created', {}, 'alice opened this conversation'],
    ['message_edited', { seq: 2 }, 'alice edited message #2 of another sender'],
    ['hook_added', { hook: 1, host: 'a.example' }, 'alice added the webhook to a.example'],
    ['hook_removed', { hook: 1, host: 'a.example' }, 'the webhook to a.example was removed'],
    ['hook_restored', { hook: 1, host: 'a.example' }, 'alice restored the webhook to a.example'],
    [
      'hook_parked',
      { hook: 1, host: 'a.example' },
      'the webhook to a.example is parked: its deliveries fail, and the server retries them',
    ],
  ])('of kind %s with %j is a sentence', (kind, details, expected) => {
    expect(noticeText({ kind, actor: alice, details, at: '' })).toBe(expected);
  });

  test.each([
    [{ first_lost_seq: 3, last_lost_seq: 4 }, 'the server lost messages #3 to #4; their numbers are given out again'],
    [{ first_lost_seq: null, last_lost_seq: null }, 'the server lost changes of this conversation'],
  ])('of lost history with %j says which messages are gone', (details, expected) => {
    expect(noticeText({ kind: 'history_lost', actor: null, details: { epoch: 1, ...details }, at: '' })).toBe(expected);
  });

  test('of a kind that is newer than the client is told by its name', () => {
    const details = { colour: 'b\u001blue' };
    expect(noticeText({ kind: 'hue_changed', actor: null, details, at: '' })).toBe('hue changed (colour b lue)');
  });
});
