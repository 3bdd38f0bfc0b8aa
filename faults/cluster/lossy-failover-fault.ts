import { setTimeout as wait } from 'node:timers/promises';
import type { CleanUp } from '../clean-up.ts';
import type { Fault, Scene } from '../fault.ts';
import { take, type Behaviour } from '../receiver.ts';
import { postOf } from '../recorder.ts';
import { until } from '../until.ts';
import type { Verdict } from '../verdict.ts';
import { CATCH_UP_MS, ClusterScene } from './cluster-scene.ts';
import { reportedLoss } from './loss-report.ts';
import { lacksCluster } from './patroni-cluster.ts';

/** The time for which the primary runs before its kill while no standby copies it. */
const UNCOPIED_MS = 2_000;
const MESSAGES_AFTER = 200;

/**
 * With these replacements in patroni.yml, commits do not wait for a standby. Patroni may promote a standby that lacks
 * several seconds of changes.
 */
const ASYNCHRONOUS = {
  'synchronous_mode: true': 'synchronous_mode: false',
  'maximum_lag_on_failover: 1048576': 'maximum_lag_on_failover: 67108864',
};

/** Records the arrived posts by their text, not by seq: the server gives the seqs of lost messages to later ones. */
class ArrivedPosts {
  readonly #byPath = new Map<string, Set<number>>();

  readonly behave: Behaviour = (call) => {
    const { hook, posts } = call.delivery;
    const arrived = this.#byPath.get(hook.path) ?? new Set();
    for (const post of posts) arrived.add(post);
    this.#byPath.set(hook.path, arrived);
    take(call);
  };

  has(path: string, post: number): boolean {
    return this.#byPath.get(path)?.has(post) === true;
  }
}

/** The posts that were acknowledged before each kill, those that the database kept, and those that arrived. */
class LossRecord {
  readonly #scene: ClusterScene;
  readonly #arrived = new ArrivedPosts();
  /** By kill, then by group: the posts that were acknowledged before that kill. */
  readonly #acknowledged: (readonly ReadonlySet<number>[])[] = [];
  #begunByLastKill = 0;
  #kept: readonly ReadonlySet<number>[] = [];

  constructor(scene: ClusterScene) {
    this.#scene = scene;
    for (const receiver of [scene.stage.struck, scene.stage.healthy]) receiver.behave = this.#arrived.behave;
  }

  /** Call it when the primary has been killed. */
  noteKill(): void {
    this.#begunByLastKill = this.#scene.stage.load.begun;
    this.#acknowledged.push(this.#scene.stage.load.acknowledged.map((posts) => new Set(posts.keys())));
  }

  /** Reads which posts the database kept. Call it after the last post. */
  async readKept(): Promise<void> {
    this.#kept = await readPosts(this.#scene);
  }

  /** The number of acknowledged posts that the database lacks. */
  get lost(): number {
    return this.#groups.reduce((sum, group) => sum + this.#lostOf(group).length, 0);
  }

  /** The number of lost posts that began after the last kill: no kill explains their loss. */
  get lostAfterKills(): number {
    return this.#groups.flatMap((group) => this.#lostOf(group)).filter((post) => post >= this.#begunByLastKill).length;
  }

