import { setTimeout as wait } from 'node:timers/promises';
import type { LiveConfig } from '../config/config.ts';
import type { Log } from '../log.ts';
import type { AccountId, ConversationId, SessionId } from '../model/ids.ts';
import type { SourceKey } from '../model/source-key.ts';
import type { AccountCaller } from '../operations/caller.ts';
import type { Operation } from '../operations/operation.ts';
import { Rate } from '../operations/rate.ts';
import type { Services } from '../operations/services.ts';
import { Admission } from './admission.ts';
import type { CloseReason } from './close-codes.ts';
import { connectionKinds, type ConnectionKind } from './connection-kind.ts';
import type { Connection } from './connection.ts';
import type { Feeds } from './feeds.ts';
import { Foreground } from './foreground.ts';
import type { LiveCounts, LiveEnding } from './live-counts.ts';
import { Session, type SessionHome, type SessionState } from './session.ts';

/**
 * Requests of those who have not said who they are, by source: a thousand clients of one network come back at
 * once after a restart. Who presents tokens that hold nothing is slowed by another rate.
 */
const STRANGERS = { perSecond: 500, burst: 5_000, keys: 10_000 };
const MAX_HOLD_BACK_MS = 5_000;
const SOURCES = 10_000;
const states = ['waiting', 'authenticated', 'following', 'closing'] as const;

/** What is told of sessions that come and go. */
export interface SessionNews {
  signedIn(): void;
  /** The account's first session on this node that somebody looks at came. */
  came(accountId: AccountId): void;
  /** Its last one ended. */
  went(accountId: AccountId): void;
  /** Its last one said that nobody looks at it any more. */
  turnedAway(accountId: AccountId): void;
  /** Somebody has to find out what a membership is. */
  asked(conversationId: ConversationId, accountId: AccountId): void;
  /** A promise while it is being found out whether the session holds. */
  certain(session: Session): Promise<void> | null;
}

/** Every session of this node, and by whom they are. */
export class LiveSessions implements SessionHome {
  readonly config: LiveConfig;
  readonly services: Services;
  readonly operations: ReadonlyMap<string, Operation>;
  readonly counts: LiveCounts;
  readonly feeds: Feeds;
  readonly log: Log;
  readonly admission: Admission;
  readonly foreground = new Foreground();
  readonly #news: SessionNews;
  readonly #all = new Set<Session>();
  readonly #byAccount = new Map<AccountId, Session[]>();
  readonly #bySession = new Map<SessionId, Session[]>();
  readonly #strangers = new Rate<SourceKey>(STRANGERS);
  readonly #rejections: Rate<SourceKey>;
  #nowMs = 0;
  #lookedAtMs = performance.now();
  #onEmpty: (() => void) | null = null;

