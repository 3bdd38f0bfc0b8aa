import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { closeCodes } from '../../src/live/close-codes.ts';
import { eventually } from '../support/eventually.ts';
import { LiveFixture } from '../live/fixture.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/live-protocol.md'), 'utf8');

let live: LiveFixture | null = null;
afterEach(async () => {
  await live?.stop();
  live = null;
});

test('the two lines of the page, typed as they stand there, send a message', async () => {
  live = await LiveFixture.start();
  const block = /type:\n\n```\n([^]*?)```/.exec(page)![1]!;
  const typed = block.replace('kls_…', live.alice.token).replace('"conversation":1', `"conversation":${live.group.id}`);
  expect(typed.trim().split('\n')).toHaveLength(2);
  const reader = await live.follow(live.urls[0]);
  // The socket sends these bytes and nothing else, as nc does.
  const client = await live.connect(live.urls[2]);
  client.socket.write(typed);
  expect(await client.responseTo(2)).toMatchObject({ result: { id: expect.any(String) } });
  const third = /`(\{"jsonrpc":"2\.0","id":3[^`]*)`/.exec(page)![1]!;
  client.socket.write(`${third}\n`);
  expect(await client.responseTo(3)).toHaveProperty('result.conversations');
  const [change] = await eventually(
    () => reader.changes(live!.group.id),
    (changes) => changes.length > 0,
  );
  expect(change.message.text).toBe('Hello from nc');
});

test('the notification that the page shows has the keys that one has', async () => {
  live = await LiveFixture.start();
  const shown = JSON.parse(/```json\n([^]*?)\n```/.exec(page)![1]!);
  const client = await live.follow(live.urls[0]);
  await client.call('messages.send', { conversation: live.group.id, text: 'Hello' });
  const [change] = await eventually(
    () => client.of('conversation.change'),
    (changes) => changes.length > 0,
  );
  const keys = (value: object): string[] => Object.keys(value).toSorted();
  expect(keys(shown.params)).toEqual(keys(change!.params));
  expect(keys(shown.params.message)).toEqual(keys(change!.params.message));
  expect(keys(shown.params.message.sender)).toEqual(keys(change!.params.message.sender));
});

test('the page explains every code that a connection can be closed with', () => {
  const explained = [...page.matchAll(/^\| (\d{4}) \|/gm)].map(([, code]) => Number(code));
  expect(explained).toEqual(Object.values(closeCodes));
});
