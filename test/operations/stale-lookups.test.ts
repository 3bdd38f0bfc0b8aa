import { createHash } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { LocalBus } from '../../src/bus/bus.ts';
import { IntegrationTokenCache } from '../../src/operations/core/access.ts';
import { SessionCache } from '../../src/operations/core/session-cache.ts';
import type { Database } from '../../src/storage/database.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import { Sealer } from '../../src/storage/db/sealed.ts';
import { testConfig } from '../support/config.ts';
import { DatabaseProxy } from '../support/database-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson } from '../support/people.ts';
import { TestServer } from '../support/server.ts';

/** A sealer that is not used: no group here has a sealed secret. */
const sealer = new Sealer('unused');

let server: TestServer;
let database: Database;
beforeEach(async () => {
  server = await TestServer.start();
  database = server.database.open();
});
afterEach(async () => {
  await server.stop();
});

/** The real connection pool, whose answers wait until `release` is called. */
class SlowPool {
  readonly #pool: Pool;
  readonly #held: (() => void)[] = [];
  #onHeld = (): void => {};

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  readonly run: Pool['run'] = async (work, ...bounds) => {
    const result = await this.#pool.run(work, ...bounds);
    await new Promise<void>((resolve) => {
      this.#held.push(resolve);
      this.#onHeld();
    });
    return result;
  };

  /** Resolves when an answer of the database is held back. */
  held(): Promise<void> {
    return new Promise((resolve) => {
      this.#onHeld = resolve;
      if (this.#held.length > 0) resolve();
    });
  }

  release(): void {
    for (const resolve of this.#held.splice(0)) resolve();
  }
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

test('a look-up that is older than the revocation of its token is not remembered', async () => {
  const { id, token } = await server.createGroup();
  const bus = new LocalBus();
  const pool = new SlowPool(database.general);
  const { limits } = testConfig(server.database.target, '/nowhere');
  const tokens = new IntegrationTokenCache(pool, bus, limits, sealer);

  const lookUp = tokens.find(token);
  await pool.held();
  await server.operate('groups.rotate-token', { group: id });
  bus.publish('tokensRevoked', [sha256(token)]);
  pool.release();
  expect(await lookUp).toMatchObject({ conversationId: id });
  expect(tokens.findCached(token)).toBeUndefined();

  const next = tokens.find(token);
  await pool.held();
  pool.release();
  expect(await next).toBeNull();
});

test('a look-up that no revocation crosses is remembered', async () => {
  const { token } = await server.createGroup();
  const pool = new SlowPool(database.general);
  const tokens = new IntegrationTokenCache(
    pool,
    new LocalBus(),
    testConfig(server.database.target, '/nowhere').limits,
    sealer,
  );
  const lookUp = tokens.find(token);
  await pool.held();
  pool.release();
  expect(tokens.findCached((await lookUp) === null ? '' : token)).toMatchObject({ tokenHash: sha256(token) });
});

test('what was known of a token will do while the database is away, and no longer; what was not known is refused', async () => {
  const { token } = await server.createGroup();
  const unseen = await server.createGroup('Never asked for');
  const proxy = await DatabaseProxy.start(server.database.target);
  const bus = new LocalBus();
  const { limits } = testConfig(server.database.target, '/nowhere');
  const tokens = new IntegrationTokenCache(server.database.open(proxy.address).general, bus, limits, sealer);
  await eventually(
    () => tokens.find(token).catch(() => null),
    (found) => found !== null,
  );
  await proxy.refuse();
  // The bus publishes this event after it has lost the session that receives notifications.
  bus.publish('resync', new Set(['tokensRevoked']));
  expect(tokens.findCached(token)).toBeUndefined();
  expect(await tokens.find(token)).toMatchObject({ tokenHash: sha256(token) });
  await expect(tokens.find(unseen.token)).rejects.toThrow();
  await server.operate('groups.rotate-token', { group: unseen.id });
  await proxy.forward();
  await eventually(
    () => tokens.find(unseen.token).catch(() => 'away'),
    (found) => found === null,
  );
  await proxy.stop();
});

test('a look-up that is older than the end of its session is done again', async () => {
  const { token, session } = await createPerson(server, 'alice');
  const bus = new LocalBus();
  const pool = new SlowPool(database.general);
  const sessions = new SessionCache(pool, bus);
  const answer = sessions.authenticate(token, { source: '192.0.2.1' } as never).catch((error: unknown) => error);
  await pool.held();
  await server.database.query((sql) => sql`delete from session where id = ${session}`);
  bus.publish('sessionsEnded', [session]);
  pool.release();
  // Without a second look-up, the answer would come at once.
  await Promise.race([pool.held(), answer]);
  pool.release();
  expect(await answer).toMatchObject({ code: 'unauthenticated' });
});
