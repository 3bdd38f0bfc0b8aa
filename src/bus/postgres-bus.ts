import { randomBytes } from 'node:crypto';
import type { Log } from '../log.ts';
import type { ConversationId } from '../model/ids.ts';
import { Connection } from '../storage/db/connection.ts';
import type { Database } from '../storage/database.ts';
import { listen, notify } from '../storage/db/notifications.ts';
import { LocalBus, type Bus, type BusEvents } from './bus.ts';
import { PendingAcks } from './pending-acks.ts';
import { dispatchNotification, MAX_PAYLOAD_BYTES, NotificationBatch, type BroadcastEvent } from './wire-format.ts';

const HEARTBEAT_MS = 5_000;
const RECONNECT_MS = 500;
const QUERY_TIMEOUT_MS = 2_000;

export interface PostgresBusOptions {
  /** Who this process is to the others, and the holder of its leases; without one a random name. */
  readonly node?: string;
  /** How often the listening session is tried; after two and a half times that without an echo it is made anew. */
  readonly heartbeatMs?: number;
}

/**
 * The bus over LISTEN and NOTIFY. A payload is `<node> <kind><items>;<kind><items>` with the kinds of `wire-format.ts`, `*`
 * (anything may have changed) and `.` (heartbeat). Each node hears its own heartbeat through the database: when it does not, the session is made anew and a gap is announced.
 *
 * A question to one node is `?<nonce>,<node>,<conversation>`: that node says `h` to its own listeners and answers
 * `!<nonce>` in the same turn. Questions and answers wait for no other notification and are never folded into a `*`.
 */
export class PostgresBus implements Bus {
  readonly #local = new LocalBus();
  readonly #database: Database;
  readonly #log: Log;
  readonly #node: string;
  readonly #session: Connection;
  readonly #heartbeatMs: number;
  readonly #pendingAcks = new PendingAcks();
  #batch = new NotificationBatch();
  #isSending = false;
  #lastEchoAt = 0;
  /** Since when this session listens, and when it last heard another node; on the monotonic clock. */
  #lastListenStartedAt = Number.POSITIVE_INFINITY;
  #lastPeerSeenAt = Number.NEGATIVE_INFINITY;
  #heartbeatTimer: NodeJS.Timeout | null = null;
  #stopped = true;

