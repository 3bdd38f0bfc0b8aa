import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { deviceKinds } from '../../src/model/device.ts';
import type { AccountId } from '../../src/model/ids.ts';
import type { PushQueue } from '../../src/push/queue.ts';
import type { VendorReport } from '../../src/push/vendor-report.ts';
import type { PushOutcome } from '../../src/push/vendors/vendor.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLog } from '../support/recording-log.ts';
import { HttpVendor } from './http-vendor.ts';
import { PushStage } from './stage.ts';

let stage: PushStage;
let alice: AccountId;
let bob: AccountId;
beforeAll(async () => {
  stage = await PushStage.open();
});
beforeEach(async () => {
  [alice, bob] = (await stage.members('alice', 'bob')) as [AccountId, AccountId];
});
afterEach(() => stage.clear());
afterAll(() => stage.close());

const reportOf = async (queue: PushQueue, kind: string): Promise<VendorReport> =>
  (await queue.status()).find((each) => each.kind === kind)!;

/** A pool whose transactions hang until `free`, like those of a database that does not answer. */
function hanging(pool: Pool): { pool: Pool; hangs: Promise<void>; free: () => void } {
  const hangs = Promise.withResolvers<void>();
  const free = Promise.withResolvers<void>();
  const proxy = new Proxy(pool, {
    get: (target, name) => {
      if (name === 'run') return target.run.bind(target);
      if (name !== 'transaction') return Reflect.get(target, name, target) as unknown;
      return async (...given: Parameters<Pool['transaction']>) => {
        hangs.resolve();
        await free.promise;
        return target.transaction(...given);
      };
    },
  });
  return { pool: proxy, hangs: hangs.promise, free: () => free.resolve() };
}

describe('the vendors', () => {
  test('are apart: one that hangs and one that fails keep nobody from the third', async () => {
    for (const kind of deviceKinds) for (let n = 0; n < 5; n += 1) await stage.device(alice, kind);
    const hanging = Promise.withResolvers<void>();
    stage.service('google').answer = async () => {
      await hanging.promise;
      return 200;
    };
    stage.service('apple').answer = () => 503;
    const queue = stage.start({ maxInFlightPerVendor: 2, timeoutMs: 60_000 });
    await stage.post('hello');
    await stage.service('google').received(2);
    const apple = await eventually(
      () => reportOf(queue, 'apple'),
      ({ failed }) => failed > 0,
    );
    const web = await eventually(
      () => reportOf(queue, 'web'),
      ({ pending }) => pending === 0,
    );
    expect(web).toMatchObject({ sent: 5, failed: 0, lastError: null });
    expect(apple).toMatchObject({
      pending: 5,
      sent: 0,
      lastError: { category: 'status', code: 503, at: expect.any(Date) },
    });
    expect(await reportOf(queue, 'google')).toMatchObject({ pending: 5, inFlight: 2, sent: 0 });
    // The queue pauses for this vendor. Then it tries its pushes again one by one, and these attempts do not count for
    // the pushes.
    stage.service('apple').answer = () => 200;
    hanging.resolve();
    await stage.settled(1);
    expect(new Set(stage.got('apple').map(({ token }) => token)).size).toBe(5);
    expect(await reportOf(queue, 'apple')).toMatchObject({ pending: 0, sent: 5, backoffUntil: null });
    expect(await reportOf(queue, 'google')).toMatchObject({ pending: 0, sent: 5, failed: 0 });
  });

  test('that are not configured get no rows, and one with a problem keeps them', async () => {
    for (const kind of deviceKinds) await stage.device(alice, kind);
    const web = new HttpVendor('web', () => stage.service('web').url(''), 20_000);
    const apple = new HttpVendor('apple', () => stage.service('apple').url(''), 20_000);
    apple.problem = 'the key cannot be read';
    const queue = stage.start({}, { vendors: new Map([web, apple].map((each) => [each.kind, each])) });
    await stage.post('hello');
    await stage.setForeground(1);
    expect((await stage.waits(1)).map(({ kind }) => kind)).toEqual(['apple']);
    expect(stage.got().map(({ kind }) => kind)).toEqual(['web']);
    expect(await queue.status()).toMatchObject([
      { kind: 'google', configured: false, problem: null, pending: 0 },
      { kind: 'apple', configured: true, problem: 'the key cannot be read', pending: 1, due: 1 },
      { kind: 'web', configured: true, problem: null, pending: 0, sent: 1 },
    ]);
  });

  test('are closed in time when the queue stops, whatever the database is busy with', async () => {
    await stage.device(alice);
    const web = new HttpVendor('web', () => stage.service('web').url(''), 20_000);
    const { pool, hangs, free } = hanging(stage.pools.general);
    const queue = stage.start({}, { vendors: new Map([['web', web]]), database: { general: pool } });
    await stage.post('hello');
    await hangs;
    await queue.stop(100);
    expect(web.stopped).toBe(true);
    free();
    await stage.setForeground(1);
  });

  test('are closed when the queue stops, and what they had in hand is sent by the next', async () => {
    await stage.device(alice);
    const hanging = Promise.withResolvers<void>();
    stage.service('web').answer = async () => {
      await hanging.promise;
      return 200;
    };
    const queue = stage.start();
    await stage.post('hello');
    await stage.service('web').received(1);
    await queue.stop(50);
    const [row] = await stage.pending();
    expect(row).toMatchObject({ attempts: 0, firstSeq: 1, lastSeq: 1 });
    expect(row!.dueInS).toBeLessThanOrEqual(0);
    hanging.resolve();
    stage.start();
    await stage.settled(1);
    expect(stage.got()).toHaveLength(2);
  });
});

