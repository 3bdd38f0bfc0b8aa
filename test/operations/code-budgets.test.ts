import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ConfigChanges } from '../support/config.ts';
import { TestMailServer } from '../support/mail-server.ts';
import { createPerson } from '../support/people.ts';
import { recordingLog } from '../support/recording-log.ts';
import { TestServer } from '../support/server.ts';

const ALICE = 'alice@example.org';
const HOME = '2001:db8:a11c::1';

let mail: TestMailServer;
let server: TestServer;
let log: string[];
beforeEach(async () => {
  mail = await TestMailServer.start();
});
afterEach(async () => {
  await server.stop();
  await mail.stop();
});

async function startServer(limits: ConfigChanges['limits'], registration: 'open' | 'invite' = 'open'): Promise<void> {
  log = [];
  const http = { trustedProxies: ['127.0.0.1'] };
  const changes = { registration, smtp: mail.config(), http, limits: limits ?? {} };
  server = await TestServer.start(changes, { log: recordingLog(log) });
  await createPerson(server, 'alice');
  await server.operate('accounts.update', { user: 'alice', address: ALICE });
}

/** Requests a code for `address`, from the network address `source`. Resolves with the status. */
async function ask(source: string, address: string): Promise<number> {
  const { status } = await fetch(`${server.url}/v1/api/auth.start`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': source },
    body: JSON.stringify({ address }),
  });
  return status;
}

const aMinutePasses = () =>
  server.database.query((sql) => sql`update activation set sent_at = sent_at - interval '61 s'`);

/** The addresses to which a code was sent or is about to be sent. */
async function sentTo(): Promise<string[]> {
  const rows = await server.database.query(
    (sql) => sql<{ address: string }[]>`select address from activation where sends_code order by address`,
  );
  return rows.map(({ address }) => address);
}

describe('codes for an account', () => {
  test('are sent though strangers have used up theirs, and no answer tells them apart', async () => {
    await startServer({ codesPerHourPerBudget: 2 });
    for (const name of ['a', 'b', 'c', 'd']) expect(await ask(HOME, `${name}@example.org`)).toBe(200);
    expect(await ask(HOME, ALICE)).toBe(200);
    await mail.letterTo(ALICE);
    expect(await sentTo()).toEqual(['a@example.org', ALICE, 'b@example.org']);
    expect(log.filter((line) => line.includes('codes are not sent'))).toHaveLength(1);
  });

  test('are sent though somebody else has asked for all that one network may have', async () => {
    await startServer({ dailyCodesPerAddressAndNetwork: 5 });
    for (let n = 0; n < 5; n += 1) {
      // Each request comes from another network address of the same site.
      expect(await ask(`2001:db8:bad:${n}::1`, ALICE)).toBe(200);
      await aMinutePasses();
    }
    expect(await ask('2001:db8:bad:5::1', ALICE)).toBe(429);
    expect(await ask(HOME, ALICE)).toBe(200);
  });

  test('are sent though somebody else asked for one a moment ago', async () => {
    await startServer({});
    expect(await ask('192.0.2.1', ALICE)).toBe(200);
    expect(await ask('192.0.2.1', ALICE)).toBe(429);
    expect(await ask(HOME, ALICE)).toBe(200);
  });

  test('are bounded for all networks together', async () => {
    await startServer({ dailyCodesPerAddressAndNetwork: 1 });
    for (const n of [1, 2, 3, 4]) expect(await ask(`192.0.2.${n}`, ALICE)).toBe(200);
    expect(await ask('192.0.2.5', ALICE)).toBe(429);
  });
});

test('a /48 of IPv6 begins no more than four of its networks may, and another one is not concerned', async () => {
  await startServer({ codesPerSourcePerHour: 2 });
  const statuses = [];
  for (let n = 0; n < 9; n += 1) statuses.push(await ask(`2001:db8:bad:${n}::1`, `n${n}@example.org`));
  expect(statuses).toEqual([...Array<number>(8).fill(200), 429]);
  expect(await ask('2001:db8:bad:0::1', 'other@example.org')).toBe(429);
  expect(await ask(HOME, ALICE)).toBe(200);
});

test('requests for which nothing is sent shut nobody out, and their rows are bounded', async () => {
  await startServer({ codesPerHourPerBudget: 1 }, 'invite');
  await server.database.query(
    (sql) => sql`
      insert into activation (transaction_hash, provider, kind, address, source_hash, network_hash, sends_code,
        attempts_left, sent_at, expires_at)
      select n::text, 'email', 'email', n::text, n::text, n::text, false, 3, now() - n * interval '1 s', now() + interval '1 day'
      from generate_series(1, 100) n`,
  );
  expect(await ask(HOME, 'nobody@example.org')).toBe(200);
  expect(await ask(HOME, ALICE)).toBe(200);
  await mail.letterTo(ALICE);
  const unsent = await server.database.query(
    (sql) => sql<{ address: string }[]>`select address from activation where not sends_code order by sent_at`,
  );
  const addresses = unsent.map(({ address }) => address);
  expect([addresses.length, addresses[0], addresses.at(-1)]).toEqual([100, '99', 'nobody@example.org']);
});
