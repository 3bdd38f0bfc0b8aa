import { expect, test } from '@jest/globals';
import { IdleGc } from '../../src/live/idle-gc.ts';
import { eventually } from '../support/eventually.ts';

test('what many left behind is collected once, when nobody new has come for two looks', () => {
  let collections = 0;
  const idleGc = new IdleGc(() => {
    collections += 1;
  });
  const sequence = [600, 600, 0, 5, 0, 0, 0, 999, 0, 0, 0, 1, 0, 0];
  const after = sequence.map((signIns) => {
    for (let n = 0; n < signIns; n += 1) idleGc.countAuthentication();
    idleGc.tick();
    return collections;
  });
  expect(after).toEqual([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
});

test('the heap can be collected so', async () => {
  const left = new WeakRef({});
  const idleGc = new IdleGc();
  for (let n = 0; n < 1_000; n += 1) idleGc.countAuthentication();
  for (let n = 0; n < 4; n += 1) idleGc.tick();
  await eventually(
    () => left.deref() === undefined,
    (isGone) => isGone,
  );
});
