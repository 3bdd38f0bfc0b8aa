import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { signIn } from '../support/people.ts';
import type { LiveClient } from './client.ts';
import { LiveFixture } from './fixture.ts';

const HOUR_MS = 3_600_000;
const SESSION_ENDED = 4002;

let live: LiveFixture;
beforeEach(async () => {
  live = await LiveFixture.start();
});
afterEach(async () => {
  jest.restoreAllMocks();
  await live.stop();
});

/** Creates a session of alice that expires after this time; resolves with its token. */
async function sessionFor(ms: number): Promise<string> {
  const { token, session } = await signIn(live.server, live.alice.id);
  await live.server.database.query(
    (sql) => sql`
      update session set expires_at = clock_timestamp() + ${ms} * interval '1 millisecond' where id = ${session}`,
  );
  return token;
}

/**
 * Signs a client in and subscribes it, with a session that expires soon, but not before that. The lifetime doubles
 * until this machine is fast enough.
 */
async function followBriefly(): Promise<LiveClient> {
  for (let ms = 1_000; ; ms *= 2) {
    try {
      return await live.follow(live.urls[0], await sessionFor(ms));
    } catch (error) {
      if (ms > HOUR_MS) throw error;
    }
  }
}

describe('a session that expires', () => {
  test('ends its connection then, without being looked up', async () => {
    const client = await followBriefly();
    // While this lock is held, no look-up of a session gets an answer.
    await live.server.database.query((sql) =>
      sql.begin(async (tx) => {
        await tx`lock table session in access exclusive mode`;
        await eventually(
          () => client.code,
          (code) => code === SESSION_ENDED,
        );
      }),
    );
    expect(client.reason).toBe('This session has ended: sign in again');
  });

  test('has no request answered after that, though its timer is late', async () => {
    const client = await live.signIn(live.urls[0], await sessionFor(HOUR_MS));
    await client.call('live.ping');
    const answered = client.texts.length;
    const now = Date.now();
    // The wall clock jumps by two hours, which does not affect the timer of the session.
    jest.spyOn(Date, 'now').mockImplementation(() => now + 2 * HOUR_MS);
    client.send(JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'profile.get', params: {} }));
    expect(await client.ended()).toBe(SESSION_ENDED);
    expect(client.texts.slice(answered).map((text) => JSON.parse(text).method)).toEqual(['session.ended']);
  });

  test('that was used and lasts longer now has its requests answered until then', async () => {
    const client = await live.signIn(live.urls[0], await sessionFor(HOUR_MS));
    await live.server.database.query(
      (sql) => sql`
        update session set expires_at = expires_at + interval '4 hours' where account_id = ${live.alice.id}
          and expires_at is not null`,
    );
    // Each change of an account makes the server look its sessions up again, before it handles the next request.
    await live.server.operate('accounts.update', { user: 'alice', name: 'Alice' });
    await client.call('live.ping');
    const now = Date.now();
    jest.spyOn(Date, 'now').mockImplementation(() => now + 2 * HOUR_MS);
    await client.call('live.ping');
    expect(client.code).toBe(null);
    jest.spyOn(Date, 'now').mockImplementation(() => now + 6 * HOUR_MS);
    client.send('{"jsonrpc":"2.0","id":7,"method":"live.ping"}');
    expect(await client.ended()).toBe(SESSION_ENDED);
  });

  test('far in the future does not end its connection now', async () => {
    // This lifetime is longer than a timer of Node can be.
    const client = await live.signIn(live.urls[0], await sessionFor(60 * 24 * HOUR_MS));
    for (let n = 0; n < 3; n += 1) await client.call('live.ping');
    expect(client.code).toBe(null);
  });
});
