import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { MAX_UNSETTLED_ATTEMPTS } from '../../src/delivery/lane.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson, readJson, TestServer, type TestGroup } from '../support/server.ts';

const MESSAGES = 3 * MAX_UNSETTLED_ATTEMPTS;

describe('a lane whose settlements are not written', () => {
  let server: TestServer;
  let receiver: Receiver;
  let group: TestGroup;
  let hook: number;
  beforeEach(async () => {
    server = await TestServer.start({ delivery: { retryDelaysMs: [50, 5_000] } });
    receiver = await Receiver.start();
    group = await server.createGroup();
    hook = await register(group, '/held');
  });
  afterEach(async () => {
    await server.stop();
    await receiver.stop();
  });

  const register = async (to: TestGroup, path: string): Promise<number> =>
    (await postJson(`${to.webhook}/reverse`, { url: receiver.url(path) })).body.id;
  const arrived = (path: string): number[] =>
    receiver.arrivals.filter((arrival) => arrival.path === path).map(({ body }) => body.data.message.seq);
  const postAll = async (): Promise<void> => {
    for (let n = 1; n <= MESSAGES; n += 1) await postJson(group.webhook, { text: `message ${n}` });
  };
  const everything = Array.from({ length: MESSAGES }, (_, n) => n + 1);

  /** Lets another lane deliver five messages. In that time the lane of the test would also have sent, if it could. */
  async function letOthersPass(): Promise<void> {
    const other = await server.createGroup();
    await register(other, '/other');
    for (let n = 1; n <= 5; n += 1) {
      await postJson(other.webhook, { text: `${n}` });
      await eventually(
        async () => arrived('/other').length,
        (count) => count >= n,
      );
    }
  }

  const whileHeld = (work: () => Promise<void>): Promise<void> =>
    server.database.query((sql) =>
      sql.begin(async (tx) => {
        await tx`select from reverse_hook where id = ${hook} for update`;
        await work();
      }),
    );

  test('sends on to its bound and no further, and repeats nothing when they are written', async () => {
    await whileHeld(async () => {
      await postAll();
      await receiver.received(MAX_UNSETTLED_ATTEMPTS);
      await letOthersPass();
      expect(arrived('/held')).toEqual(everything.slice(0, MAX_UNSETTLED_ATTEMPTS));
    });
    await eventually(
      async () => arrived('/held').length,
      (count) => count >= MESSAGES,
    );
    expect(arrived('/held')).toEqual(everything);
    const check = async (): Promise<number> =>
      (await readJson(await fetch(`${group.webhook}/reverse/${hook}`))).body.pending;
    await eventually(check, (pending) => pending === 0);
    const logged = await server.database.query((sql) => sql`select seq from delivery_attempt where hook_id = ${hook}`);
    expect(logged).toHaveLength(MESSAGES);
  });

  test('counts a delivery that a 410 follows before it goes', async () => {
    receiver.answer = ({ path, body }) => (path === '/held' && body.data.message.seq > 3 ? 410 : 200);
    await whileHeld(async () => {
      await postAll();
      await receiver.received(4);
    });
    const removed = async (): Promise<Record<string, unknown>> => {
      const rows = await server.database.query(
        (sql) => sql`select cursor, removed_by from reverse_hook where id = ${hook}`,
      );
      return { ...rows[0] };
    };
    expect(await eventually(removed, (row) => row['removed_by'] !== null)).toEqual({ cursor: 3, removed_by: 'target' });
  });
});