  /**
   * The number of posts that the database contains, that were not acknowledged before the first kill, and that did not
   * arrive. Summed over the hooks.
   */
  get missedByHooks(): number {
    return this.#scene.stage.hooks
      .map(({ record, group }) => this.#due(group).filter((post) => !this.#arrived.has(record.path, post)).length)
      .reduce((sum, missed) => sum + missed, 0);
  }

  /** The same count as `missedByHooks`, for live clients: posts that did not arrive, summed over the clients. */
  get missedByClients(): number {
    const { liveClients } = this.#scene;
    return this.#groups
      .flatMap((group) => this.#due(group).map((post) => liveClients.clientsWithout(group, post)))
      .reduce((sum, missed) => sum + missed, 0);
  }

  get #groups(): number[] {
    return [...this.#scene.stage.groups.keys()];
  }

  #lostOf(group: number): number[] {
    return [...this.#scene.stage.load.acknowledged[group]!.keys()].filter((post) => !this.#kept[group]?.has(post));
  }

  #due(group: number): number[] {
    return [...(this.#kept[group] ?? [])].filter((post) => this.#acknowledged[0]?.[group]?.has(post) === false);
  }
}

async function openLossyFailover(cleanUp: CleanUp): Promise<Scene> {
  const scene = await ClusterScene.open(cleanUp, { patroniTexts: ASYNCHRONOUS, isSynchronous: false });
  const { cluster, stage, liveClients } = scene;
  const record = new LossRecord(scene);
  return {
    stage,
    strike: (run) => strike(scene, record, run),
    afterwards: async () => {
      await cluster.untilHealthy();
      await stage.goOn(MESSAGES_AFTER);
      await liveClients.untilCurrent();
      liveClients.startEditing();
    },
    settle: async () => {
      await liveClients.stopEditing();
      await record.readKept();
      const isThere = (): boolean => record.missedByHooks === 0 && record.missedByClients === 0;
      await until('hooks and live clients have what was posted afterwards', isThere, CATCH_UP_MS).catch(() => {});
    },
    verdict: (): Verdict => {
      const lost = record.missedByHooks;
      const violations = lost > 0 ? [`${lost} messages that were posted afterwards did not arrive at a hook`] : [];
      return { lost, outOfOrder: 0, duplicates: 0, worstDuplicates: 0, allowedDuplicates: 0, violations };
    },
    violations: () => violationsOf(scene, record),
    remark: () =>
      `${scene.remark()}; ${record.lost} messages were gone with the primaries, as asynchronous replication has it`,
  };
}

/**
 * Kills the primary, and in every second run a node too: only that node may have the newest record of the changes
 * (witness).
 */
async function strike(scene: ClusterScene, record: LossRecord, run: number): Promise<void> {
  const { cluster, stage } = scene;
  const primary = await cluster.primary();
  await cluster.cutReplication(primary);
  // During this wait only this primary has the posts that are acknowledged.
  await wait(UNCOPIED_MS);
  // After the failover another message gets the seq of a lost one. An edit by that seq would give it the text of the
  // lost message.
  await scene.liveClients.stopEditing();
  await primary.kill();
  record.noteKill();
  const isNodeKilled = run % 2 === 1;
  if (isNodeKilled) await stage.server.end('SIGKILL');
  await scene.untilPostsAreTaken();
  // If replication were restored earlier, the kernel would send the killed server's last packets to the standbys.
  await cluster.restoreReplication(primary);
  if (isNodeKilled) await stage.server.start();
  await primary.startPatroni();
  stage.faultEnds();
}

function violationsOf({ liveClients, stage }: ClusterScene, record: LossRecord): string[] {
  const { lost, lostAfterKills, missedByClients } = record;
  return [
    ...liveClients.violations,
    ...(missedByClients > 0 ? [`live clients missed ${missedByClients} messages that were posted afterwards`] : []),
    ...(lostAfterKills > 0 ? [`${lostAfterKills} messages were lost that were posted afterwards`] : []),
    ...(lost === 0 ? ['the new primary lacked nothing: nothing was struck'] : []),
    ...(lost > 0 && reportedLoss(stage) === null ? ['no server told that history was lost'] : []),
  ];
}

/** The posts of each group that the database contains now. */
async function readPosts({ cluster, stage }: ClusterScene): Promise<Set<number>[]> {
  const primary = await cluster.primary();
  const rows = await primary.sql('select conversation_id, text from message', 'klatch');
  const posts = stage.groups.map(() => new Set<number>());
  for (const row of rows) {
    const [conversation, text] = row.split('|') as [string, string];
    const group = stage.groups.findIndex(({ id }) => id === Number(conversation));
    const post = postOf(text);
    if (group !== -1 && post !== null) posts[group]!.add(post);
  }
  return posts;
}

export const lossyFailoverFault: Fault = {
  name: 'cluster-lossy-failover',
  title: 'cluster: asynchronous, replication cut 2 s before the kill',
  runs: { full: 4, quick: 2, test: 1 },
  runMs: 180_000,
  // Seqs repeat in this fault, so that the usual count of duplicates does not apply: its verdict identifies messages by
  // text.
  repeatsPerLane: 0,
  lacks: lacksCluster,
  open: openLossyFailover,
};
