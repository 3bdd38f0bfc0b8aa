import { expect, test } from '@jest/globals';
import { sourceKey, type SourceKey } from '../../../src/model/source-key.ts';
import { ParseBudget } from '../../../src/operations/core/parse-budget.ts';

const [a, b, first] = [sourceKey('192.0.2.1'), sourceKey('192.0.2.2'), sourceKey('192.0.2.3')];
const refusal = (): Error => new Error('refused');

const BUDGET_MS = 250;

/** Spends the budget of one second, in pieces so small that each counts in full. */
function spend(budget: ParseBudget, source: SourceKey, atMs: number): void {
  for (let piece = 0; piece < 5; piece += 1) budget.charge(source, 50, atMs);
}

test('a source has 250 ms in any second, and gets them again as the second passes', () => {
  const budget = new ParseBudget(BUDGET_MS);
  expect(budget.hasTimeLeft(a, 10_000)).toBe(true);
  for (let piece = 0; piece < 4; piece += 1) budget.charge(a, 50, 10_050);
  expect(budget.hasTimeLeft(a, 10_050)).toBe(true);
  budget.charge(a, 50, 10_450);
  expect(budget.hasTimeLeft(a, 10_450)).toBe(false);
  // The pieces of work from 10,050 ms count for one second.
  expect(budget.hasTimeLeft(a, 11_050)).toBe(false);
  expect(budget.hasTimeLeft(a, 11_150)).toBe(true);
  for (let piece = 0; piece < 4; piece += 1) budget.charge(a, 50, 11_150);
  expect(budget.hasTimeLeft(a, 11_150)).toBe(false);
  expect(budget.hasTimeLeft(a, 60_000)).toBe(true);
});

test('one source takes nothing from another one, and the machine itself has no bound', () => {
  const budget = new ParseBudget(BUDGET_MS);
  spend(budget, a, 10_000);
  expect([budget.hasTimeLeft(a, 10_000), budget.hasTimeLeft(b, 10_000), budget.hasTimeLeft(null, 10_000)]).toEqual([
    false,
    true,
    true,
  ]);
});

test('a pause of the machine within one piece of work shuts nobody out', () => {
  const budget = new ParseBudget(BUDGET_MS);
  budget.charge(a, 5_000, 10_000);
  expect(budget.hasTimeLeft(a, 10_000)).toBe(true);
});

test('work of a source without time is refused and not done', async () => {
  const budget = new ParseBudget(BUDGET_MS);
  expect(await budget.run(a, refusal, () => 'done')).toBe('done');
  spend(budget, a, performance.now());
  let isDone = false;
  const work = (): void => {
    isDone = true;
  };
  await expect(budget.run(a, refusal, work)).rejects.toThrow('refused');
  expect(isDone).toBe(false);
  expect(await budget.run(b, refusal, () => 'other')).toBe('other');
});

test('what work throws is what its caller gets, and it is counted', async () => {
  const budget = new ParseBudget(BUDGET_MS);
  const work = (): never => {
    throw new Error('from the work');
  };
  await expect(budget.run(a, refusal, work)).rejects.toThrow('from the work');
});

test('after long work everything else has a turn before more is parsed, in the order in which it came', async () => {
  const budget = new ParseBudget(BUDGET_MS);
  const order: string[] = [];
  const long = (name: string) => (): void => {
    order.push(name);
    const untilMs = performance.now() + 10;
    while (performance.now() < untilMs);
  };
  setImmediate(() => order.push('something else'));
  await Promise.all(['1', '2', '3'].map((name) => budget.run(sourceKey(name), refusal, long(name))));
  expect(order[0]).toBe('1');
  expect(order.indexOf('something else')).toBe(1);
  expect(order.filter((each) => each !== 'something else')).toEqual(['1', '2', '3']);
});

test('so many wait for the next turn, and no more', async () => {
  const budget = new ParseBudget(BUDGET_MS);
  const long = (): void => {
    const untilMs = performance.now() + 10;
    while (performance.now() < untilMs);
  };
  await budget.run(a, refusal, long);
  const outcomes = Array.from({ length: 1_100 }, () =>
    budget.run(b, refusal, () => 'done').catch((error: Error) => error.message),
  );
  const counted = await Promise.all(outcomes);
  expect(counted.filter((outcome) => outcome === 'done')).toHaveLength(1_000);
  expect(counted.slice(1_000)).toEqual(Array.from({ length: 100 }, () => 'refused'));
});

test('a caller who waits for time gets it, or is refused when there is none within the given time', async () => {
  const budget = new ParseBudget(BUDGET_MS);
  const inLine = (maxMs: number): Promise<string> => budget.runQueued(a, { maxWaitMs: maxMs, refusal }, () => 'done');
  expect(await inLine(0)).toBe('done');
  spend(budget, a, performance.now());
  await expect(inLine(0)).rejects.toThrow('refused');
  expect(await inLine(60_000)).toBe('done');
});

test('callers of one source wait in a line, in order, and one who is refused holds up nobody', async () => {
  const budget = new ParseBudget(BUDGET_MS);
  spend(budget, a, performance.now());
  const order: string[] = [];
  const inLine = (name: string, maxMs: number): Promise<void> =>
    budget
      .runQueued(a, { maxWaitMs: maxMs, refusal }, () => void order.push(name))
      .catch(() => void order.push(`not ${name}`));
  const all = [inLine('first', 60_000), inLine('second', 0), inLine('third', 60_000)];
  await inLine('fourth', 60_000);
  await Promise.all(all);
  expect(order).toEqual(['first', 'not second', 'third', 'fourth']);
});

test('callers who wait share the budget of each tenth of a second', async () => {
  const budget = new ParseBudget(BUDGET_MS);
  const bySlot = new Map<number, number>();
  const work = (): void => {
    const untilMs = performance.now() + 2;
    while (performance.now() < untilMs);
    const slot = Math.floor(performance.now() / 100);
    bySlot.set(slot, (bySlot.get(slot) ?? 0) + 1);
  };
  await Promise.all(Array.from({ length: 100 }, () => budget.runQueued(a, { maxWaitMs: 60_000, refusal }, work)));
  // A tenth of a second has 25 ms, which are 13 pieces at most. All 100 would fit into the budget of a second.
  expect(Math.max(...bySlot.values())).toBeLessThan(18);
});

test('sources that were quiet longest are forgotten first', () => {
  const budget = new ParseBudget(BUDGET_MS);
  spend(budget, first, 10_000);
  for (let other = 0; other < 9_999; other += 1) budget.charge(sourceKey(`${other}`), 1, 10_000);
  expect(budget.hasTimeLeft(first, 10_000)).toBe(false);
  for (let other = 0; other < 10_000; other += 1) budget.charge(sourceKey(`more ${other}`), 1, 10_000);
  expect(budget.hasTimeLeft(first, 10_000)).toBe(true);
});
