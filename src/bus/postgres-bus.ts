import { randomBytes } from 'node:crypto';
import type { Log } from '../log.ts';
import type { ConversationId } from '../model/ids.ts';
import { Connection } from '../storage/connection.ts';
import type { Database } from '../storage/database.ts';
import { listen, notify } from '../storage/notifications.ts';
import { LocalBus, type Bus, type BusEvents } from './bus.ts';
import { Confirmations } from './confirmations.ts';
import { hearWord, MAX_PAYLOAD_BYTES, Outbox, type ToldEvent } from './words.ts';

const HEARTBEAT_MS = 5_000;
const RECONNECT_MS = 500;
const QUERY_MS = 2_000;

export interface PostgresBusOptions {
  /** Who this process is to the others, and the holder of its leases; without one a random name. */
  readonly node?: string;
  /** How often the listening session is tried; after two and a half times that without an echo it is made anew. */
  readonly heartbeatMs?: number;
}

/**
 * The bus over LISTEN and NOTIFY. A payload is `<node> <kind><items>;<kind><items>` with the kinds of `words.ts`, `*`
 * (anything may have changed) and `.` (heartbeat). Each node hears its own heartbeat through the database: when it does not, the session is made anew and a gap is announced.
 *
 * A question to one node is `?<nonce>,<node>,<conversation>`: that node says `h` to its own listeners and answers
 * `!<nonce>` in the same turn. Questions and answers wait for no other word and are never folded into a `*`.
 */
export class PostgresBus implements Bus {
  readonly #local = new LocalBus();
  readonly #database: Database;
  readonly #log: Log;
  readonly #node: string;
  readonly #session: Connection;
  readonly #heartbeatMs: number;
  readonly #confirmations = new Confirmations();
  #outbox = new Outbox();
  #sending = false;
  #heard = 0;
  /** Since when this session listens, and when it last heard another node; on the monotonic clock. */
  #listeningSince = Number.POSITIVE_INFINITY;
  #neighbourAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #stopped = true;

  constructor(database: Database, log: Log, options: PostgresBusOptions = {}) {
    this.#database = database;
    this.#log = log;
    this.#node = options.node ?? randomBytes(6).toString('hex');
    this.#heartbeatMs = options.heartbeatMs ?? HEARTBEAT_MS;
    this.#session = new Connection(database.target, 'listen', {
      onNotify: (payload) => this.#receive(payload),
      onClose: () => this.#arm(RECONNECT_MS),
    });
  }

  /** Begins to listen, with a gap at first; words that were published before are told now. */
  start(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    void this.#beat();
    if (!this.#sending) void this.#send();
  }

  stop(): void {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#session.close();
    this.#confirmations.stop();
  }

  subscribe(listener: Partial<BusEvents>): () => void {
    return this.#local.subscribe(listener);
  }

  publish<Event extends ToldEvent>(event: Event, payload: Parameters<BusEvents[Event]>[0]): void {
    this.#local.publish(event, payload);
    if (this.#alone) return;
    this.#outbox.add(event, payload);
    if (!this.#sending && !this.#stopped) void this.#send();
  }

  /** Asked though we may believe ourselves alone: the lease table knows of a node that was not heard. */
  confirmHooksChanged(node: string, conversation: ConversationId, timeoutMs: number): Promise<boolean> {
    return this.#confirmations.ask(node, timeoutMs, (nonce) => {
      void this.#say(`?${nonce},${node},${conversation}`, timeoutMs);
    });
  }

  /** A word that waits for no other. Where it is lost, whoever asked hears no answer and asks again. */
  async #say(word: string, timeoutMs: number): Promise<void> {
    if (this.#stopped) return;
    try {
      await this.#database.general.run((sql) => notify(sql, `${this.#node} ${word}`), timeoutMs);
    } catch (error) {
      this.#log.debug('bus: a question or an answer was lost', { error });
    }
  }

  /**
   * True when for three heartbeats nobody else was heard: telling nobody would cost each commit a second one. A node
   * that comes says so with its first heartbeat, is told to look for itself, and hears every word from then on.
   */
  get #alone(): boolean {
    if (!this.#session.ready) return false;
    const quietSince = Math.max(this.#listeningSince, this.#neighbourAt);
    return performance.now() - quietSince > 3 * this.#heartbeatMs;
  }

  /** One notification at a time; what comes meanwhile goes into the next. */
  async #send(): Promise<void> {
    this.#sending = true;
    while (!this.#stopped) {
      const payload = this.#take();
      if (payload === null) break;
      try {
        await this.#database.general.run((sql) => notify(sql, payload), QUERY_MS);
      } catch (error) {
        // The next word, or the next heartbeat, tells the other nodes to look for themselves.
        this.#outbox.more = true;
        this.#log.debug('bus: a word to the other nodes was lost', { error });
        break;
      }
    }
    this.#sending = false;
  }

  #take(): string | null {
    if (this.#outbox.isEmpty) return null;
    const outbox = this.#outbox;
    this.#outbox = new Outbox();
    return `${this.#node} ${outbox.text(MAX_PAYLOAD_BYTES - this.#node.length - 1)}`;
  }

  #receive(payload: string): void {
    const [node, words = ''] = payload.split(' ', 2);
    if (node === this.#node) {
      if (words === '.') this.#heard = performance.now();
      return;
    }
    if (this.#alone) this.#outbox.more = true;
    this.#neighbourAt = performance.now();
    if (this.#outbox.more && !this.#sending && !this.#stopped) void this.#send();
    for (const word of words.split(';')) this.#hear(node!, word[0], word.slice(1).split(','));
  }

  #hear(node: string, kind: string | undefined, items: readonly string[]): void {
    if (hearWord(this.#local, kind, items)) return;
    if (kind === '?') this.#answer(items);
    else if (kind === '!') this.#confirmations.answered(node, items[0]!);
    else if (kind === '*') this.#local.publish('gap');
  }

  #answer([nonce, node, conversation]: readonly string[]): void {
    if (node !== this.#node) return;
    this.#local.publish('hooksChanged', [Number(conversation) as ConversationId]);
    void this.#say(`!${nonce}`, QUERY_MS);
  }

  /** Opens the session when there is none, and says a word to ourselves that has to come back. */
  async #beat(): Promise<void> {
    try {
      if (!this.#session.ready) {
        await this.#session.run(listen, QUERY_MS);
        this.#heard = performance.now();
        this.#listeningSince = this.#heard;
        this.#local.publish('gap');
      } else if (performance.now() - this.#heard > 2.5 * this.#heartbeatMs) {
        throw new Error('notifications do not come through');
      }
      // A listener may have stopped us; running would open the session again.
      if (this.#stopped) return;
      await this.#session.run((sql) => notify(sql, `${this.#node} .`), QUERY_MS);
      this.#arm(this.#heartbeatMs);
    } catch (error) {
      this.#log.debug('bus: the listening session is lost', { error });
      this.#session.close();
      this.#arm(RECONNECT_MS);
    }
    if (this.#outbox.more && !this.#sending && !this.#stopped) void this.#send();
  }

  #arm(ms: number): void {
    if (this.#stopped) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      void this.#beat();
    }, ms);
  }
}
