import { setTimeout as wait } from 'node:timers/promises';
import { MAX_UNSETTLED_ATTEMPTS } from '../../src/delivery/lane.ts';
import type { CleanUp } from '../clean-up.ts';
import type { Fault, Scene } from '../fault.ts';
import { ClusterScene } from './cluster-scene.ts';
import type { DatabaseMachine } from './database-machine.ts';
import { lacksCluster } from './patroni-cluster.ts';

const STALL_MS = process.env['QUICK'] ? 30_000 : 300_000;
const POLL_MS = 1_000;
/** The most PostgreSQL backends of one node that may wait for a standby at once. */
const MAX_WAITING_BACKENDS = 10;

async function openStalledStandby(cleanUp: CleanUp): Promise<Scene> {
  const patroniTexts = { 'synchronous_mode_strict: false': 'synchronous_mode_strict: true' };
  const scene = await ClusterScene.open(cleanUp, { patroniTexts, giveUpMs: 3 * STALL_MS + 240_000 });
  const { cluster, stage, judgement } = scene;
  let mostWaiting = 0;
  let standbys: DatabaseMachine[] = [];
  return {
    stage,
    ...judgement,
    strike: async () => {
      const primary = await cluster.primary();
      standbys = cluster.others(primary);
      for (const standby of standbys) standby.pause();
      const resumesAt = performance.now() + STALL_MS;
      while (performance.now() < resumesAt) {
        mostWaiting = Math.max(mostWaiting, await countWaitingBackends(primary));
        await wait(POLL_MS);
      }
      for (const standby of standbys) standby.resume();
      await scene.untilPostsAreTaken();
      stage.faultEnds();
    },
    afterwards: () => cluster.untilHealthy(),
    violations: () => [
      ...scene.violations(),
      ...(mostWaiting === 0 ? ['no commit waited for a standby: nothing was struck'] : []),
      ...(mostWaiting > MAX_WAITING_BACKENDS ? [`${mostWaiting} backends of one node waited for a standby`] : []),
    ],
    remark: () => `${scene.remark()}; ${mostWaiting} backends of one node waited at most`,
  };
}

/** The greatest number of waiting backends of one node. The database sees each node under its own address. */
async function countWaitingBackends(primary: DatabaseMachine): Promise<number> {
  const counts = await primary.sql(
    "select count(*) from pg_stat_activity where wait_event = 'SyncRep' and usename = 'klatch' group by client_addr",
  );
  return Math.max(0, ...counts.map(Number));
}

export const stalledStandbyFault: Fault = {
  name: 'cluster-stalled-standby',
  title: 'cluster: standbys stopped, synchronous_mode_strict',
  runs: { full: 1, quick: 1, test: 1 },
  runMs: 120_000 + STALL_MS,
  repeatsPerLane: MAX_UNSETTLED_ATTEMPTS,
  lacks: lacksCluster,
  open: openStalledStandby,
};