describe('a push that fails', () => {
  test('is repeated until it is taken, with all that came since', async () => {
    await stage.device(alice);
    stage.service('web').answer = () => (stage.got().length < 3 ? 429 : 200);
    const queue = stage.start();
    await stage.post('hello');
    await stage.settled(1);
    expect(stage.got().map(({ note }) => note.lastSeq)).toEqual([1, 1, 1]);
    expect(await reportOf(queue, 'web')).toMatchObject({ sent: 1, failed: 2 });
  });

  test('rests for as long as its vendor asks, but not beyond its time', async () => {
    await stage.device(alice, 'web');
    await stage.device(bob, 'web');
    stage.service('web').answer = ({ path }, res) => {
      res.setHeader('retry-after', path === '/web-1' ? '600' : '9999999');
      return 429;
    };
    stage.start({ pushExpiresAfterMs: 3_600_000 });
    await stage.post('hello');
    await eventually(
      () => stage.pending(),
      (found) => found.length === 2 && found.every(({ attempts }) => attempts === 1),
    );
    // Reads the rows again: the first statement may have fixed its now() before the transaction of the retry began.
    const rows = await stage.pending();
    expect(rows[0]!.dueInS).toBeGreaterThan(500);
    expect(rows[0]!.dueInS).toBeLessThanOrEqual(600);
    expect(rows[1]!.dueInS).toBeGreaterThan(3_500);
    expect(rows[1]!.dueInS).toBeLessThanOrEqual(3_600);
  });

  test('is given up when its time is over, with a row in the log', async () => {
    await stage.device(alice, 'web');
    await stage.device(alice, 'apple');
    stage.service('web').answer = () => 429;
    stage.service('apple').answer = () => 500;
    const lines: string[] = [];
    const queue = stage.start({ pushExpiresAfterMs: 6_000 }, { log: recordingLog(lines) });
    await stage.post('hello');
    await stage.settled(1);
    expect(new Set((await stage.logged()).map((row) => JSON.stringify(row)))).toEqual(
      new Set(
        ['web', 'apple'].map((kind) =>
          JSON.stringify({ account: alice, kind, event: 'expired', category: 'expired', code: null }),
        ),
      ),
    );
    await eventually(
      () => reportOf(queue, 'web'),
      ({ expired }) => expired === 1,
    );
    expect(lines.filter((line) => line.includes('given up'))).not.toEqual([]);
    expect(lines.join('\n')).not.toMatch(/web-1|apple-2|hello/);
  });

  test('for which there is no vendor any more is given up as well', async () => {
    await stage.device(alice, 'google');
    await stage.post('hello');
    await stage.database.query(
      (sql) => sql`
      insert into push_pending (device_id, conversation_id, kind, first_seq, last_seq, created_at)
      values (1, ${stage.group.id}, 'google', 1, 1, now() - interval '1 hour')`,
    );
    await stage.database.query((sql) => sql`update message set sent_at = now() - interval '1 hour'`);
    stage.start({ pushExpiresAfterMs: 1_800_000 }, { vendors: new Map() });
    expect(await stage.pending()).toHaveLength(1);
    const queue = stage.start({ pushExpiresAfterMs: 10_000 }, { vendors: new Map() });
    await stage.waits(0);
    expect(await reportOf(queue, 'google')).toMatchObject({ configured: false, expired: 1 });
  });

  test('and stands for something younger too is not given up with what is old', async () => {
    const devices = [await stage.device(alice, 'web'), await stage.device(bob, 'web')];
    await stage.post('old');
    await stage.post('young');
    await stage.database.query(async (sql) => {
      for (const [index, { id }] of devices.entries()) {
        await sql`
          insert into push_pending (device_id, conversation_id, kind, first_seq, last_seq, created_at)
          values (${id}, ${stage.group.id}, 'web', 1, ${2 - index}, now() - interval '1 hour')`;
      }
      await sql`insert into push_cursor (conversation_id, pushed_seq) values (${stage.group.id}, 2)`;
      await sql`update message set sent_at = sent_at - interval '1 hour' where seq = 1`;
      // This message is younger than the age at which pushes expire, however slow the machine is.
      await sql`update message set sent_at = sent_at + interval '1 hour' where seq = 2`;
    });
    // Without a vendor no push is sent and a row can only expire.
    stage.start({ pushExpiresAfterMs: 10_000 }, { vendors: new Map() });
    // Bob's row covers only the old message.
    const [left] = await stage.waits(1);
    expect(left).toMatchObject({ lastSeq: 2 });
    expect(await stage.logged()).toMatchObject([{ account: bob, event: 'expired' }]);
    stage.start({ pushExpiresAfterMs: 600_000 });
    await stage.settled(2);
    expect(await stage.logged()).toHaveLength(1);
    expect(stage.told()).toEqual([['web-1', 'Sender 0: young']]);
  });
});

