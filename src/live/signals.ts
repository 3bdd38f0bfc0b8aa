import type { Bus, Membership, Signal } from '../bus/bus.ts';
import type { Log } from '../log.ts';
import { BoundedCache } from '../model/bounded-cache.ts';
import type { AccountId } from '../model/ids.ts';
import { findPersona, listAudiences, type Persona } from '../storage/presence.ts';
import type { Pool } from '../storage/pool.ts';
import type { Feeds } from './feeds.ts';
import { presenceText, readText, typingText } from './frames.ts';
import type { LiveSessions } from './live-sessions.ts';
import { Prepared } from './prepared.ts';
import type { StreamSession } from './stream-session.ts';
import { logFailure } from './log-failure.ts';

/** In larger conversations nobody is told who writes, comes or goes: it would cost more than the messages do. */
const MAX_AUDIENCE = 200;
/** One who goes on writing is told of so often. */
const TYPING_MS = 2_000;
const WRITERS = 10_000;
const PERSONAS = 10_000;
const PERSONAS_MS = 60_000;
/** Comings and goings that wait to be told, and that one query finds the audience of. */
const MAX_CHANGES = 10_000;
const CHANGES_AT_ONCE = 200;
const QUERY_MS = 1_500;

/** Tells sessions what passes: who writes, what was read on another device, who came and went. Where it fails it is lost. */
export class Signals {
  readonly #bus: Bus;
  readonly #pool: Pool;
  readonly #sessions: LiveSessions;
  readonly #feeds: Feeds;
  readonly #log: Log;
  readonly #typing = new BoundedCache<string, true>(WRITERS, { ttl: TYPING_MS });
  readonly #personas = new BoundedCache<AccountId, Persona>(PERSONAS, { ttl: PERSONAS_MS });
  readonly #changes = new Map<AccountId, boolean>();
  #isTelling = false;
  #unsubscribe: () => void = () => {};

  constructor(options: { bus: Bus; pool: Pool; sessions: LiveSessions; feeds: Feeds; log: Log }) {
    this.#bus = options.bus;
    this.#pool = options.pool;
    this.#sessions = options.sessions;
    this.#feeds = options.feeds;
    this.#log = options.log;
  }

  start(): void {
    this.#unsubscribe = this.#bus.subscribe({
      signal: (signal) => this.#heard(signal),
      accountsChanged: (ids) => {
        for (const id of ids) this.#personas.delete(id);
      },
    });
  }

  stop(): void {
    this.#unsubscribe();
    this.#changes.clear();
  }

  /** Somebody came or went; told with the next `look`, and only what it has come to by then. */
  changed(accountId: AccountId, online: boolean): void {
    this.#changes.delete(accountId);
    if (this.#changes.size < MAX_CHANGES) this.#changes.set(accountId, online);
  }

  /** Called about every second. */
  look(): void {
    if (this.#changes.size > 0 && !this.#isTelling) void this.#tellPresence();
  }

  #heard(signal: Signal): void {
    if (signal.kind === 'typing') void this.#tellTyping(signal);
    else if (signal.kind === 'read') {
      const { conversationId, accountId, seq } = signal;
      const sessions = this.#sessions.of(accountId).filter(({ stream }) => stream?.follows(conversationId));
      for (const session of sessions) session.send(readText(conversationId, seq));
    }
  }

  async #tellTyping({ conversationId, accountId }: Membership): Promise<void> {
    const feed = this.#feeds.get(conversationId);
    const name = `${conversationId}:${accountId}`;
    if (feed === null || feed.attached.size > MAX_AUDIENCE || this.#typing.has(name)) return;
    this.#typing.set(name, true);
    const persona = await this.#persona(accountId);
    if (persona === null) return;
    const frame = new Prepared([typingText(conversationId, persona)]);
    for (const { session } of feed.attached) if (session.accountId !== accountId) session.sendPrepared(frame, 0);
  }

  async #persona(id: AccountId): Promise<Persona | null> {
    const known = this.#personas.get(id);
    if (known !== undefined) return known;
    try {
      const found = await this.#pool.run((sql) => findPersona(sql, id), QUERY_MS);
      if (found !== null) this.#personas.set(id, found);
      return found;
    } catch (error) {
      logFailure(this.#log, 'live: a signal was lost', error);
      return null;
    }
  }

  async #tellPresence(): Promise<void> {
    this.#isTelling = true;
    const changes = new Map([...this.#changes].slice(0, CHANGES_AT_ONCE));
    for (const id of changes.keys()) this.#changes.delete(id);
    try {
      const asked = { accounts: [...changes.keys()], conversations: this.#feeds.ids(), maxMembers: MAX_AUDIENCE };
      const audiences = await this.#pool.run((sql) => listAudiences(sql, asked), QUERY_MS);
      for (const [id, found] of Map.groupBy(audiences, (each) => each.id)) {
        const { nick, name } = found[0]!;
        const frame = new Prepared([presenceText({ id, nick, name }, changes.get(id)!)]);
        const followers = found.flatMap((each) => [...(this.#feeds.get(each.conversationId)?.attached ?? [])]);
        const sessions = new Set<StreamSession>(followers.map(({ session }) => session));
        for (const session of sessions) if (session.accountId !== id) session.sendPrepared(frame, 0);
      }
    } catch (error) {
      logFailure(this.#log, 'live: signals were lost', error);
    }
    this.#isTelling = false;
  }
}
