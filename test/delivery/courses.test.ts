import { expect, test } from '@jest/globals';
import type { Course, CourseParts } from '../../src/delivery/course.ts';
import { Ledger } from '../../src/delivery/ledger.ts';
import { Ramp } from '../../src/delivery/ramp.ts';
import { MAX_OVERTAKING } from '../../src/delivery/open-ranges.ts';
import type { Ahead } from '../../src/delivery/request.ts';
import type { Sent } from '../../src/delivery/progress.ts';
import type { Unsent } from '../../src/delivery/sender.ts';
import { StrictCourse } from '../../src/delivery/strict-course.ts';
import { UnorderedCourse } from '../../src/delivery/unordered-course.ts';
import type { Seq } from '../../src/model/ids.ts';
import type { LaneRow } from '../../src/storage/lanes.ts';
import type { Settlement } from '../../src/storage/settlement.ts';

interface Open<T> {
  readonly seq: number;
  readonly end: (value: T) => void;
}

/** A course whose reads and sends end when the test says so. */
class HeldCourse {
  readonly reads: Open<Ahead>[] = [];
  readonly sends: Open<Sent | Unsent>[] = [];
  readonly settled: Settlement[] = [];
  readonly course: Course;
  mayGo = true;
  /** The message whose request waits for its connection, until `written` is called. */
  connecting: number | null = null;
  written: () => void = () => {};

  constructor(head: number, course: new (parts: CourseParts) => Course = UnorderedCourse) {
    const health = { failures: 0, nextAttemptAt: null, refusals: 0, batchLast: null, singlesLast: null };
    const row = { id: 1, cursor: 0, generation: 1, ...health };
    const unsettled = { isFull: false, add: (settlement: Settlement) => this.settled.push(settlement) };
    const parts = {
      batch: 1,
      schedule: { retryMs: [1_000], retryAfterMaxMs: 0 },
      slots: { acquire: async () => 'quick', release: () => {} },
      requests: {
        next: (after: number) => new Promise((end) => this.reads.push({ seq: after + 1, end })),
        ready: () => null,
        idOf: () => '',
      },
      sender: {
        epoch: 1,
        send: ({ first: seq }: { first: number }, _id: string, onWrite: () => void) => {
          if (this.connecting === seq) this.written = onWrite;
          else onWrite();
          return new Promise((end) => this.sends.push({ seq, end }));
        },
      },
      ledger: new Ledger(row as unknown as LaneRow, unsettled as never),
      apart: { count: 0, hasWork: false, waitMs: null, nextAt: null, add: () => {}, replaced: () => {} },
      ramp: new Ramp(),
      counts: { add: () => {} },
      mayGo: () => this.mayGo,
      head: () => head,
      caughtUp: () => {},
    };
    this.course = new course(parts as unknown as CourseParts);
  }

  async read(seq: number): Promise<void> {
    const [read] = this.reads.splice(0, 1);
    expect(read!.seq).toBe(seq);
    read!.end({ passed: seq - 1, request: { first: seq, last: seq } } as Ahead);
    await turn();
  }

  async end(seq: number, what: Unsent | 'delivered'): Promise<void> {
    const at = this.sends.findIndex((send) => send.seq === seq);
    const outcome = { delivered: true, code: 200, category: null, durationMs: 1 };
    const sent = { request: { first: seq, last: seq }, outcome, at: new Date(), epoch: 1 };
    this.sends.splice(at, 1)[0]!.end(what === 'delivered' ? (sent as unknown as Sent) : what);
    await turn();
  }
}

test.each([
  ['none', UnorderedCourse],
  ['strict', StrictCourse],
] as const)(
  'order %s leaves out nothing any more once it is told to stop: what is left out may be another by then',
  async (_order, course) => {
    const held = new HeldCourse(3, course);
    const run = held.course.run();
    await turn();
    held.mayGo = false;
    held.reads.splice(0, 1)[0]!.end({ passed: 3 as Seq, request: null });
    expect(await run).toBeNull();
    expect(held.settled).toEqual([]);
  },
);

test('what waits for its connection is passed over by nobody: others wait for it, and go on once it is written', async () => {
  const held = new HeldCourse(100);
  held.connecting = 1;
  void held.course.run();
  await turn();
  await held.read(1);
  let next = 2;
  for (; held.reads.length > 0; next += 1) {
    await held.read(next);
    await held.end(next, 'delivered');
  }
  // One more was being read by then.
  expect(next - 2).toBe(MAX_OVERTAKING + 2);
  expect(held.settled.every(({ cursor, retries }) => cursor === 0 && retries.length === 0)).toBe(true);
  held.written();
  await turn();
  await held.read(next);
  await held.end(next, 'delivered');
  expect(held.settled.at(-1)).toMatchObject({ cursor: next, retries: [{ seq: 1, lastSeq: 1, attempts: 0 }] });
});

const turn = (): Promise<void> => new Promise(setImmediate);

test('the cursor stays below a message that was interrupted, also while it is read once more', async () => {
  const held = new HeldCourse(2);
  const run = held.course.run();
  await turn();
  await held.read(1);
  await held.read(2);
  held.mayGo = false;
  await held.end(1, 'interrupted');
  held.mayGo = true;
  held.course.wake();
  await turn();
  expect(held.reads).toMatchObject([{ seq: 1 }]);
  await held.end(2, 'delivered');
  expect(held.settled.map(({ cursor }) => cursor)).toEqual([0]);
  await held.read(1);
  await held.end(1, 'delivered');
  expect(held.settled.map(({ cursor }) => cursor)).toEqual([0, 2]);
  expect(await run).toBeNull();
});
