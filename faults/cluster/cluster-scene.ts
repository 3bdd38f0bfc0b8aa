import { join } from 'node:path';
import type { CleanUp } from '../clean-up.ts';
import type { Scene } from '../fault.ts';
import { endedByItself } from '../server-faults.ts';
import { Stage, type HookKind } from '../stage.ts';
import { until } from '../until.ts';
import { LiveClients } from './live-clients.ts';
import { reportedCertainLoss, reportedLoss } from './loss-report.ts';
import { PatroniCluster } from './patroni-cluster.ts';

/** This number of callers, each with a pause of GAP_MS after an answer, post about 300 messages a second together. */
const CALLERS = 16;
const GAP_MS = 30;
/**
 * The time after which a caller repeats a post. It is longer than `limits.intake-timeout`, after which the server
 * answers posts that wait for the end of an outage.
 */
const ANSWER_TIMEOUT_MS = 12_000;
const LOAD = { clients: CALLERS, gapMs: GAP_MS, answerTimeoutMs: ANSWER_TIMEOUT_MS };
export const CATCH_UP_MS = 120_000;
/**
 * Each group has one such hook, in addition to the hooks that the groups of every fault have, which request no events.
 */
const ASKS_FOR_EVENTS: HookKind = { order: 'strict', batch: 1, events: ['message.updated'] };

interface ClusterSceneOptions {
  readonly patroniTexts?: Readonly<Record<string, string>>;
  readonly isSynchronous?: boolean;
  /** A post that no server accepts within this time fails the run. */
  readonly giveUpMs?: number;
}

/**
 * Two Klatch servers with one cluster, and callers, hooks and live clients. The first server connects through HAProxy,
 * the second one with the list of database servers.
 */
export class ClusterScene {
  readonly cluster: PatroniCluster;
  readonly stage: Stage;
  readonly liveClients: LiveClients;
  readonly #startedAt = performance.now();

  private constructor(cluster: PatroniCluster, stage: Stage, liveClients: LiveClients) {
    this.cluster = cluster;
    this.stage = stage;
    this.liveClients = liveClients;
  }

  static async open(cleanUp: CleanUp, options: ClusterSceneOptions = {}): Promise<ClusterScene> {
    const { giveUpMs, ...clusterOptions } = options;
    const cluster = await PatroniCluster.start(cleanUp, clusterOptions);
    const ways = [await cluster.settings('proxy'), await cluster.settings('hosts')];
    const stage = await Stage.start(cleanUp, {
      nodes: ways.length,
      settings: `services.postgresql.embedded = false
        services.file-storage.location = "${join(cluster.folder, 'files')}"`,
      nodeSettings: (node) => ways[node]!,
      load: { ...LOAD, ...(giveUpMs === undefined ? {} : { giveUpMs }) },
      hookKinds: [ASKS_FOR_EVENTS],
    });
    const liveClients = await LiveClients.connect(stage, cleanUp);
    return new ClusterScene(cluster, stage, liveClients);
  }

  /** Resolves when the servers have accepted a post that was sent after this call. */
  async untilPostsAreTaken(): Promise<void> {
    const { load } = this.stage;
    const struckAt = performance.now();
    await until('posts are taken again', () => load.lastTakenSentAt > struckAt);
  }

  /** The checks of every cluster fault in which the servers may lose nothing. */
  get judgement(): Pick<Scene, 'settle' | 'violations' | 'precautions' | 'remark'> {
    return {
      settle: () => this.liveClients.catchUp(CATCH_UP_MS),
      violations: () => this.violations(),
      precautions: () => this.precautions(),
      remark: () => this.remark(),
    };
  }

  violations(): string[] {
    const { edits, lost, lostEvents, violations } = this.liveClients;
    return [
      ...endedByItself(this.stage),
      ...violations,
      ...(edits === 0 ? ['no edit was taken: hooks that ask for events had none'] : []),
      ...(lost > 0 ? [`live clients missed ${lost} messages and edits that were acknowledged`] : []),
      ...(lostEvents > 0 ? [`hooks missed ${lostEvents} events of edits that were acknowledged`] : []),
      ...(reportedCertainLoss(this.stage) === null ? [] : ['a server told that history was lost, and nothing was']),
    ];
  }

  /**
   * Reports a new log epoch that began although nothing was lost. As docs/database.md says, one begins if a server does
   * not answer within 3 s.
   */
  precautions(): string[] {
    const { resets } = this.liveClients;
    if (reportedCertainLoss(this.stage) !== null || reportedLoss(this.stage) === null) return [];
    return ['a new epoch began, since a server did not answer in time', `live clients were told so ${resets} times`];
  }

  remark(): string {
    const { load } = this.stage;
    const rate = Math.round((load.posted * 1000) / (performance.now() - this.#startedAt));
    return (
      `${load.unavailable} answers 503, ${load.unknownOutcomes} of them for posts that may have been written; ` +
      `${rate} posts a second, outages included; ${this.liveClients.edits} edits`
    );
  }
}