describe('a vendor that says', () => {
  test('that it does not know a device has it removed, with a row in the log, and the others stay', async () => {
    const gone = await stage.device(alice, 'web');
    const stays = await stage.device(alice, 'web');
    stage.service('web').answer = ({ path }) => (path.endsWith(gone.token) ? 410 : 200);
    const lines: string[] = [];
    const queue = stage.start({}, { log: recordingLog(lines) });
    await stage.post('hello');
    await stage.settled(1);
    const left = await stage.database.query((sql) => sql<{ id: number }[]>`select id from device`);
    expect(left.map(({ id }) => id)).toEqual([stays.id]);
    expect(await stage.logged()).toEqual([
      { account: alice, kind: 'web', event: 'removed', category: 'unregistered', code: 410 },
    ]);
    expect(await reportOf(queue, 'web')).toMatchObject({ removed: 1, sent: 1 });
    expect(lines.filter((line) => line.includes('removed devices'))).toHaveLength(1);
    expect(lines.join('\n')).not.toContain(gone.token);
  });

  test('so of a device that was registered again meanwhile does not have it removed', async () => {
    const { id } = await stage.device(alice, 'web');
    stage.service('web').answer = async () => {
      if (stage.got().length > 1) return 200;
      await stage.database.query(
        (sql) => sql`update device set last_seen_at = now() + interval '10 ms' where id = ${id}`,
      );
      return 410;
    };
    stage.start();
    await stage.post('hello');
    await stage.settled(1);
    expect(stage.got()).toHaveLength(2);
    expect(await stage.logged()).toEqual([]);
  });

  test('that it will never take a push has it dropped, with a row in the log, and the device stays', async () => {
    await stage.device(alice, 'web');
    stage.service('web').answer = () => (stage.got().length === 1 ? 400 : 200);
    const queue = stage.start();
    await stage.post('poison');
    await stage.settled(1);
    expect(await stage.logged()).toEqual([
      { account: alice, kind: 'web', event: 'rejected', category: 'payload', code: 400 },
    ]);
    await stage.post('fine');
    await stage.settled(2);
    expect(stage.told().at(-1)).toEqual(['web-1', 'Sender 0: fine']);
    expect(await reportOf(queue, 'web')).toMatchObject({ refused: 1, sent: 1 });
  });

  test('nothing to a push, since its driver refused it, has not recovered by that', async () => {
    await stage.device(alice, 'web', 'asks');
    await stage.device(alice, 'web', 'has no key');
    const web = new HttpVendor('web', () => stage.service('web').url(''), 20_000);
    const isResting = Promise.withResolvers<void>();
    const lines: string[] = [];
    const taken = web.send.bind(web);
    let isAway = true;
    web.send = async (target, note): Promise<PushOutcome> => {
      if (target.token === 'has no key') {
        await isResting.promise;
        return { outcome: 'refused', category: 'no key', code: null };
      }
      if (!isAway) return taken(target, note);
      return { outcome: 'failed', category: 'timeout', code: null, retryAfterMs: null, vendorWide: true };
    };
    const recovered = (): string[] => lines.filter((line) => line.includes('works again'));
    const queue = stage.start(
      { pushRetryDelaysMs: [60_000] },
      { vendors: new Map([['web', web]]), log: recordingLog(lines) },
    );
    await stage.post('hello');
    await eventually(
      () => reportOf(queue, 'web'),
      ({ failed }) => failed > 0,
    );
    isResting.resolve();
    await stage.waits(1);
    expect(recovered()).toEqual([]);
    isAway = false;
    await stage.settled(1);
    expect(recovered()).toHaveLength(1);
  });

  test('nothing at all, or whose driver throws, costs no other push and no process', async () => {
    await stage.device(alice, 'web');
    await stage.device(alice, 'apple');
    const broken = new HttpVendor('web', () => stage.service('web').url(''), 20_000);
    broken.send = () => Promise.reject(new TypeError('web-1 is what only the vendor is to know'));
    const apple = new HttpVendor('apple', () => stage.service('apple').url(''), 20_000);
    const lines: string[] = [];
    stage.start({}, { vendors: new Map([broken, apple].map((each) => [each.kind, each])), log: recordingLog(lines) });
    await stage.post('hello');
    await eventually(
      () => stage.got('apple'),
      (got) => got.length === 1,
    );
    await eventually(
      () => stage.pending(),
      ([row]) => (row?.attempts ?? 0) >= 2,
    );
    expect(lines.join('\n')).not.toContain('web-1');
  });
});

