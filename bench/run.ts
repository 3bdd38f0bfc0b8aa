/**
 * `make bench` and `make bench ONLY=intake,forward` exit 1 when a target is missed. `make bench BASE=<commit>` compares
 * with a former commit instead, for at most MINUTES (30) a benchmark. It exits 1 when a bar is missed.
 */
import { benchBacklog } from './backlog.ts';
import { benchCallers } from './callers.ts';
import { compareWith } from './compare/compare.ts';
import { benchFanOut } from './fan-out.ts';
import { benchFiles } from './files.ts';
import { benchForward } from './forward.ts';
import { benchGrowth } from './growth.ts';
import { benchIdle } from './idle.ts';
import { benchIntake } from './intake.ts';
import { benchIsolation } from './isolation.ts';
import { benchLatency } from './latency.ts';
import { benchMutatedPosts } from './mutated-posts.ts';
import { packagedOptions } from './support/packaged-options.ts';
import { benchPresence } from './presence.ts';
import { benchPush } from './push.ts';
import { benchStart } from './start.ts';
import { benchSync } from './sync.ts';
import { benchWeb } from './web/web.ts';

const COMPARE_MINUTES = 30;

const benches: Record<string, () => Promise<boolean>> = {
  intake: benchIntake,
  forward: benchForward,
  growth: benchGrowth,
  isolation: benchIsolation,
  backlog: () => benchBacklog(),
  latency: benchLatency,
  'fan-out': benchFanOut,
  idle: benchIdle,
  presence: () => benchPresence(),
  sync: benchSync,
  files: benchFiles,
  push: benchPush,
  start: benchStart,
  callers: benchCallers,
  mutated: benchMutatedPosts,
  web: benchWeb,
};
const given = (process.argv[2] ?? '').split(',').filter((name) => name !== '');
const base = process.env['BASE'] ?? '';
if (base === '') {
  await measure(given.length === 0 ? Object.keys(benches) : given);
} else {
  const held = await compareWith(base, given, Number(process.env['MINUTES'] || COMPARE_MINUTES));
  process.exitCode = held ? 0 : 1;
}

async function measure(only: readonly string[]): Promise<void> {
  const unknown = only.filter((name) => benches[name] === undefined);
  if (unknown.length > 0) {
    console.error(`there is no benchmark ${unknown.join(', ')}; there are ${Object.keys(benches).join(', ')}`);
    process.exit(64);
  }
  process.env['NODE_OPTIONS'] = packagedOptions();
  let reached = true;
  for (const name of only) reached = (await benches[name]!()) && reached;
  process.exitCode = reached ? 0 : 1;
}