  constructor(
    services: Services,
    operations: ReadonlyMap<string, Operation>,
    parts: { counts: LiveCounts; feeds: Feeds; news: SessionNews },
  ) {
    this.services = services;
    this.operations = operations;
    this.config = services.config.live;
    this.log = services.log;
    this.counts = parts.counts;
    this.feeds = parts.feeds;
    this.#news = parts.news;
    this.admission = new Admission(this.config);
    const perSecond = services.config.limits.unknownTokenRate;
    this.#rejections = new Rate({ perSecond, burst: perSecond, keys: SOURCES });
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  get all(): ReadonlySet<Session> {
    return this.#all;
  }

  /** Accounts that have a session here. */
  get accounts(): Iterable<AccountId> {
    return this.#byAccount.keys();
  }

  of(accountId: AccountId): readonly Session[] {
    return this.#byAccount.get(accountId) ?? [];
  }

  bySession(id: SessionId): readonly Session[] {
    return this.#bySession.get(id) ?? [];
  }

  /** A session for an admitted connection, which waits for it to say who it is. */
  open(connection: Connection): Session {
    const session = new Session(connection, this);
    this.#all.add(session);
    return session;
  }

  admit(session: Session, caller: AccountCaller): boolean {
    const others = this.of(caller.accountId);
    if (others.length >= this.config.connectionsPerUser) return false;
    push(this.#byAccount, caller.accountId, session);
    push(this.#bySession, caller.sessionId, session);
    this.admission.settled(session.connection.source);
    this.#news.signedIn();
    this.lookedAt(session, caller.accountId);
    return true;
  }

  lookedAt(session: Session, accountId = session.accountId): void {
    const { foreground } = this;
    if (session.isForeground) {
      if (foreground.enter(accountId)) this.#news.came(accountId);
    } else if (foreground.leave(accountId)) this.#news.turnedAway(accountId);
  }

  reserve(caller: AccountCaller | null, source: SourceKey, maxMs: number): number | null {
    if (caller === null) return this.#strangers.reserve(source, maxMs);
    return this.services.sessionRate.reserve(caller.sessionId, maxMs);
  }

  async holdBack(source: SourceKey): Promise<void> {
    const waitMs = this.#rejections.reserve(source, MAX_HOLD_BACK_MS) ?? MAX_HOLD_BACK_MS;
    if (waitMs > 0) await wait(waitMs, undefined, { ref: false });
  }

  certain(session: Session): Promise<void> | null {
    return this.#news.certain(session);
  }

  ask(conversationId: ConversationId, accountId: AccountId): void {
    this.#news.asked(conversationId, accountId);
  }

  left(session: Session, { before, endedBy }: { before: SessionState; endedBy: LiveEnding }): void {
    if (before !== 'closing') {
      this.counts.closed[endedBy] += 1;
      if (before === 'waiting') this.admission.settled(session.connection.source);
      this.#forget(session);
    }
    if (session.state !== 'closed') return;
    this.#all.delete(session);
    this.admission.leave();
    if (this.#all.size === 0) this.#onEmpty?.();
  }

  /**
   * Heartbeats and deadlines of all sessions: one timer for all of them, every `everyMs`. While this process stood still
   * nobody was heard, and what they said is read after this: such a pause counts no longer than two looks.
   */
  look(everyMs: number): void {
    const atMs = performance.now();
    this.#nowMs += Math.min(atMs - this.#lookedAtMs, 2 * everyMs);
    this.#lookedAtMs = atMs;
    for (const session of this.#all) session.look(this.#nowMs);
  }

  /** Ends every session and resolves when the last one is over; what is left after `timeoutMs` is cut. */
  async end(reason: CloseReason, timeoutMs: number): Promise<void> {
    if (this.#all.size === 0) return;
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    for (const session of this.#all) session.end(reason);
    const timer = setTimeout(() => {
      for (const session of this.#all) session.destroy();
    }, timeoutMs);
    await empty;
    clearTimeout(timer);
  }

  /** How many there are, by what carries them and how far they are. */
  tally(): { kind: ConnectionKind; state: (typeof states)[number]; sessions: number; bytesWaiting: number }[] {
    const rows = connectionKinds.flatMap((kind) =>
      states.map((state) => ({ kind, state, sessions: 0, bytesWaiting: 0 })),
    );
    for (const { connection, state } of this.#all) {
      const row = rows.find((each) => each.kind === connection.kind && each.state === state);
      if (row === undefined) continue;
      row.sessions += 1;
      row.bytesWaiting += connection.bytesWaiting;
    }
    return rows;
  }

  #forget(session: Session): void {
    const { caller } = session;
    if (caller === null) return;
    drop(this.#byAccount, caller.accountId, session);
    drop(this.#bySession, caller.sessionId, session);
    if (session.isForeground && this.foreground.leave(caller.accountId)) this.#news.went(caller.accountId);
  }
}

function push<Key>(map: Map<Key, Session[]>, key: Key, session: Session): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [session]);
  else list.push(session);
}

/** Makes a new list, since somebody may be going through the old one. */
function drop<Key>(map: Map<Key, Session[]>, key: Key, session: Session): void {
  const list = map.get(key)?.filter((each) => each !== session) ?? [];
  if (list.length === 0) map.delete(key);
  else map.set(key, list);
}
