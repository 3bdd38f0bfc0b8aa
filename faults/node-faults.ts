import { MAX_UNSETTLED_ATTEMPTS } from '../src/delivery/lane.ts';
import type { ServerProcess } from '../test/support/server-process.ts';
import type { CleanUp } from './clean-up.ts';
import type { Fault, Scene } from './fault.ts';
import { OwnDatabase } from './own-database.ts';
import { Stage, type Recovery } from './stage.ts';

const RUNS = { full: 10, quick: 1, test: 1 };
const RUN_MS = 60_000;
/**
 * The other node takes over the lanes of a dead or frozen node within this time. The 8 s are for the pauses of a busy
 * machine.
 */
const REPLACED_MS = 15_000 + 8_000;
/** Messages that every hook has to get after the node is back, so that any damage by it shows. */
const MESSAGES_AFTER = 25;

async function openNodes(cleanUp: CleanUp): Promise<{ stage: Stage; victim: (run: number) => ServerProcess }> {
  const database = await OwnDatabase.start(cleanUp);
  const stage = await Stage.start(cleanUp, { nodes: 2, settings: database.settings() });
  // Runs strike the two nodes in turn: by then the lanes of one victim have moved to the next one.
  return { stage, victim: (run) => stage.servers[run % stage.servers.length]! };
}

function violationsOf(stage: Stage, recoveries: readonly Recovery[]): string[] {
  const worstMs = Math.max(0, ...recoveries.map(({ firstMs }) => firstMs));
  return [
    ...stage.servers.filter((server) => !server.running).map(() => 'a node that was left alone did not survive'),
    ...(worstMs > REPLACED_MS ? [`a node was replaced after ${Math.round(worstMs)} ms only`] : []),
  ];
}

async function openKilled(cleanUp: CleanUp): Promise<Scene> {
  const { stage, victim } = await openNodes(cleanUp);
  return {
    stage,
    strike: async (run) => {
      await victim(run).end('SIGKILL');
      stage.faultEnds();
    },
    afterwards: (run) => victim(run).start(),
    violations: (recoveries) => violationsOf(stage, recoveries),
  };
}

async function openFrozen(cleanUp: CleanUp): Promise<Scene> {
  const { stage, victim } = await openNodes(cleanUp);
  return {
    stage,
    strike: async (run) => {
      victim(run).signal('SIGSTOP');
      stage.faultEnds();
    },
    afterwards: async (run) => {
      // The other node has the lanes by now, so the leases of the frozen node have expired.
      victim(run).signal('SIGCONT');
      await victim(run).ready();
      await stage.goOn(MESSAGES_AFTER);
    },
    violations: (recoveries) => violationsOf(stage, recoveries),
  };
}

export const nodeFaults: readonly Fault[] = [
  {
    name: 'node-kill',
    title: 'two nodes, one killed with -9',
    runs: RUNS,
    runMs: RUN_MS,
    repeatsPerLane: MAX_UNSETTLED_ATTEMPTS,
    open: openKilled,
  },
  {
    name: 'node-freeze',
    title: 'two nodes, one frozen past its lease',
    runs: RUNS,
    runMs: RUN_MS,
    // The unsettled deliveries and one more: a request that the kernel had accepted from the node before it froze.
    repeatsPerLane: MAX_UNSETTLED_ATTEMPTS + 1,
    open: openFrozen,
  },
];
