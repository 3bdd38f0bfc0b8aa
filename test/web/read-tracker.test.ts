import { afterEach, describe, expect, test } from '@jest/globals';
import { ReadTracker } from '../../web/core/read-tracker.ts';
import { eventually } from '../support/eventually.ts';

const started: ReadTracker[] = [];
afterEach(() => {
  for (const tracker of started.splice(0)) tracker.stop();
});

function start(inViewMs = 5) {
  const seen = { isLookedAt: true };
  const read: number[] = [];
  const tracker = new ReadTracker({ isLookedAt: () => seen.isLookedAt, onRead: (seq) => read.push(seq), inViewMs });
  started.push(tracker);
  return { tracker, seen, read };
}

describe('a message', () => {
  test('counts as read when it was in view for the time, and what came into view meanwhile later', async () => {
    const { tracker, read } = start();
    tracker.updateSeqInView(10);
    tracker.updateSeqInView(20);
    expect(read).toEqual([]);
    await eventually(
      () => read.length,
      (count) => count === 2,
    );
    expect(read).toEqual([10, 20]);
  });

  test('that left the view and came back meanwhile was not in view for the time', async () => {
    const { tracker, read } = start();
    tracker.updateSeqInView(10);
    tracker.updateSeqInView(4);
    tracker.updateSeqInView(10);
    await eventually(
      () => read.length,
      (count) => count === 2,
    );
    expect(read).toEqual([4, 10]);
  });

  test('is not read while nobody looks, and its time begins again when somebody does', async () => {
    const { tracker, seen, read } = start();
    tracker.updateSeqInView(10);
    seen.isLookedAt = false;
    tracker.startOrStopTimer();
    const other = start();
    other.tracker.updateSeqInView(1);
    await eventually(
      () => other.read.length,
      (count) => count === 1,
    );
    expect(read).toEqual([]);
    seen.isLookedAt = true;
    tracker.startOrStopTimer();
    await eventually(
      () => read.length,
      (count) => count === 1,
    );
    expect(read).toEqual([10]);
  });
});
