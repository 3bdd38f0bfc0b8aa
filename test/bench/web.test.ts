import { describe, expect, test } from '@jest/globals';
import { isGoalMet, isMet } from '../../bench/web/rows.ts';
import { lagsOf, slopeOf } from '../../bench/web/series.ts';
import { frameTimes, type TraceEvent } from '../../bench/web/trace.ts';
import { renderWebFigures } from '../../scripts/web-figures-page.ts';

describe('a bar', () => {
  test('of a time is one of the ratio to the bare page, whatever the milliseconds are', () => {
    expect(isMet('switchFetched', { klatch: 3_000, bare: 2_000, ratio: 1.5 })).toBe(true);
    expect(isMet('switchFetched', { klatch: 50, bare: 33, ratio: 1.51 })).toBe(false);
    expect(isMet('switchFetched', { klatch: 50 })).toBe(false);
  });

  test('is missed where The Lounge is faster at the same', () => {
    expect(isMet('coldStart', { klatch: 100, bare: 50, ratio: 2, lounge: 99 })).toBe(false);
    expect(isMet('coldStart', { klatch: 100, bare: 50, ratio: 2, lounge: 100 })).toBe(true);
    // The Lounge shows no own message before its server has it, so this figure is not compared.
    expect(isMet('ownShown', { klatch: 40, lounge: 30 })).toBe(true);
  });

  test('holds at its value, and a row without one cannot miss it', () => {
    expect(isMet('longNodes', { klatch: 2_500 })).toBe(true);
    expect(isMet('longNodes', { klatch: 2_501 })).toBe(false);
    expect(isMet('requests', { klatch: 6 })).toBe(true);
    expect(isGoalMet('requests', { klatch: 6 })).toBe(false);
    expect(isGoalMet('jump', { klatch: 6 })).toBeNull();
  });
});

test('a message counts as shown with the first frame that shows it or a later one, and as never shown after the last', () => {
  const commits = [
    { number: 3, atMs: 130 },
    { number: 1, atMs: 100 },
    { number: 2, atMs: 120 },
    { number: 4, atMs: 140 },
  ];
  expect(
    lagsOf(commits, [
      [110, 1],
      [150, 3],
    ]),
  ).toEqual([10, 30, 20, Number.POSITIVE_INFINITY]);
});

test('the slope of a heap is that of the line through all samples, in MB a minute', () => {
  const at = (seconds: number, megabytes: number) => ({ atMs: seconds * 1_000, megabytes });
  expect(slopeOf([at(0, 10), at(30, 11), at(60, 12)])).toBeCloseTo(2, 9);
  expect(slopeOf([at(0, 10), at(30, 14), at(60, 10)])).toBeCloseTo(0, 9);
  expect(slopeOf([at(0, 10)])).toBe(0);
});

describe('the work of a frame', () => {
  const thread = { pid: 1, tid: 2 };
  const name = { name: 'thread_name', ph: 'M', ts: 0, args: { name: 'CrRendererMain' }, ...thread };
  const task = (ts: number, dur: number, tdur = dur): TraceEvent => ({
    name: 'RunTask',
    ph: 'X',
    ts,
    dur,
    tdur,
    ...thread,
  });
  const frame = (ts: number): TraceEvent => ({ name: 'Commit', ph: 'I', ts, ...thread });

  test('is that of all tasks from the task which begins it to the next such task', () => {
    const events = [
      name,
      task(0, 50_000),
      task(100_000, 4_000),
      frame(100_001),
      task(105_000, 3_000),
      task(116_000, 2_000),
      frame(116_001),
    ];
    expect(frameTimes(events)).toEqual({ workMs: 7, longestMs: 50 });
  });

  test('is processor time, and that of other threads is none of it', () => {
    const other: TraceEvent = { ...task(101_000, 90_000), tid: 3 };
    const events = [
      name,
      { ...name, tid: 3, args: { name: 'Compositor' } },
      task(100_000, 40_000, 5_000),
      frame(100_001),
      other,
    ];
    expect(frameTimes(events)).toEqual({ workMs: 5, longestMs: 5 });
  });
});

test('the page shows a bar that has moved beside the former one, a missed one as missed, and how far a goal is', () => {
  const machine = { cores: 2, memoryGiB: 24, kernel: 'Linux 6', node: '24', postgresql: '18', commit: 'abc' };
  const measures = {
    switchFetched: { klatch: 300, bare: 100, ratio: 3, lounge: 500 },
    coldStart: { klatch: 240, bare: 60, ratio: 4, lounge: 360 },
    longNodes: { klatch: 1_800 },
  };
  const page = renderWebFigures({ date: '2026-11-27', machine, chromium: '156', lounge: '4.5.2', measures });
  expect(page).toContain('| 300 ms | 100 ms | 3 | 500 ms | 1.5 × bare | **no** |  |  |');
  expect(page).toContain('| 1,800 nodes |  |  |  | 2,500 nodes | yes | 1,500 nodes | 1.2 times |');
  expect(page).toContain('1.5 times the bare page, formerly 250 ms (goal 120 ms)');
  expect(page).toContain('formerly 800 ms (goal 450 ms), then 2.5 times the bare page: the bare page is one file');
});
