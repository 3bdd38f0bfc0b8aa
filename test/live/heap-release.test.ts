import { expect, test } from '@jest/globals';
import { HeapRelease } from '../../src/live/heap-release.ts';
import { eventually } from '../support/eventually.ts';

test('what many left behind is collected once, when nobody new has come for two looks', () => {
  let collections = 0;
  const heap = new HeapRelease(() => {
    collections += 1;
  });
  const sequence = [600, 600, 0, 5, 0, 0, 0, 999, 0, 0, 0, 1, 0, 0];
  const after = sequence.map((came) => {
    for (let n = 0; n < came; n += 1) heap.came();
    heap.look();
    return collections;
  });
  expect(after).toEqual([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
});

test('the heap can be collected so', async () => {
  const left = new WeakRef({});
  const heap = new HeapRelease();
  for (let n = 0; n < 1_000; n += 1) heap.came();
  for (let n = 0; n < 4; n += 1) heap.look();
  await eventually(
    () => left.deref() === undefined,
    (isGone) => isGone,
  );
});
