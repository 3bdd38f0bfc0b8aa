import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Message } from '../../../client/core/shapes.ts';
import { Sealer } from '../../../src/storage/db/sealed.ts';
import { listen, type Listening } from '../../client/core/listening.ts';
import { joined } from '../../operations/conversation-calls.ts';
import { loadBackup, takeBackup } from '../../storage/backup/fixture.ts';
import { testConfig } from '../../support/config.ts';
import { callAs } from '../../support/call.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { Receiver } from '../../support/receiver.ts';
import { postJson, TestServer, type TestGroup } from '../../support/server.ts';

const databases: TestDatabase[] = [];
let server: TestServer;
let receiver: Receiver;
let group: TestGroup;
let path: string;
const listening: Listening[] = [];

beforeEach(async () => {
  receiver = await Receiver.start();
  const database = await newDatabase();
  server = await start(database, 0);
  group = await server.createGroup();
  path = `/v1/webhooks/${group.token}`;
});
afterEach(async () => {
  for (const { client } of listening.splice(0)) await client.stop();
  await server.stop();
  await receiver.stop();
  for (const database of databases.splice(0)) await database.drop();
});

async function newDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const database = await createTestDatabase(options);
  databases.push(database);
  return database;
}

function start(database: TestDatabase, port: number): Promise<TestServer> {
  const endpoint = { type: 'websocket', interface: '127.0.0.1', port, tls: null } as const;
  return TestServer.start({ endpoints: [endpoint] }, { database });
}

/** Stops the server, and starts another one on a database restored from the backup. */
async function restore(backup: Buffer, newEpochAbove = 0): Promise<void> {
  const { port } = server.endpoints[0]!;
  await server.stop();
  const database = await newDatabase({ empty: true });
  const secret = new Sealer(testConfig(database.target, '/nowhere').secret);
  await loadBackup(database.target, backup, secret, undefined, newEpochAbove);
  server = await start(database, port);
}

async function post(...texts: string[]): Promise<void> {
  for (const text of texts) expect(await postJson(server.url + path, { text })).toMatchObject({ status: 200 });
}

/** The texts that a receiver handles if it skips the ids that it has already got. */
function textsByNewIds(): string[] {
  const seen = new Set<string>();
  return receiver.arrivals.flatMap(({ headers, body }) => {
    const id = String(headers['webhook-id']);
    if (seen.has(id)) return [];
    seen.add(id);
    return [body.data.message.text as string];
  });
}

async function follow(token: string): Promise<{ listening: Listening; texts: () => string[] }> {
  const one = await listen(server.endpoints[0]!.url, { token });
  listening.push(one);
  await one.heard('following');
  const messages = new Map<number, Message>();
  return {
    listening: one,
    /**
     * The texts at a client that follows the protocol: a later state replaces an earlier one, and lost changes
     * disappear.
     */
    texts: () => {
      messages.clear();
      for (const event of one.events) {
        if (event.type === 'reset') for (const [seq, { rev }] of messages) if (rev > event.rev) messages.delete(seq);
        if (event.type === 'change' && event.change.message !== undefined)
          messages.set(event.change.message.seq, event.change.message);
      }
      return [...messages].sort(([a], [b]) => a - b).map(([, { text }]) => text);
    },
  };
}

