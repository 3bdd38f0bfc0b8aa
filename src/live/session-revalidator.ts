import type { Bus } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import type { AccountCaller } from '../operations/core/caller.ts';
import { findValidSessions } from '../storage/groups/conversation-heads.ts';
import { touchIdleSessions } from '../storage/accounts/sessions.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { LiveSessions } from './live-sessions.ts';
import type { Session } from './session.ts';
import { logFailureByKind } from './log-failure.ts';

const SESSIONS_PER_QUERY = 2_000;

/**
 * Checks whether sessions are still valid:
 * - It closes ended sessions at once.
 * - Sessions of changed accounts serve no request until the account's new state was read.
 * - It looks all sessions up regularly, since a session can expire.
 */
export class SessionRevalidator {
  readonly #bus: Bus;
  readonly #pool: Pool;
  readonly #sessions: LiveSessions;
  readonly #log: Log;
  readonly #accountChangeRevalidationBySession = new WeakMap<Session, Promise<void>>();
  #lastRevalidationNumber = 0;
  /** For each session: the number of the newest revalidation whose answer was applied to it. */
  readonly #lastAppliedRevalidation = new WeakMap<Session, number>();
  #unsubscribe: () => void = () => {};

  constructor(options: { bus: Bus; pool: Pool; sessions: LiveSessions; log: Log }) {
    this.#bus = options.bus;
    this.#pool = options.pool;
    this.#sessions = options.sessions;
    this.#log = options.log;
  }

  start(): void {
    this.#unsubscribe = this.#bus.subscribe({
      sessionsEnded: (ids) => {
        for (const id of ids) for (const session of this.#sessions.bySession(id)) session.close('session_ended');
      },
      accountsChanged: (ids) => {
        const sessions = ids.flatMap((id) => this.#sessions.ofAccount(id));
        if (sessions.length === 0) return;
        const revalidation = this.#revalidateSessions(sessions);
        for (const session of sessions) this.#accountChangeRevalidationBySession.set(session, revalidation);
      },
    });
  }

  stop(): void {
    this.#unsubscribe();
  }

  whenRevalidated(session: Session): Promise<void> | null {
    return this.#accountChangeRevalidationBySession.get(session) ?? null;
  }

  async revalidateAll(): Promise<void> {
    const all = [...this.#sessions.all].filter((session) => session.caller !== null && session.isOpen);
    for (let start = 0; start < all.length; start += SESSIONS_PER_QUERY) {
      const sessionChunk = all.slice(start, start + SESSIONS_PER_QUERY);
      await this.#touchIdle(sessionChunk);
      await this.#revalidateSessions(sessionChunk);
    }
  }

  /** Extends sessions before they are looked up: an open connection counts as use, so its session does not expire. */
  async #touchIdle(sessions: readonly Session[]): Promise<void> {
    const ids = sessions.filter(({ caller }) => caller!.expiresAt !== null).map((session) => sessionIdOf(session));
    if (ids.length === 0) return;
    try {
      await this.#pool.run((sql) => touchIdleSessions(sql, ids));
    } catch (error) {
      logFailureByKind(this.#log, 'live: sessions in use could not be extended', error);
    }
  }

  async #revalidateSessions(sessions: readonly Session[]): Promise<void> {
    const ids = sessions.map((session) => sessionIdOf(session));
    this.#lastRevalidationNumber += 1;
    const revalidationNumber = this.#lastRevalidationNumber;
    try {
      const found = await this.#pool.run((sql) => findValidSessions(sql, ids));
      const valid = new Map(found.map((each) => [each.id, each]));
      for (const session of sessions) {
        const account = valid.get(sessionIdOf(session));
        if (account === undefined) session.close('session_ended');
        // Ignores the answer of a revalidation that is older than the last one applied.
        else if (revalidationNumber > (this.#lastAppliedRevalidation.get(session) ?? 0)) {
          this.#lastAppliedRevalidation.set(session, revalidationNumber);
          session.updateAccount(account);
        }
      }
    } catch (error) {
      // While the database is unreachable, sessions keep their state until the next revalidation.
      logFailureByKind(this.#log, 'live: sessions could not be looked up', error);
    }
  }
}

function sessionIdOf(session: Session): AccountCaller['sessionId'] {
  return session.caller!.sessionId;
}
