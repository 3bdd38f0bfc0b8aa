import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId } from '../../src/model/ids.ts';
import { claimDuePushes } from '../../src/storage/push/push-claims.ts';
import { settlePushes } from '../../src/storage/push/push-settlement.ts';
import { readNotifiedContent } from '../../src/storage/push/push-content.ts';
import { DatabaseProxy } from '../support/database-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLog } from '../support/recording-log.ts';
import { PushStage } from './stage.ts';

const DAY_MS = 86_400_000;

let stage: PushStage;
let alice: AccountId;
beforeAll(async () => {
  stage = await PushStage.open();
});
beforeEach(async () => {
  [alice] = (await stage.members('alice')) as [AccountId];
});
afterEach(() => stage.clear());
afterAll(() => stage.close());

describe('several nodes', () => {
  test('share what there is, and send nothing twice', async () => {
    const nicks = Array.from({ length: 200 }, (_, index) => `member${index}`);
    for (const account of await stage.members(...nicks)) await stage.device(account);
    for (let node = 0; node < 3; node += 1) stage.start({ maxInFlightPerVendor: 20 });
    await Promise.all(Array.from({ length: 50 }, (_, index) => stage.post(`message ${index}`)));
    await stage.settled(50);
    // A device gets one push in each debounce period, and no push covers messages of an earlier one.
    const byToken = new Map<string, [number, number][]>();
    for (const { token, note } of stage.got()) {
      byToken.set(token, [...(byToken.get(token) ?? []), [note.firstSeq, note.lastSeq]]);
    }
    expect(byToken.size).toBe(200);
    for (const stretches of byToken.values()) {
      stretches.sort(([a], [b]) => a - b);
      expect(stretches[0]![0]).toBe(1);
      expect(stretches.at(-1)![1]).toBe(50);
      for (const [index, [first]] of stretches.entries()) {
        if (index > 0) expect(first).toBe(stretches[index - 1]![1] + 1);
      }
    }
  });

  test('do not settle what another one has taken meanwhile', async () => {
    await stage.device(alice);
    stage.foreground.add(alice);
    const queue = stage.start();
    await stage.post('hello');
    await stage.waits(1);
    await queue.stop(1_000);
    await stage.database.query((sql) => sql`update push_pending set next_at = now()`);
    const { general } = stage.pools;
    const take = (forMs: number): ReturnType<typeof claimDuePushes> =>
      general.run((sql) => claimDuePushes(sql, 'web', { limit: 10, forMs }));
    const [first] = await take(0);
    expect(await general.run((sql) => readNotifiedContent(sql, [first!]))).toMatchObject([
      { messages: [{ text: 'hello' }] },
    ]);
    const [second] = await take(60_000);
    expect(second!.claimNumber).toBe(first!.claimNumber + 1);
    expect(await take(0)).toEqual([]);
    const settle = (claim: NonNullable<typeof first>): Promise<unknown> =>
      general.run((sql) => settlePushes(sql, [{ verdict: 'done', claim }], DAY_MS));
    await settle(first!);
    expect(await stage.pending()).toHaveLength(1);
    await settle(second!);
    expect(await stage.pending()).toEqual([]);
  });
});

describe('a database that goes away', () => {
  test('holds pushes up until it is back, is spoken of once, and has none of them lost', async () => {
    const proxy = await DatabaseProxy.start(stage.database.target);
    try {
      const [bob] = (await stage.members('bob')) as [AccountId];
      await stage.device(alice);
      const lines: string[] = [];
      const answered = Promise.withResolvers<void>();
      stage.service('web').answer = async () => {
        await answered.promise;
        return 200;
      };
      stage.start({}, { database: stage.database.open(proxy.address), log: recordingLog(lines) });
      await stage.post('before');
      await stage.service('web').received(1);
      await proxy.refuse();
      // The push is answered while the database is away. The queue settles it afterwards, and does not send it again.
      answered.resolve();
      await stage.device(bob);
      await stage.post('meanwhile');
      await eventually(
        () => lines.filter((line) => line.includes('wait')).length,
        (count) => count >= 2,
      );
      await proxy.forward();
      await stage.settled(2);
      expect(
        stage
          .told()
          .map((each) => each.join(' '))
          .sort((a, b) => a.localeCompare(b)),
      ).toEqual(['web-1 Sender 0: before', 'web-1 Sender 0: meanwhile', 'web-2 Sender 0: meanwhile']);
      expect(new Set(lines).size).toBe(lines.length);
    } finally {
      await proxy.stop();
    }
  });
});
