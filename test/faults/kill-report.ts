/** `make kills`: the kill test at full length, printed as a table. */
import { killServer, runFaults } from './fault-load.ts';

const report = await runFaults({
  faults: 20,
  strike: killServer,
  messages: 5_000,
  groups: 5,
  hooksPerGroup: 4,
  clients: 16,
});
const sorted = report.recoveryMs.toSorted((a, b) => a - b);
const { recoveryMs: _all, ...counts } = report;
// oxlint-disable-next-line no-console -- it is a report
console.table({ ...counts, medianRecoveryMs: sorted[Math.floor(sorted.length / 2)], maxRecoveryMs: sorted.at(-1) });
process.exitCode = report.lost + report.postedTwice + report.outOfOrder > 0 ? 1 : 0;
