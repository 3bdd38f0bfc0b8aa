import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { Receiver, type Arrival } from '../../support/receiver.ts';
import { postJson, type TestGroup } from '../../support/server.ts';
import { ServerProcess } from '../../support/server-process.ts';
import { endSessions, holdOpen, isWaiting, lockHead, until } from '../../storage/fixture.ts';
import type { ConversationId } from '../../../src/model/ids.ts';

function answer({ body }: Pick<Arrival, 'body'>, res: ServerResponse): void {
  res.end(JSON.stringify({ text: `pong to ${body.text as string}` }));
}

let database: TestDatabase;
let receiver: Receiver;
let server: ServerProcess;
let group: TestGroup;
let hookId: number;

beforeEach(async () => {
  database = await createTestDatabase();
  receiver = await Receiver.start(answer);
  const { host, port, user, database: db } = database.target;
  server = await ServerProcess.create(`
    services.postgresql { embedded = false, host = "${host}", port = ${port}, user = "${user}", db = "${db}", unsafe = true }
    services.file-storage.location = "${database.filesFolder}"
    delivery.retry = [300ms]`);
  await server.start();
  group = await server.createGroup('Ops');
  const options = { format: 'mattermost', triggers: ['!'], skip: [], max_age: null };
  const { body } = await postJson(`${group.webhook}/reverse`, { url: receiver.url(), ...options });
  hookId = body.id;
});
afterEach(async () => {
  await server.discard();
  await receiver.stop();
  await database.drop();
});

const texts = async (): Promise<string[]> => {
  const rows = await database.query(
    (sql) => sql<{ text: string }[]>`select text from message where conversation_id = ${group.id} order by seq`,
  );
  return rows.map(({ text }) => text);
};

const pending = async (): Promise<number> =>
  (await server.operate<{ pending: number }>('hooks.info', { hook: hookId })).pending;

async function killAndRestart(): Promise<void> {
  await server.end('SIGKILL');
  await server.start();
}

test('a kill between the answer and the commit of the reply costs no reply, and doubles none', async () => {
  await postJson(group.webhook, { text: '!one' });
  await eventually(texts, (found) => found.length === 2);
  await postJson(group.webhook, { text: 'talk' });
  // The reply gets no seq while another session has locked the head of the group.
  receiver.answer = async ({ body }, res) => {
    receiver.answer = answer;
    const head = await lockHead(database.target, group.id as ConversationId);
    answer({ body }, res);
    await until(database, (sql) => isWaiting(sql, 'intake'));
    await server.end('SIGKILL');
    await endSessions(database, 'intake');
    await head.release();
  };
  await postJson(group.webhook, { text: '!two' });
  await eventually(
    () => server.running,
    (running) => !running,
  );
  await server.start();
  await eventually(texts, (found) => found.length === 5);
  await eventually(pending, (count) => count === 0);
  expect(await texts()).toEqual(['!one', 'pong to !one', 'talk', '!two', 'pong to !two']);
});

test('a kill between the reply and the settlement of its delivery repeats the delivery, and the reply is there once', async () => {
  for (const n of [1, 2, 3]) {
    // The delivery cannot be settled while another session has locked the row of the hook.
    const hook = await holdOpen(database.target, (tx) => tx`select from reverse_hook where id = ${hookId} for update`);
    const before = receiver.arrivals.length;
    await postJson(group.webhook, { text: `!${n}` });
    await eventually(texts, (found) => found.length === 2 * n);
    await server.end('SIGKILL');
    await endSessions(database, 'settle');
    await hook.release();
    await server.start();
    await receiver.received(before + 2);
    await eventually(pending, (count) => count === 0);
  }
  expect(receiver.arrivals.map(({ body }) => body.text)).toEqual(['!1', '!1', '!2', '!2', '!3', '!3']);
  expect(await texts()).toEqual(['!1', 'pong to !1', '!2', 'pong to !2', '!3', 'pong to !3']);
});

test('a kill while the bot is at work repeats the command, whose reply is there once', async () => {
  receiver.answer = async () => {
    receiver.answer = answer;
    await server.end('SIGKILL');
  };
  await postJson(group.webhook, { text: '!one' });
  await eventually(
    () => server.running,
    (running) => !running,
  );
  await killAndRestart();
  await eventually(texts, (found) => found.length === 2);
  await eventually(pending, (count) => count === 0);
  expect(await texts()).toEqual(['!one', 'pong to !one']);
});
