import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LocalBus } from '../../src/bus/bus.ts';
import type { LiveSessions } from '../../src/live/live-sessions.ts';
import type { Session } from '../../src/live/session.ts';
import { SessionRevalidator } from '../../src/live/session-revalidator.ts';
import type { AccountId } from '../../src/model/ids.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import type { FoundSession } from '../../src/storage/accounts/sessions.ts';
import { createPerson } from '../support/people.ts';
import { silentLog } from '../../src/log.ts';
import { TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.stop());

test('an answer that was long on its way does not bring back what an account was', async () => {
  const { id, session: sessionId } = await createPerson(server, 'alice', { admin: true });
  const [firstQuery, releaseFirst] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let queries = 0;
  const run: Pool['run'] = async (work) => {
    const result = await server.database.query(work);
    queries += 1;
    if (queries === 1) {
      firstQuery.resolve();
      await releaseFirst.promise;
    }
    return result;
  };
  const roles: string[] = [];
  const session = {
    caller: { sessionId, expiresAt: null },
    isOpen: true,
    updateAccount: ({ role }: FoundSession) => roles.push(role),
  } as unknown as Session;
  const sessions = { all: [session], ofAccount: () => [session] } as unknown as LiveSessions;
  const bus = new LocalBus();
  const revalidator = new SessionRevalidator({ bus, pool: { run } as Pool, sessions, log: silentLog() });
  revalidator.start();
  const all = revalidator.revalidateAll();
  await firstQuery.promise;
  await server.database.query((sql) => sql`update account set role = 'user' where id = ${id}`);
  bus.publish('accountsChanged', [id as AccountId]);
  await revalidator.whenRevalidated(session);
  releaseFirst.resolve();
  await all;
  revalidator.stop();
  expect(roles).toEqual(['user']);
});

test('a connection that is open keeps the session of a browser from running out', async () => {
  const { session: sessionId } = await createPerson(server, 'bob');
  const { session: usedToday } = await createPerson(server, 'carol');
  await server.database.query(
    (sql) => sql`
      update session set idle_timeout_s = 3600, expires_at = now() + interval '1 minute',
        last_used_at = now() - case when id = ${sessionId} then interval '25 hours' else interval '23 hours' end
      where id = any(${[sessionId, usedToday]}::bigint[])`,
  );
  const told = new Map<number, number>();
  const sessionOf = (id: number): Session =>
    ({
      caller: { sessionId: id, expiresAt: new Date() },
      isOpen: true,
      updateAccount: ({ expiresAt }: FoundSession) => told.set(id, (expiresAt!.getTime() - Date.now()) / 60_000),
    }) as unknown as Session;
  const sessions = { all: [sessionOf(sessionId), sessionOf(usedToday)] } as unknown as LiveSessions;
  const pool = { run: (work: Parameters<Pool['run']>[0]) => server.database.query(work) } as Pool;
  await new SessionRevalidator({ bus: new LocalBus(), pool, sessions, log: silentLog() }).revalidateAll();
  expect(told.get(sessionId)).toBeGreaterThan(50);
  // Once a day is enough: the server does not write a row each minute.
  expect(told.get(usedToday)).toBeLessThan(2);
});
