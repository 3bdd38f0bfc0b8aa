import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { leastBusy, fairShare } from '../../src/delivery/partition-assignment.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { within } from '../run/machine-speed.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson, TestServer } from '../support/server.ts';

describe('fairShare()', () => {
  test('adds up to all partitions, with at most one between the largest and the smallest', () => {
    for (let count = 1; count <= 70; count += 1) {
      const nodes = Array.from({ length: count }, (_, n) => `node ${n}`);
      const shares = nodes.map((node) => fairShare(node, nodes));
      expect(shares.reduce((sum, share) => sum + share, 0)).toBe(64);
      expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
    }
    expect(fairShare('a stranger', ['a', 'b'])).toBe(0);
  });
});

describe('leastBusy()', () => {
  test('chooses those with the least going on, and no more than asked for', () => {
    const busy = new Map([
      [1, 5],
      [2, 1],
      [3, 2],
    ]);
    expect(leastBusy([1, 2, 3, 4], 3, busy)).toEqual([4, 2, 3]);
    expect(leastBusy([1, 2], 5, busy)).toEqual([2, 1]);
    expect(leastBusy([1, 2], -1, busy)).toEqual([]);
  });
});

/** The number of hooks: one in each partition. */
const HOOKS = 64;

describe('servers on one database', () => {
  let database: TestDatabase;
  let receiver: Receiver;
  let started: TestServer[];
  let maxInFlightPerHost: number;

  beforeEach(async () => {
    database = await createTestDatabase();
    receiver = await Receiver.start();
    started = [];
    maxInFlightPerHost = HOOKS;
  });
  afterEach(async () => {
    for (const server of started) await server.stop();
    await receiver.stop();
    await database.drop();
  });

  async function start(): Promise<TestServer> {
    const changes = {
      delivery: { retryDelaysMs: [30, 60], maxInFlightPerHost },
      limits: { hookRegistrationsPerGroupPerMinute: 1_000, postsPerSecondPerToken: 10_000, postBurstPerToken: 10_000 },
    };
    const server = await TestServer.start(changes, { database });
    started.push(server);
    return server;
  }

  async function stop(server: TestServer): Promise<void> {
    started.splice(started.indexOf(server), 1);
    await server.stop();
  }

  /** The number of partitions that each node holds, in descending order; free partitions do not count. */
  const holdings = async (): Promise<number[]> => {
    const rows = await database.query(
      (sql) => sql<{ count: number }[]>`
        select count(*) as count from lease where holder is not null group by holder order by 1 desc`,
    );
    return rows.map(({ count }) => count);
  };
  const epochs = async (): Promise<number[]> => {
    const rows = await database.query((sql) => sql<{ epoch: number }[]>`select epoch from lease order by partition`);
    return rows.map(({ epoch }) => epoch);
  };
  /** Resolves when every lease has been renewed once more. */
  const nextRound = async (): Promise<void> => {
    const earliest = async (): Promise<number> => {
      const [row] = await database.query(
        (sql) => sql<{ at: number }[]>`select extract(epoch from min(expires_at))::float8 as at from lease`,
      );
      return row!.at;
    };
    const before = await earliest();
    await eventually(earliest, (at) => at > before);
  };
  const shared = async (shares: readonly number[]): Promise<void> => {
    const startedAt = performance.now();
    await eventually(holdings, (now) => JSON.stringify(now) === JSON.stringify(shares));
    expect(performance.now() - startedAt).toBeLessThan(within(9_000));
  };

  test('hold equal shares within seconds after one came or went, and none moves without a reason', async () => {
    const first = await start();
    expect(await holdings()).toEqual([64]);
    await start();
    await shared([32, 32]);
    const third = await start();
    await shared([22, 21, 21]);
    const settled = await epochs();
    // A notification that starts another round of assignment changes nothing either.
    await database.query((sql) => sql`select pg_notify('klatch', 'somebody l')`);
    await nextRound();
    await nextRound();
    expect(await epochs()).toEqual(settled);
    await stop(third);
    await shared([32, 32]);
    await stop(first);
    await shared([64]);
  });

  test('send nothing twice and nothing out of order while shares move under load', async () => {
    const first = await start();
    const group = await first.createGroup();
    for (let n = 0; n < HOOKS; n += 1) await postJson(`${group.webhook}/reverse`, { url: receiver.url(`/${n}`) });
    // The answers are slow, so that most lanes have a request in flight when partitions move to the other node.
    receiver.answer = async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return 200;
    };
    let posted = 0;
    const ended = new AbortController();
    const posting = (async () => {
      while (!ended.signal.aborted) {
        expect((await postJson(group.webhook, { text: `message ${posted}` })).status).toBe(200);
        posted += 1;
      }
    })();
    const second = await start();
    await shared([32, 32]);
    await start();
    await shared([22, 21, 21]);
    await stop(second);
    await shared([32, 32]);
    ended.abort();
    await posting;
    await receiver.received(posted * HOOKS);
    const all = Array.from({ length: posted }, (_, i) => i + 1);
    for (let n = 0; n < HOOKS; n += 1) expect(receiver.seqs(`/${n}`)).toEqual(all);
  });

  test('wait for what is in flight before they hand its partition over', async () => {
    const first = await start();
    const group = await first.createGroup();
    let answerAll = (): void => {};
    const answered = new Promise<void>((resolve) => (answerAll = resolve));
    receiver.answer = async () => {
      await answered;
      return 200;
    };
    for (let n = 0; n < HOOKS; n += 1) await postJson(`${group.webhook}/reverse`, { url: receiver.url(`/${n}`) });
    await postJson(group.webhook, { text: 'takes its time' });
    await receiver.received(HOOKS);
    await start();
    await nextRound();
    await nextRound();
    // Each partition has a request in flight.
    expect(await holdings()).toEqual([64]);
    answerAll();
    await shared([32, 32]);
    for (let n = 0; n < HOOKS; n += 1) expect(receiver.seqs(`/${n}`)).toEqual([1]);
  });

  test('do not wait with the hand-over for lanes that wait for their turn to send', async () => {
    maxInFlightPerHost = 16;
    const first = await start();
    const group = await first.createGroup();
    receiver.answer = () => new Promise(() => {});
    for (let n = 0; n < HOOKS; n += 1) await postJson(`${group.webhook}/reverse`, { url: receiver.url(`/${n}`) });
    await postJson(group.webhook, { text: 'is never answered' });
    await receiver.received(maxInFlightPerHost);
    await start();
    await shared([32, 32]);
    // Ends the hanging requests: otherwise the stop of the server would wait for them.
    await receiver.stop();
    receiver = await Receiver.start();
  });
});
