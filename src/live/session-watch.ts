import type { Bus } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import type { AccountCaller } from '../operations/caller.ts';
import { findHeldSessions } from '../storage/following.ts';
import type { Pool } from '../storage/pool.ts';
import type { LiveSessions } from './live-sessions.ts';
import type { Session } from './session.ts';
import { logFailure } from './log-failure.ts';

const AT_ONCE = 2_000;

/**
 * Whether sessions still hold: those that are ended go at once, those of changed accounts work on nothing before it is
 * known what the account is now, and all of them are looked up from time to time, since a session can run out.
 */
export class SessionWatch {
  readonly #bus: Bus;
  readonly #pool: Pool;
  readonly #sessions: LiveSessions;
  readonly #log: Log;
  readonly #uncertain = new WeakMap<Session, Promise<void>>();
  #checks = 0;
  /** Of each session the newest look-up that said what its account is. */
  readonly #renewedBy = new WeakMap<Session, number>();
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
        for (const id of ids) for (const session of this.#sessions.bySession(id)) session.close('sessionEnded');
      },
      accountsChanged: (ids) => {
        const sessions = ids.flatMap((id) => this.#sessions.of(id));
        if (sessions.length === 0) return;
        const checked = this.#check(sessions);
        for (const session of sessions) this.#uncertain.set(session, checked);
      },
    });
  }

  stop(): void {
    this.#unsubscribe();
  }

  certain(session: Session): Promise<void> | null {
    return this.#uncertain.get(session) ?? null;
  }

  /** Looks all of them up. */
  async checkAll(): Promise<void> {
    const all = [...this.#sessions.all].filter((session) => session.caller !== null && session.isOpen);
    for (let start = 0; start < all.length; start += AT_ONCE) await this.#check(all.slice(start, start + AT_ONCE));
  }

  async #check(sessions: readonly Session[]): Promise<void> {
    const ids = sessions.map((session) => idOf(session));
    this.#checks += 1;
    const check = this.#checks;
    try {
      const found = await this.#pool.run((sql) => findHeldSessions(sql, ids));
      const held = new Map(found.map((each) => [each.id, each]));
      for (const session of sessions) {
        const now = held.get(idOf(session));
        if (now === undefined) session.close('sessionEnded');
        // An answer that was long on its way tells of what was before.
        else if (check > (this.#renewedBy.get(session) ?? 0)) {
          this.#renewedBy.set(session, check);
          session.renewed(now);
        }
      }
    } catch (error) {
      // While the database is away nobody is told anything new, and the next look comes.
      logFailure(this.#log, 'live: sessions could not be looked up', error);
    }
  }
}

function idOf(session: Session): AccountCaller['sessionId'] {
  return session.caller!.sessionId;
}
