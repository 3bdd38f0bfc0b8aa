import type { ConnectionTarget, ServerAddress } from './connection-target.ts';

/** A server's report about its cluster. */
export interface TimelineAndSystemId {
  /**
   * The number of the timeline, which rises with each promotion of a standby; null if the server does not report it.
   */
  readonly timeline: number | null;
  /**
   * The id of the cluster, equal on all its servers; a restore into a new cluster gets another one. Null where the
   * server does not report it.
   */
  readonly systemId: string | null;
}

/** One of the servers of a target, and whether it is used. */
export interface ServerUse {
  /** The address of the server, such as "db1:5432". */
  readonly server: string;
  readonly isUsed: boolean;
  /** Why the server was not used at the last attempt; null: it is used, or was not tried. */
  readonly rejection: string | null;
}

/**
 * Called when a new timeline begins. Sessions that may write await its promise before they are used. If the promise
 * rejects, the listener is called again.
 */
type TimelineListener = (timeline: number) => Promise<void>;

const groups = new WeakMap<ConnectionTarget, ServerGroup>();

/**
 * The knowledge of all connections of one target about its servers: which one is the primary, and how many sessions
 * were lost.
 */
export class ServerGroup {
  readonly servers: readonly ServerAddress[];
  /** The number of lost sessions; a session that was greeted before the last loss is checked before its next use. */
  lostSessionCount = 0;
  onNewTimeline: TimelineListener | null = null;
  #preferredIndex = 0;
  /** True: the server with the index `#preferredIndex` was accepted at the last attempt. */
  #isPreferredUsed = false;
  /** Why servers were rejected at the last attempt, by their index. */
  readonly #rejections = new Map<number, string>();
  #state: TimelineAndSystemId | null = null;
  #gate: Promise<void> | null = null;

  private constructor({ host, port, otherHosts = [] }: ConnectionTarget) {
    this.servers = [{ host, port }, ...otherHosts];
  }

  /** The group of a target; all callers with the same target object share it. */
  static of(target: ConnectionTarget): ServerGroup {
    let group = groups.get(target);
    if (group === undefined) groups.set(target, (group = new ServerGroup(target)));
    return group;
  }

  /** The timeline of the last primary; null: none was found, or it does not report one. */
  get timeline(): number | null {
    return this.#state?.timeline ?? null;
  }

  /** No session may write until this promise resolves; null: there is no wait. */
  get timelineGate(): Promise<void> | null {
    return this.#gate;
  }

  /** Indexes of the servers in the order in which they are tried. */
  indexesToTry(): number[] {
    const count = this.servers.length;
    return this.servers.map((_, step) => (this.#preferredIndex + step) % count);
  }

  /**
   * Records why a server was rejected. The next attempt begins with the following server: otherwise each call might
   * wait for the same silent server until its deadline.
   */
  markFailed(index: number, rejection: string): void {
    this.#rejections.set(index, rejection);
    if (this.#preferredIndex !== index) return;
    this.#preferredIndex = (index + 1) % this.servers.length;
    this.#isPreferredUsed = false;
  }

  markPreferred(index: number): void {
    this.#rejections.delete(index);
    this.#preferredIndex = index;
    this.#isPreferredUsed = true;
  }

  /** The state of each server, in the order of the target. */
  get uses(): readonly ServerUse[] {
    return this.servers.map((server, index) => ({
      server: formatServer(server),
      isUsed: this.#isPreferredUsed && this.#preferredIndex === index,
      rejection: this.#rejections.get(index) ?? null,
    }));
  }

  /** The known newer timeline if this state belongs to a replaced primary; else null. */
  timelineKnownNewerThan({ timeline, systemId }: TimelineAndSystemId): number | null {
    const known = this.#state;
    if (known === null || known.timeline === null || timeline === null) return null;
    const isSameCluster = systemId !== null && systemId === known.systemId;
    return isSameCluster && timeline < known.timeline ? known.timeline : null;
  }

  /** True for a primary that a promoted standby has replaced: the new primary may lack what this one acknowledged. */
  isFormerPrimary(state: TimelineAndSystemId | null): boolean {
    return state !== null && this.timelineKnownNewerThan(state) !== null;
  }

  /**
   * Records a primary's report; if its timeline differs from the known one, starts a wait of the sessions that may
   * write (`timelineGate`).
   */
  recordPrimaryState(state: TimelineAndSystemId): void {
    const known = this.#state;
    this.#state = state;
    const { timeline } = state;
    if (known === null || timeline === null || timeline === known.timeline) return;
    // Counts as a loss, so that all open sessions are checked: some may be with the former primary, which answers
    // without knowledge of its successor.
    this.lostSessionCount += 1;
    if (this.onNewTimeline === null) return;
    const gate = this.onNewTimeline(timeline).then(
      () => {
        if (this.#gate === gate) this.#gate = null;
      },
      (error: unknown) => {
        if (this.#gate === gate) [this.#gate, this.#state] = [null, known];
        throw error;
      },
    );
    gate.catch(() => {});
    this.#gate = gate;
  }
}

/** The address of a server as messages show it: "db1:5432", or the file of a Unix socket. */
export function formatServer({ host, port }: ServerAddress): string {
  if (host.startsWith('/')) return `${host}/.s.PGSQL.${port}`;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
