import { describe, expect, test } from '@jest/globals';
import { excerpt, firstLine, readGitEvent, type GitEventReader } from '../../src/callers/core/git-event.ts';
import { isIgnored } from '../../src/callers/core/message-form.ts';
import { detectFormat } from '../../src/callers/formats.ts';

describe('an excerpt', () => {
  test.each([
    ['a<!-- hidden -->b', 'ab'],
    ['a<!-- no end', 'a'],
    ['a --> b', 'a --> b'],
    ['one\r\n\r\n\r\n\r\ntwo', 'one\n\ntwo'],
  ])('of %j is %j', (text, expected) => expect(excerpt(text)).toBe(expected));

  test('of a long text ends within 500 characters, and costs nothing for what is behind it', () => {
    expect(excerpt('word '.repeat(200))).toHaveLength(500);
    const started = performance.now();
    expect(excerpt('<!--'.repeat(250_000))).toBe('');
    expect(excerpt('<!-- -->'.repeat(100_000))).toBe('');
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});

test('the first line of a text ends at any end of a line, and after 200 characters', () => {
  expect(firstLine('\n Fix the door \r\n\r\nIt squeaks')).toBe('Fix the door');
  expect(firstLine('x'.repeat(201))).toBe(`${'x'.repeat(199)}…`);
});

describe('the filters of an address', () => {
  const readers = new Map<string, GitEventReader>([
    ['push', () => ({ summary: 'pushed', repositoryOrOrg: 'a/b', branch: 'release/1' })],
    ['issues', ({ action }) => (action === 'opened' ? { summary: 'opened', repositoryOrOrg: 'a/b' } : null)],
  ]);
  const isShown = (name: string, action: string, query: string): boolean =>
    !isIgnored(
      readGitEvent({ body: { action }, headers: {}, query: new URLSearchParams(query) }, { name, action }, readers),
    );

  test.each([
    ['push', '', '', true],
    ['push', '', 'events=issues', false],
    ['push', '', 'events=issues,pu*', true],
    ['push', '', 'branches=main', false],
    ['push', '', 'branches=main,release/*', true],
    ['issues', 'opened', 'branches=main', true],
    ['issues', 'opened', 'events=issues', true],
    ['issues', 'opened', 'events=issues.opened', true],
    ['issues', 'opened', 'events=issues.closed', false],
    ['issues', 'labeled', 'events=issues.*', false],
  ])('%s %s with "%s": %s', (name, action, query, expected) => expect(isShown(name, action, query)).toBe(expected));
});

describe('the headers of Gitea and GitHub', () => {
  const headers = { 'x-gitea-event': 'push', 'x-gogs-event': 'push', 'x-github-event': 'push' };
  test.each([
    ['Slack', { channel: '#a', text: '[a/b] 1 new commit', username: 'gitea', attachments: [{ text: 'x' }] }],
    ['Discord', { content: '', embeds: [{ title: 'x' }] }],
    ['Teams', { '@type': 'MessageCard', title: 'x', sections: [] }],
    ['Telegram', { message: 'x', parse_mode: 'HTML' }],
  ])('do not make a body in the format of %s an event', (_, body) => {
    const format = detectFormat({ body, headers, query: new URLSearchParams() });
    expect(['gitea', 'github']).not.toContain(format?.name);
  });
});
