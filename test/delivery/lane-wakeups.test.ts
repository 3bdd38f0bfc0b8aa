import { createSecretKey } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { DeliveryCounts } from '../../src/delivery/delivery-counts.ts';
import { FirstFailureWarningThrottle } from '../../src/delivery/failure-warning-throttle.ts';
import { Lane, type LaneContext } from '../../src/delivery/lane.ts';
import { SlowHooks } from '../../src/delivery/lane-limiter.ts';
import { HostLimiter } from '../../src/delivery/host-limiter.ts';
import { silentLog, type Log } from '../../src/log.ts';
import type { Seq } from '../../src/model/ids.ts';
import { DatabaseUnavailableError } from '../../src/storage/db/database-error.ts';
import type { LaneRow } from '../../src/storage/hooks/lanes.ts';
import { eventually } from '../support/eventually.ts';
import { TEST_RETRY_POLICY } from './fixtures/retry-policy.ts';

const row = {
  id: 1,
  conversationId: 1,
  url: 'http://receiver.test/',
  order: 'none',
  batch: 1,
  signature: 'v1',
  skip: [],
  cursor: 0,
  generation: 1,
  pausedAt: null,
  failures: 0,
  format: 'klatch',
  failingSince: null,
  parkedAt: null,
  nextAttemptAt: null,
  rejections: 0,
  batchLastSeq: null,
  unbatchedUntil: null,
  retries: 1,
  earliestRetryAt: new Date(Date.now() + 3_000_000),
  lastSeq: 0,
} as unknown as LaneRow;

const SIGNING_KEYS = { current: createSecretKey(Buffer.alloc(24)), old: null, serverKeys: [] };

/** A lane with the given parts; the others are real or do nothing. */
function laneWith(parts: { reader: object; client?: object; log?: Log }): Lane {
  const context = {
    limiter: new HostLimiter(1, 1),
    settler: { settle: async () => true, trigger: () => {} },
    leases: { usableEpochOf: () => 1 },
    retryPolicy: { ...TEST_RETRY_POLICY, retryDelaysMs: [1_000] },
    counts: new DeliveryCounts(),
    slowHooks: new SlowHooks(),
    failureWarningThrottle: new FirstFailureWarningThrottle(silentLog()),
    log: silentLog(),
    ...parts,
  };
  return new Lane(row, SIGNING_KEYS, context as unknown as LaneContext);
}

test('a notification in the last moment of a run is not slept through', async () => {
  const message = { seq: 1, senderKind: 'user', hops: 0, body: Buffer.from('{}') };
  let posts = 0;
  const post = async (): Promise<object> => {
    posts += 1;
    return { delivered: true, category: null, code: 200, durationMs: 1, retryAfterMs: null, detail: null };
  };
  const lane = laneWith({ reader: { peek: () => undefined, nextMessage: async () => message }, client: { post } });
  // All waiting messages are due in an hour, so the run of the lane ends in this turn. Then it has to pause.
  lane.resume();
  lane.wake(1 as Seq);
  for (let n = 0; n < 20; n += 1) await new Promise(setImmediate);
  await lane.retire();
  expect(posts).toBe(1);
});

test.each<[string, Error, number]>([
  ['a defect', new TypeError('no such property'), 1],
  ['an unavailable database', new DatabaseUnavailableError('away'), 0],
])('%s that fails a lane again and again is logged as an error at most once', async (_cause, error, errors) => {
  let reads = 0;
  const lines: string[] = [];
  const nextMessage = (): never => {
    reads += 1;
    throw error;
  };
  const log = { ...silentLog(), error: (event: string) => lines.push(event) };
  const lane = laneWith({ reader: { peek: () => undefined, nextMessage }, log });
  lane.resume();
  lane.wake(1 as Seq);
  await eventually(
    async () => reads,
    (count) => count >= 2,
  );
  await lane.retire();
  expect(lines).toHaveLength(errors);
});
