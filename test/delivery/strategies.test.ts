import { expect, test } from '@jest/globals';
import type { DeliveryStrategy, StrategyDeps } from '../../src/delivery/delivery-strategy.ts';
import { ProgressTracker } from '../../src/delivery/progress-tracker.ts';
import { SlowStart } from '../../src/delivery/slow-start.ts';
import { MAX_REQUESTS_COMPLETED_AHEAD } from '../../src/delivery/unordered-in-flight-window.ts';
import type { NextRequestOrSkip } from '../../src/delivery/request-body-builder.ts';
import type { AttemptResult } from '../../src/delivery/attempt-result.ts';
import type { NotSentOrUnknown } from '../../src/delivery/sender.ts';
import { OrderedStrategy } from '../../src/delivery/ordered-strategy.ts';
import { UnorderedStrategy } from '../../src/delivery/unordered-strategy.ts';
import type { Seq } from '../../src/model/ids.ts';
import type { LaneRow } from '../../src/storage/hooks/lanes.ts';
import type { Settlement } from '../../src/storage/hooks/settlement.ts';
import { TEST_RETRY_POLICY } from './fixtures/retry-policy.ts';

interface Open<T> {
  readonly seq: number;
  readonly end: (value: T) => void;
}

/** A strategy under test: its reads and requests end when the test calls their `end`. */
class ControlledStrategy {
  readonly reads: Open<NextRequestOrSkip>[] = [];
  readonly sends: Open<AttemptResult | NotSentOrUnknown>[] = [];
  readonly settled: Settlement[] = [];
  readonly strategy: DeliveryStrategy;
  isLaneActive = true;
  /** The seq of the message whose request waits for its connection, until `written` is called. */
  connecting: number | null = null;
  written: () => void = () => {};

  constructor(head: number, strategy: new (deps: StrategyDeps) => DeliveryStrategy = UnorderedStrategy) {
    const health = { failures: 0, nextAttemptAt: null, rejections: 0, batchLastSeq: null, unbatchedUntil: null };
    const row = { id: 1, cursor: 0, eventCursor: null, generation: 1, ...health };
    const settlementBuffer = { isFull: false, add: (settlement: Settlement) => this.settled.push(settlement) };
    const deps = {
      maxMessagesPerRequest: 1,
      retryPolicy: { ...TEST_RETRY_POLICY, retryDelaysMs: [1_000] },
      limiter: { acquire: async () => 'quick', release: () => {} },
      requests: {
        next: (after: number) => new Promise((end) => this.reads.push({ seq: after + 1, end })),
        peek: () => null,
        idOf: () => '',
      },
      events: null,
      sender: {
        usableLeaseEpoch: 1,
        send: ({ first: seq }: { first: number }, _id: string, onWrite: () => void) => {
          if (this.connecting === seq) this.written = onWrite;
          else onWrite();
          return new Promise((end) => this.sends.push({ seq, end }));
        },
      },
      tracker: new ProgressTracker(row as unknown as LaneRow, settlementBuffer as never),
      retryQueue: {
        rowCount: 0,
        hasPendingWork: false,
        waitMs: null,
        nextWaitingRetryAt: null,
        noteAddedRows: () => {},
        dropReplacedRow: () => {},
      },
      slowStart: new SlowStart(),
      counts: { add: () => {} },
      isLaneActive: () => this.isLaneActive,
      head: () => head,
      lowerHeadAfterEmptyRead: () => {},
      reloadHook: () => {},
    };
    this.strategy = new strategy(deps as unknown as StrategyDeps);
  }

  async read(seq: number): Promise<void> {
    const [read] = this.reads.splice(0, 1);
    expect(read!.seq).toBe(seq);
    read!.end({ skippedTo: seq - 1, request: { first: seq, last: seq } } as NextRequestOrSkip);
    await turn();
  }

  async end(seq: number, what: NotSentOrUnknown | 'delivered'): Promise<void> {
    const at = this.sends.findIndex((send) => send.seq === seq);
    const outcome = { delivered: true, code: 200, category: null, durationMs: 1 };
    const sent = { request: { first: seq, last: seq }, outcome, startedAt: new Date(), epoch: 1 };
    this.sends.splice(at, 1)[0]!.end(what === 'delivered' ? (sent as unknown as AttemptResult) : what);
    await turn();
  }
}

test.each([
  ['none', UnorderedStrategy],
  ['strict', OrderedStrategy],
] as const)(
  'order %s leaves out nothing any more once it is told to stop: what is left out may be another by then',
  async (_order, strategy) => {
    const controlled = new ControlledStrategy(3, strategy);
    const run = controlled.strategy.run();
    await turn();
    controlled.isLaneActive = false;
    controlled.reads.splice(0, 1)[0]!.end({ skippedTo: 3 as Seq, request: null });
    expect(await run).toBeNull();
    expect(controlled.settled).toEqual([]);
  },
);

test('what waits for its connection is passed over by nobody: others wait for it, and go on once it is written', async () => {
  const controlled = new ControlledStrategy(100);
  controlled.connecting = 1;
  void controlled.strategy.run();
  await turn();
  await controlled.read(1);
  let next = 2;
  for (; controlled.reads.length > 0; next += 1) {
    await controlled.read(next);
    await controlled.end(next, 'delivered');
  }
  // When the strategy reached the limit, it was already reading one more message.
  expect(next - 2).toBe(MAX_REQUESTS_COMPLETED_AHEAD + 2);
  expect(controlled.settled.every(({ cursor, retries }) => cursor === 0 && retries.length === 0)).toBe(true);
  controlled.written();
  await turn();
  await controlled.read(next);
  await controlled.end(next, 'delivered');
  expect(controlled.settled.at(-1)).toMatchObject({ cursor: next, retries: [{ seq: 1, lastSeq: 1, attempts: 0 }] });
});

const turn = (): Promise<void> => new Promise(setImmediate);

test('the cursor stays below a message that was interrupted, also while it is read once more', async () => {
  const controlled = new ControlledStrategy(2);
  const run = controlled.strategy.run();
  await turn();
  await controlled.read(1);
  await controlled.read(2);
  controlled.isLaneActive = false;
  await controlled.end(1, 'cancelled');
  controlled.isLaneActive = true;
  controlled.strategy.wake();
  await turn();
  expect(controlled.reads).toMatchObject([{ seq: 1 }]);
  await controlled.end(2, 'delivered');
  expect(controlled.settled.map(({ cursor }) => cursor)).toEqual([0]);
  await controlled.read(1);
  await controlled.end(1, 'delivered');
  expect(controlled.settled.map(({ cursor }) => cursor)).toEqual([0, 2]);
  expect(await run).toBeNull();
});