  constructor(database: Database, log: Log, options: PostgresBusOptions = {}) {
    this.#database = database;
    this.#log = log;
    this.#node = options.node ?? randomBytes(6).toString('hex');
    this.#heartbeatMs = options.heartbeatMs ?? HEARTBEAT_MS;
    this.#session = new Connection(database.target, 'listen', {
      ignoresTimelineGate: true,
      onNotify: (payload) => this.#receive(payload),
      onClose: () => this.#scheduleHeartbeat(RECONNECT_MS),
    });
  }

  /** Begins to listen, with a gap at first; words that were published before are told now. */
  start(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    void this.#heartbeat();
    if (!this.#isSending) void this.#flush();
  }

  stop(): void {
    this.#stopped = true;
    if (this.#heartbeatTimer !== null) clearTimeout(this.#heartbeatTimer);
    this.#heartbeatTimer = null;
    this.#session.close();
    this.#pendingAcks.stop();
  }

  subscribe(listener: Partial<BusEvents>): () => void {
    return this.#local.subscribe(listener);
  }

  publish<Event extends BroadcastEvent>(event: Event, payload: Parameters<BusEvents[Event]>[0]): void {
    this.#local.publish(event, payload);
    if (this.#hasNoPeers) return;
    this.#batch.add(event, payload);
    if (!this.#isSending && !this.#stopped) void this.#flush();
  }

  /** Asked though we may believe ourselves alone: the lease table knows of a node that was not heard. */
  confirmHooksChanged(node: string, conversation: ConversationId, timeoutMs: number): Promise<boolean> {
    return this.#pendingAcks.request(node, timeoutMs, (nonce) => {
      void this.#notifyNow(`?${nonce},${node},${conversation}`, timeoutMs);
    });
  }

  /** A word that waits for no other. Where it is lost, whoever asked hears no answer and asks again. */
  async #notifyNow(notification: string, timeoutMs: number): Promise<void> {
    if (this.#stopped) return;
    try {
      await this.#database.general.run((sql) => notify(sql, `${this.#node} ${notification}`), timeoutMs);
    } catch (error) {
      this.#log.debug('bus: a question or an answer was lost', { error });
    }
  }

  /**
   * True when for three heartbeats nobody else was heard: telling nobody would cost each commit a second one. A node
   * that comes says so with its first heartbeat, is told to look for itself, and hears every word from then on.
   */
  get #hasNoPeers(): boolean {
    if (!this.#session.ready) return false;
    const silentSince = Math.max(this.#lastListenStartedAt, this.#lastPeerSeenAt);
    return performance.now() - silentSince > 3 * this.#heartbeatMs;
  }

  /** One notification at a time; what comes meanwhile goes into the next. */
  async #flush(): Promise<void> {
    this.#isSending = true;
    while (!this.#stopped) {
      const payload = this.#takePayload();
      if (payload === null) break;
      try {
        await this.#database.general.run((sql) => notify(sql, payload), QUERY_TIMEOUT_MS);
      } catch (error) {
        // The next word, or the next heartbeat, tells the other nodes to look for themselves.
        this.#batch.mustSendResync = true;
        this.#log.debug('bus: a word to the other nodes was lost', { error });
        break;
      }
    }
    this.#isSending = false;
  }

  #takePayload(): string | null {
    if (this.#batch.isEmpty) return null;
    const batch = this.#batch;
    this.#batch = new NotificationBatch();
    return `${this.#node} ${batch.encode(MAX_PAYLOAD_BYTES - this.#node.length - 1)}`;
  }

  #receive(payload: string): void {
    const [node, notifications = ''] = payload.split(' ', 2);
    if (node === this.#node) {
      if (notifications === '.') this.#lastEchoAt = performance.now();
      return;
    }
    if (this.#hasNoPeers) this.#batch.mustSendResync = true;
    this.#lastPeerSeenAt = performance.now();
    if (this.#batch.mustSendResync && !this.#isSending && !this.#stopped) void this.#flush();
    for (const notification of notifications.split(';'))
      this.#dispatch(node!, notification[0], notification.slice(1).split(','));
  }

  #dispatch(node: string, kind: string | undefined, items: readonly string[]): void {
    if (dispatchNotification(this.#local, kind, items)) return;
    if (kind === '?') this.#publishAndAcknowledge(items);
    else if (kind === '!') this.#pendingAcks.onAck(node, items[0]!);
    else if (kind === '*') this.#local.publish('resync');
  }

  #publishAndAcknowledge([nonce, node, conversation]: readonly string[]): void {
    if (node !== this.#node) return;
    this.#local.publish('hooksChanged', [Number(conversation) as ConversationId]);
    void this.#notifyNow(`!${nonce}`, QUERY_TIMEOUT_MS);
  }

  /** Opens the session when there is none, and says a word to ourselves that has to come back. */
  async #heartbeat(): Promise<void> {
    try {
      if (!this.#session.ready) {
        await this.#session.run(listen, QUERY_TIMEOUT_MS);
        this.#lastEchoAt = performance.now();
        this.#lastListenStartedAt = this.#lastEchoAt;
        this.#local.publish('resync');
      } else if (performance.now() - this.#lastEchoAt > 2.5 * this.#heartbeatMs) {
        throw new Error('notifications do not come through');
      }
      // A listener may have stopped us; running would open the session again.
      if (this.#stopped) return;
      await this.#session.run((sql) => notify(sql, `${this.#node} .`), QUERY_TIMEOUT_MS);
      this.#scheduleHeartbeat(this.#heartbeatMs);
    } catch (error) {
      this.#log.debug('bus: the listening session is lost', { error });
      this.#session.close();
      this.#scheduleHeartbeat(RECONNECT_MS);
    }
    if (this.#batch.mustSendResync && !this.#isSending && !this.#stopped) void this.#flush();
  }

  #scheduleHeartbeat(ms: number): void {
    if (this.#stopped) return;
    if (this.#heartbeatTimer !== null) clearTimeout(this.#heartbeatTimer);
    this.#heartbeatTimer = setTimeout(() => {
      this.#heartbeatTimer = null;
      void this.#heartbeat();
    }, ms);
  }
}