test('receivers that know ids and clients that follow get every message that is posted after a restore', async () => {
  const alice = await joined(server, 'alice', group.id);
  expect(await postJson(`${server.url + path}/reverse`, { url: receiver.url() })).toMatchObject({ status: 201 });
  const client = await follow(alice.token);
  await post('one', 'two');
  await receiver.received(2);
  const { bytes } = await takeBackup(server.database.target);
  await post('lost three', 'lost four', 'lost five');
  await receiver.received(5);
  await client.listening.heard('change', 5);

  await restore(bytes);
  // Posts as many messages as were lost: they get the same seqs as the lost ones.
  await post('new three', 'new four', 'new five');
  const all = ['one', 'two', 'lost three', 'lost four', 'lost five', 'new three', 'new four', 'new five'];
  expect(
    await eventually(
      async () => textsByNewIds(),
      (texts) => texts.length >= all.length,
    ),
  ).toEqual(all);
  const kept = ['one', 'two', 'new three', 'new four', 'new five'];
  await eventually(
    async () => client.texts(),
    (texts) => texts.join() === kept.join(),
  );

  // A second restore of the same backup also loses the messages that were posted after the first restore.
  const [before] = await server.database.query((sql) => sql`select value from setting where name = 'log_epoch'`);
  await restore(bytes, Number(before!['value']));
  await post('newest three');
  await eventually(
    async () => textsByNewIds(),
    (texts) => texts.includes('newest three'),
  );
  await eventually(
    async () => client.texts(),
    (texts) => texts.join() === 'one,two,newest three',
  );
});

/**
 * A receiver that compares pairs of epoch and number, as docs/reverse-webhooks.md describes. It skips deliveries whose
 * pair does not exceed the last one.
 */
class ComparingReceiver {
  /** The newest state of each message, by its id. */
  readonly states = new Map<string, { rank: Rank; text: string }>();
  #lastMessage: Rank = [0, 0];
  #lastEvent: Rank = [0, 0];

  // oxlint-disable-next-line typescript/no-explicit-any -- what arrived, as it is
  take({ type, data }: any): void {
    const { message } = data;
    const isMessage = type === 'message.created';
    const rank: Rank = isMessage ? [message.epoch ?? 0, message.seq] : [data.epoch ?? 0, data.rev];
    if (!isNewer(rank, isMessage ? this.#lastMessage : this.#lastEvent)) return;
    if (isMessage) this.#lastMessage = rank;
    else this.#lastEvent = rank;
    const state = { rank: [message.rev_epoch ?? 0, message.rev] as Rank, text: message.text as string };
    const known = this.states.get(message.id as string);
    if (known === undefined || isNewer(state.rank, known.rank)) this.states.set(message.id as string, state);
  }
}

type Rank = readonly [epoch: number, number: number];
const isNewer = (a: Rank, b: Rank): boolean => a[0] > b[0] || (a[0] === b[0] && a[1] > b[1]);

test('a receiver that compares epochs and numbers takes every change that is made after a restore', async () => {
  const alice = await joined(server, 'alice', group.id);
  const registered = { url: receiver.url(), events: ['message.updated', 'message.deleted'] };
  expect(await postJson(`${server.url + path}/reverse`, registered)).toMatchObject({ status: 201 });
  const say = (text: string) => callAs(server, alice, 'messages.send', { conversation: group.id, text });
  const edit = (seq: number, text: string) =>
    callAs(server, alice, 'messages.edit', { conversation: group.id, seq, text });
  for (const text of ['one', 'two', 'three']) await say(text);
  await edit(1, 'one, edited');
  await receiver.received(4);
  const { bytes } = await takeBackup(server.database.target);
  await edit(2, 'two, and lost');
  await callAs(server, alice, 'messages.delete', { conversation: group.id, seq: 3 });
  await say('four, and lost');
  await edit(1, 'one, and lost');
  await receiver.received(8);

  await restore(bytes);
  await edit(2, 'two, anew');
  const four = await say('four, anew');
  await edit(4, 'four, edited anew');
  const taken = (): ComparingReceiver => {
    const comparing = new ComparingReceiver();
    for (const { body } of receiver.arrivals) comparing.take(body);
    return comparing;
  };
  const textOf = (id: string): string | undefined => taken().states.get(id)?.text;
  await eventually(
    async () => textOf(four.id),
    (text) => text === 'four, edited anew',
  );
  expect(textOf(`${group.id}:2`)).toBe('two, anew');
  // No delivery withdraws a state that was lost.
  expect(textOf(`${group.id}:4`)).toBe('four, and lost');
  expect(textOf(`${group.id}:1`)).toBe('one, and lost');
});
