import { allFaults } from './all.ts';
import { CleanUp } from './clean-up.ts';
import { runFault } from './fault.ts';
const only = process.argv[2]?.split(',');
const n = process.argv[3];
for (const f of allFaults) {
  if (only && !only.includes(f.name)) continue;
  const r = await runFault(f, n ? Number(n) : f.runs.quick, new CleanUp());
  const { recoveries, ...rest } = r;
  console.log(JSON.stringify(rest), recoveries.map(r => `${Math.round(r.firstMs)}/${Math.round(r.allMs)}`).join(' '));
}
