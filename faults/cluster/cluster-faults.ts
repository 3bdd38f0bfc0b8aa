import { setTimeout as wait } from 'node:timers/promises';
import { MAX_UNSETTLED_ATTEMPTS } from '../../src/delivery/lane.ts';
import type { Fault, Scene } from '../fault.ts';
import { ClusterScene } from './cluster-scene.ts';
import type { DatabaseMachine } from './database-machine.ts';
import { lossyFailoverFault } from './lossy-failover-fault.ts';
import { lacksCluster } from './patroni-cluster.ts';
import { stalledStandbyFault } from './stalled-standby-fault.ts';

/** The `ttl` of docs/cluster/patroni.yml: the time after which the lock of a primary expires unless it is renewed. */
const TTL_MS = 30_000;
const RUN_MS = 120_000;
/** Messages that every hook has to get after the former primary is back, so that any damage by it shows. */
const MESSAGES_AFTER = 25;

/** A fault of the primary, and its repair. */
interface ClusterFault extends Pick<Fault, 'name' | 'title' | 'runs'> {
  readonly patroniTexts?: Readonly<Record<string, string>>;
  readonly strike: (scene: ClusterScene, primary: DatabaseMachine) => Promise<void> | void;
  readonly repair?: (scene: ClusterScene, struck: DatabaseMachine, struckAt: number) => Promise<void>;
}

function clusterFault({ strike, repair, patroniTexts = {}, ...fault }: ClusterFault): Fault {
  return {
    ...fault,
    runMs: RUN_MS,
    repeatsPerLane: MAX_UNSETTLED_ATTEMPTS,
    lacks: lacksCluster,
    open: async (cleanUp): Promise<Scene> => {
      const scene = await ClusterScene.open(cleanUp, { patroniTexts });
      const { cluster, stage, judgement } = scene;
      let repaired: Promise<void> | undefined;
      return {
        stage,
        ...judgement,
        strike: async () => {
          const struck = await cluster.primary();
          const struckAt = performance.now();
          await strike(scene, struck);
          await scene.untilPostsAreTaken();
          stage.faultEnds();
          // The repair begins while the lanes still wait for a lease: an administrator would not wait for them either.
          repaired = repair?.(scene, struck, struckAt);
          repaired?.catch(() => {});
        },
        afterwards: async () => {
          await repaired;
          await cluster.untilHealthy();
          await stage.goOn(MESSAGES_AFTER);
          // Two cores deliver hardly more than the callers post. Unless the callers pause here, the backlog from the
          // outage would grow from run to run.
          await stage.catchUpWithoutPosts();
        },
      };
    },
  };
}

const killPostgresql = (_scene: ClusterScene, primary: DatabaseMachine): void => primary.killPostgresql();

/** Faults of a database cluster with Patroni, etcd and HAProxy, as docs/cluster.md configures them. */
export const clusterFaults: readonly Fault[] = [
  clusterFault({
    name: 'cluster-switchover',
    title: 'cluster: planned switchover',
    runs: { full: 20, quick: 2, test: 1 },
    strike: ({ cluster }) => cluster.switchOver(),
  }),
  clusterFault({
    name: 'cluster-kill',
    title: 'cluster: kill -9 of Patroni and PostgreSQL of the primary',
    runs: { full: 20, quick: 1, test: 1 },
    strike: (_scene, primary) => primary.kill(),
    repair: (_scene, struck) => struck.startPatroni(),
  }),
  clusterFault({
    name: 'cluster-postgresql-kill',
    title: 'cluster: kill -9 of PostgreSQL alone, a standby takes over',
    runs: { full: 5, quick: 1, test: 1 },
    patroniTexts: { 'primary_start_timeout: 300': 'primary_start_timeout: 0' },
    strike: killPostgresql,
  }),
  clusterFault({
    name: 'cluster-postgresql-restart',
    title: 'cluster: kill -9 of PostgreSQL alone, restarted in place',
    runs: { full: 5, quick: 1, test: 1 },
    strike: killPostgresql,
  }),
  clusterFault({
    name: 'cluster-freeze',
    title: 'cluster: primary frozen for twice the ttl',
    runs: { full: 10, quick: 1, test: 1 },
    strike: (_scene, primary) => primary.pause(),
    repair: async (_scene, struck, struckAt) => {
      // The pause lasts twice the ttl: by its end, the other servers have had a primary of their own for a while.
      await wait(Math.max(0, struckAt + 2 * TTL_MS - performance.now()));
      struck.resume();
    },
  }),
  clusterFault({
    name: 'cluster-cut-off',
    title: 'cluster: primary cut off from the others, not from a node',
    runs: { full: 10, quick: 1, test: 1 },
    strike: ({ cluster }, primary) => cluster.isolate(primary),
    repair: ({ cluster }, struck) => cluster.reconnect(struck),
  }),
  lossyFailoverFault,
  stalledStandbyFault,
];