describe('a test push', () => {
  test('goes to each device at once, and says what became of it', async () => {
    const [phone, laptop, tablet] = [
      await stage.device(alice, 'google'),
      await stage.device(alice, 'web'),
      await stage.device(alice, 'apple'),
    ];
    await stage.device(bob, 'web');
    stage.service('web').answer = () => 410;
    const vendors = new Map(
      (['google', 'web'] as const).map((kind) => [
        kind,
        new HttpVendor(kind, () => stage.service(kind).url(''), 20_000),
      ]),
    );
    const queue = stage.start({}, { vendors });
    expect(await queue.sendTestPushes(alice)).toEqual([
      { deviceId: phone.id, kind: 'google', label: `google of ${alice}`, outcome: { outcome: 'delivered' } },
      {
        deviceId: laptop.id,
        kind: 'web',
        label: `web of ${alice}`,
        outcome: { outcome: 'unregistered', category: 'unregistered', code: 410 },
      },
      {
        deviceId: tablet.id,
        kind: 'apple',
        label: `apple of ${alice}`,
        outcome: { outcome: 'failed', category: 'not_configured', code: null, retryAfterMs: null, vendorWide: true },
      },
    ]);
    expect(stage.got('google')[0]!.note).toMatchObject({ conversationId: 0, title: 'Klatch under test', urgent: true });
    expect(await stage.logged()).toMatchObject([{ event: 'removed' }]);
    expect((await queue.sendTestPushes(alice)).map(({ deviceId }) => deviceId)).toEqual([phone.id, tablet.id]);
  });
});
