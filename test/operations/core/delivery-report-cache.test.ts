import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { silentLog } from '../../../src/log.ts';
import { DeliveryReportCache } from '../../../src/operations/core/delivery-report-cache.ts';
import { makeGroups, makeHook } from '../../storage/fixture.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { DatabaseProxy } from '../../support/database-proxy.ts';
import { within } from '../../run/machine-speed.ts';

const FRESH_MS = 10_000;
/** The longest time that a caller may wait, plus the time that this machine may add. */
const SOON_MS = 1_000 + 3_000;

let database: TestDatabase;
let proxy: DatabaseProxy;
let clockMs = 0;

beforeEach(async () => {
  database = await createTestDatabase();
  proxy = await DatabaseProxy.start(database.target);
});
afterEach(async () => {
  await database.drop();
  await proxy.stop();
});

function createReport(): DeliveryReportCache {
  const pool = database.open(proxy.address).general;
  return new DeliveryReportCache({ pool, parkAfterMs: 1_000, log: silentLog(), now: () => clockMs });
}

const addHook = async (): Promise<void> => {
  const [group] = await makeGroups(database, 1);
  await makeHook(database, group!);
};

/** Reads the report, and measures the duration. */
async function timed(
  report: DeliveryReportCache,
): Promise<{ answer: Awaited<ReturnType<DeliveryReportCache['read']>>; ms: number }> {
  const startedAt = performance.now();
  const answer = await report.read();
  return { answer, ms: performance.now() - startedAt };
}

describe('the delivery report', () => {
  test('is read again after ten seconds and not before', async () => {
    const report = createReport();
    await addHook();
    expect(await report.read()).toMatchObject({ ageMs: 0, report: { hooks: { active: 1 } } });
    await addHook();
    clockMs += FRESH_MS - 1;
    expect(await report.read()).toMatchObject({ ageMs: FRESH_MS - 1, isFresh: true, report: { hooks: { active: 1 } } });
    clockMs += 1;
    expect(await report.read()).toMatchObject({ ageMs: 0, report: { hooks: { active: 2 } } });
  });

  test('is asked for once, however many want it at the same time', async () => {
    const report = createReport();
    const answers = await Promise.all(Array.from({ length: 20 }, () => report.read()));
    expect(new Set(answers.map((answer) => answer?.report)).size).toBe(1);
    expect(proxy.connections).toBe(1);
  });

  test('is the last one with its age while the database refuses, and null when there was none', async () => {
    const report = createReport();
    await report.read();
    await proxy.refuse();
    clockMs += FRESH_MS;
    expect(await report.read()).toMatchObject({ ageMs: FRESH_MS, isFresh: false });
    expect(await createReport().read()).toBeNull();
  });

  test('is answered within a second while the database swallows everything, and is there when it returns', async () => {
    const report = createReport();
    await report.read();
    await addHook();
    proxy.hold('both');
    clockMs += FRESH_MS;
    const { answer, ms } = await timed(report);
    expect(answer).toMatchObject({ ageMs: FRESH_MS, report: { hooks: { active: 0 } } });
    expect(ms).toBeLessThan(within(SOON_MS));
    expect((await timed(createReport())).ms).toBeLessThan(within(SOON_MS));
    await proxy.forward();
    expect(await report.read()).toMatchObject({ report: { hooks: { active: 1 } } });
  });
});
