import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { ConversationId } from '../../src/model/ids.ts';
import { Sealer } from '../../src/storage/db/sealed.ts';
import { sha256 } from '../storage/fixture.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { postJson, type TestGroup } from '../support/server.ts';
import { SECRET, ServerProcess } from '../support/server-process.ts';
import { FcmServer } from './fcm-server.ts';
import { createServiceAccount, type TestAccount } from './keys.ts';

const DEVICES = 1_000;
const IN_FLIGHT = 50;

let database: TestDatabase;
let account: TestAccount;
let fcm: FcmServer;
let server: ServerProcess;
let group: TestGroup;
beforeEach(async () => {
  database = await createTestDatabase();
  account = createServiceAccount();
  fcm = await FcmServer.start([account]);
  const { host, port, user, database: db } = database.target;
  server = await ServerProcess.create(`
    services.postgresql { embedded = false, host = "${host}", port = ${port}, user = "${user}", db = "${db}", unsafe = true }
    services.file-storage.location = "${database.filesFolder}"
    services.google.push {
      keys = [{ project-id = "${account.projectId}", key = ${JSON.stringify(account.json)} }]
      endpoint = "${fcm.endpoint}", token-endpoint = "${fcm.tokenEndpoint}"
    }
    push { debounce = 200ms, timeout = 6s, in-flight = ${IN_FLIGHT} }`);
  await server.start();
  group = await server.createGroup('Lobby');
  await makeDevices(group.id as ConversationId);
});
afterEach(async () => {
  await server.discard();
  await fcm.stop();
  await database.drop();
});

/** Inserts members with a device each into the database. */
async function makeDevices(group: ConversationId): Promise<void> {
  const sealer = new Sealer(SECRET);
  const tokens = Array.from({ length: DEVICES }, (_, index) => `token-${index}`);
  await database.query(
    (sql) => sql`
    with given as (
      select * from unnest(
        ${tokens}::text[], ${tokens.map(sha256)}::text[],
        ${tokens.map((token) => sealer.seal('device-token', token))}::text[]) as g(token, hash, sealed)
    ), person as (
      insert into account (kind, nick, name) select 'user', token, token from given returning id, nick
    ), joined as (
      insert into membership (conversation_id, account_id, role) select ${group}, id, 'member' from person
    ), signed_in as (
      insert into session (account_id, token_hash, label)
      select p.id, g.hash, 'test' from person p join given g on g.token = p.nick returning id, account_id, token_hash
    )
    insert into device (account_id, session_id, kind, token_hash, token_sealed)
    select s.account_id, s.id, 'google', g.hash, g.sealed from signed_in s join given g on g.hash = s.token_hash`,
  );
}

/** By device: the last seq of each push. */
function pushedSeqs(): Map<string, number[]> {
  const seqs = new Map<string, number[]>();
  for (const { message } of fcm.pushes) {
    const own = seqs.get(message.token) ?? [];
    seqs.set(message.token, [...own, Number(message.data.last_seq ?? message.data.seq)]);
  }
  return seqs;
}

const post = async (text: string): Promise<void> => {
  const { status } = await postJson(group.webhook, { text });
  expect(status).toBe(200);
};

test('a server that is killed in the middle of 1,000 pushes sends each of them, and a second time only what was under way', async () => {
  // Requests take so long that the kill interrupts many of them.
  fcm.script = async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
  };
  await post('hello');
  await eventually(
    () => fcm.pushes.length,
    (count) => count >= DEVICES / 3,
  );
  await server.end('SIGKILL');
  const before = fcm.pushes.length;
  expect(before).toBeLessThan(DEVICES);
  await server.start();
  await eventually(
    () => pushedSeqs().size,
    (count) => count === DEVICES,
  );
  const twice = [...pushedSeqs().values()].filter((seqs) => seqs.length > 1);
  // Two kinds of pushes can come twice: those in flight, and those that were answered but not settled yet. The limit of
  // requests in flight bounds the number of each.
  expect(twice.length).toBeLessThanOrEqual(2 * IN_FLIGHT);
  expect([...pushedSeqs().values()].every((seqs) => seqs.length <= 2)).toBe(true);
  // The server is killed at its answer to the post, before the queue has processed the message.
  await post('again');
  await server.end('SIGKILL');
  await server.start();
  await eventually(
    () => [...pushedSeqs().values()].filter((seqs) => seqs.at(-1) === 2).length,
    (count) => count === DEVICES,
  );
  const left = await eventually(
    () => database.query((sql) => sql`select from push_pending`),
    (rows) => rows.length === 0,
  );
  expect(left).toHaveLength(0);
});
