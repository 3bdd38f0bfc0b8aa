import { describe, expect, test } from '@jest/globals';
import { renderText } from '../../src/callers/core/render-text.ts';
import { hasNtfyHeaders, readNtfyText } from '../../src/callers/ntfy.ts';

const textOf = (headers: Record<string, string>, text: string, query = ''): string =>
  renderText(readNtfyText({ headers, query: new URLSearchParams(query) }, text));

describe('a message of ntfy as plain text', () => {
  test('takes everything from headers where the body is empty, as borgmatic sends it', () => {
    const headers = {
      'x-title': 'A Borgmatic fail event happened',
      'x-message': 'Backup of /home\\nfailed',
      'x-priority': 'max',
      'x-tags': 'borgmatic,rotating_light',
    };
    expect(textOf(headers, '')).toBe('🚨 A Borgmatic fail event happened\nBackup of /home\nfailed\nTags: borgmatic');
  });

  test('takes the message from the body first', () =>
    expect(textOf({ title: 'Disk', 'x-message': 'ignored', prio: '5' }, 'The disk is full\n')).toBe(
      '🔴 Disk\nThe disk is full',
    ));

  test('reads short names, and the query', () =>
    expect(textOf({ ta: 'tada', click: 'https://a.example' }, 'Done', 't=Backup&priority=high')).toBe(
      '🎉 Backup\nhttps://a.example\nDone',
    ));

  test('links what is attached, and shows the actions that open an address', () => {
    const headers = {
      attach: 'https://a.example/log.txt',
      actions:
        '[{"action":"view","label":"Open","url":"https://a.example"},{"action":"http","url":"https://b.example"}]',
    };
    expect(textOf(headers, 'Done')).toBe('Done\nOpen: https://a.example\nAttachment: https://a.example/log.txt');
  });

  test('does not take the priority of RFC 9218 for one of ntfy', () =>
    expect(textOf({ priority: 'u=4, i', p: '4' }, 'Done')).toBe('🟠 Done'));

  test('has a key where it updates an earlier one', () => {
    const form = readNtfyText({ headers: { 'x-sequence-id': 'backup' }, query: new URLSearchParams() }, '40 %');
    expect(form.alert).toEqual({ key: 'backup', state: 'firing', alerts: [], isReplacement: true });
  });

  test('says what ntfy says where there is nothing else', () => expect(textOf({ tags: '' }, '')).toBe('triggered'));
});

test.each([
  [{ 'x-title': 'a' }, true],
  [{ title: 'a' }, true],
  [{ 'x-message': 'a' }, true],
  [{ tags: 'a' }, true],
  [{ 'x-title': ' ' }, false],
  [{ priority: 'u=1, i' }, false],
  [{ 'user-agent': 'curl/8' }, false],
])('knows a message of ntfy by its headers: %j', (headers, isNtfy) => expect(hasNtfyHeaders(headers)).toBe(isNtfy));
