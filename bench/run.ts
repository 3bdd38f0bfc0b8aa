/** `make bench`, or `make bench ONLY=intake,forward`. Exits 1 when a target is missed. */
import { readFileSync } from 'node:fs';
import { benchBacklog } from './backlog.ts';
import { benchFanOut } from './fan-out.ts';
import { benchFiles } from './files.ts';
import { benchForward } from './forward.ts';
import { benchGrowth } from './growth.ts';
import { benchIdle } from './idle.ts';
import { benchIntake } from './intake.ts';
import { benchIsolation } from './isolation.ts';
import { benchLatency } from './latency.ts';
import { benchPush } from './push.ts';
import { benchSync } from './sync.ts';

const benches: Record<string, () => Promise<boolean>> = {
  intake: benchIntake,
  forward: benchForward,
  growth: benchGrowth,
  isolation: benchIsolation,
  backlog: () => benchBacklog(),
  latency: benchLatency,
  'fan-out': benchFanOut,
  idle: benchIdle,
  sync: benchSync,
  files: benchFiles,
  push: benchPush,
};
const only =
  process.argv[2] === undefined || process.argv[2] === '' ? Object.keys(benches) : process.argv[2].split(',');
const unknown = only.filter((name) => benches[name] === undefined);
if (unknown.length > 0) {
  console.error(`there is no benchmark ${unknown.join(', ')}; there are ${Object.keys(benches).join(', ')}`);
  process.exit(64);
}
// Servers and baselines alike have the room for new objects that the packages give to the server.
process.env['NODE_OPTIONS'] = packagedOptions();
let reached = true;
for (const name of only) reached = (await benches[name]!()) && reached;
process.exitCode = reached ? 0 : 1;

/** Options of V8, from the unit that the packages install. */
function packagedOptions(): string {
  const unit = readFileSync(new URL('../systemd/klatch.service', import.meta.url), 'utf8');
  const options = /^Environment=NODE_OPTIONS=(.+)$/m.exec(unit)?.[1];
  if (options === undefined) throw new Error('systemd/klatch.service sets no NODE_OPTIONS');
  return options;
}
