import type { ConnectionTarget, ServerAddress } from './connection-target.ts';

/** What a server said of the cluster that it belongs to. */
export interface TimelineAndSystemId {
  /** Rises with each promotion of a standby; null where the server does not tell. */
  readonly timeline: number | null;
  /** The same on all servers of a cluster, and another one after a restore into a new one; null likewise. */
  readonly systemId: string | null;
}

/** One of the servers of a target, and whether it is worked with. */
export interface ServerUse {
  /** "db1:5432". */
  readonly server: string;
  readonly isUsed: boolean;
  /** Why it was not used when it was asked last; null: it is used, or was not asked. */
  readonly rejection: string | null;
}

/** Awaited by the sessions that may write, before they are used in the new timeline. It may reject: then it is called again. */
type TimelineListener = (timeline: number) => Promise<void>;

const groups = new WeakMap<ConnectionTarget, ServerGroup>();

/** What all connections of one target have learned of its servers: which one is the primary, and what was lost. */
export class ServerGroup {
  readonly servers: readonly ServerAddress[];
  /** Sessions that were lost; a session that was greeted before the last one is asked again before it is used. */
  losses = 0;
  onNewTimeline: TimelineListener | null = null;
  #preferred = 0;
  /** True: the preferred server has answered as it should. */
  #isPreferredUsed = false;
  /** By index, as of the last time. */
  readonly #rejections = new Map<number, string>();
  #state: TimelineAndSystemId | null = null;
  #gate: Promise<void> | null = null;

  private constructor({ host, port, otherHosts = [] }: ConnectionTarget) {
    this.servers = [{ host, port }, ...otherHosts];
  }

  /** The one group of a target; shared by whoever has the same object. */
  static of(target: ConnectionTarget): ServerGroup {
    let group = groups.get(target);
    if (group === undefined) groups.set(target, (group = new ServerGroup(target)));
    return group;
  }

  /** The timeline of the last primary; null: none was met, or it does not tell. */
  get timeline(): number | null {
    return this.#state?.timeline ?? null;
  }

  /** Until it resolves nothing may be written; null: there is nothing to wait for. */
  get timelineGate(): Promise<void> | null {
    return this.#gate;
  }

  /** Indexes of the servers in the order in which they are tried. */
  order(): number[] {
    const count = this.servers.length;
    return this.servers.map((_, step) => (this.#preferred + step) % count);
  }

  /** The next try begins behind it: a deadline that ends one server's silence must not end in the same one each time. */
  markFailed(index: number, rejection: string): void {
    this.#rejections.set(index, rejection);
    if (this.#preferred !== index) return;
    this.#preferred = (index + 1) % this.servers.length;
    this.#isPreferredUsed = false;
  }

  markPreferred(index: number): void {
    this.#rejections.delete(index);
    this.#preferred = index;
    this.#isPreferredUsed = true;
  }

  /** Each server, in the order of the target. */
  get uses(): readonly ServerUse[] {
    return this.servers.map((server, index) => ({
      server: formatServer(server),
      isUsed: this.#isPreferredUsed && this.#preferred === index,
      rejection: this.#rejections.get(index) ?? null,
    }));
  }

  /** The newer timeline that makes this state one of a primary that was replaced; else null. */
  timelineKnownNewerThan({ timeline, systemId }: TimelineAndSystemId): number | null {
    const known = this.#state;
    if (known === null || known.timeline === null || timeline === null) return null;
    const isSameCluster = systemId !== null && systemId === known.systemId;
    return isSameCluster && timeline < known.timeline ? known.timeline : null;
  }

  /** True of a primary that another one has taken the place of: what it answers may be missing there. */
  isFormerPrimary(state: TimelineAndSystemId | null): boolean {
    return state !== null && this.timelineKnownNewerThan(state) !== null;
  }

  /** Takes what a primary said; begins the gate where its timeline is another one than before. */
  recordPrimaryState(state: TimelineAndSystemId): void {
    const known = this.#state;
    this.#state = state;
    const { timeline } = state;
    if (known === null || timeline === null || timeline === known.timeline) return;
    // Sessions with the former primary may still be open, which answers and does not know of its successor.
    this.losses += 1;
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

/** For messages: "db1:5432", or the file of a Unix socket. */
export function formatServer({ host, port }: ServerAddress): string {
  if (host.startsWith('/')) return `${host}/.s.PGSQL.${port}`;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
