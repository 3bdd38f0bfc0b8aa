import { randomBytes } from 'node:crypto';
import type { Log } from '../log.ts';
import type { ConversationId } from '../model/ids.ts';
import { Connection } from '../storage/db/connection.ts';
import type { Database } from '../storage/database.ts';
import { listen, notify } from '../storage/db/notifications.ts';
import { Pool } from '../storage/db/pool.ts';
import { LocalBus, type Bus, type BusEvents } from './bus.ts';
import { NotificationBatch } from './notification-batch.ts';
import { PendingAcks } from './pending-acks.ts';
import { ResyncScheduler } from './resync-scheduler.ts';
import {
  decodeResync,
  dispatchNotification,
  MAX_PAYLOAD_BYTES,
  RELIABLE_EVENTS,
  RESYNC_LETTER,
  type BroadcastEvent,
} from './wire-format.ts';

const HEARTBEAT_MS = 5_000;
const RECONNECT_MS = 500;
const QUERY_TIMEOUT_MS = 2_000;
/** At most this many statements, such as requests and acknowledgements, wait for the one connection. */
const MAX_WAITING_NOTIFY_STATEMENTS = 1_000;
/**
 * The shortest and the longest delay after a notification that could not be sent. The delay doubles each time, so that
 * a slow database gets fewer calls.
 */
const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 5_000;

export interface PostgresBusOptions {
  /** This process's name on the bus, under which it also holds its leases; by default a random name. */
  readonly node?: string;
  /**
   * The interval of heartbeats on the listening session. If no heartbeat comes back for two and a half intervals, the
   * session is opened again.
   */
  readonly heartbeatMs?: number;
}

/**
 * The bus over LISTEN and NOTIFY. A payload is `<node> <kind><items>;<kind><items>` with the kinds of `wire-format.ts`,
 * `*` (notifications of some kinds, or of all, were lost) and `.` (heartbeat). Each node receives its own heartbeat
 * through the database. When the heartbeat does not come, the node opens the session again and publishes a resync.
 *
 * A request to one node is `?<nonce>,<node>,<conversation>`: that node publishes `hooksChanged` to its own listeners
 * and answers `!<nonce>` in the same turn. Requests and answers are payloads of their own, sent before queued events.
 *
 * NOTIFY has a connection of its own: queued behind other calls to a slow database it would time out.
 */
export class PostgresBus implements Bus {
  readonly #local = new LocalBus();
  readonly #log: Log;
  readonly #notifyPool: Pool;
  readonly #node: string;
  readonly #listenConnection: Connection;
  readonly #heartbeatMs: number;
  readonly #pendingAcks = new PendingAcks();
  readonly #resyncs: ResyncScheduler;
  readonly #batch = new NotificationBatch();
  #isSending = false;
  #retryTimer: NodeJS.Timeout | null = null;
  #retryMs = MIN_RETRY_MS;
  #hasListened = false;
  #lastHeartbeatEchoAt = 0;
  /**
   * The times, on the monotonic clock, at which the listening session began to listen, and last received from another
   * node.
   */
  #lastListenStartedAt = Number.POSITIVE_INFINITY;
  #lastPeerSeenAt = Number.NEGATIVE_INFINITY;
  #heartbeatTimer: NodeJS.Timeout | null = null;
  #stopped = true;

  constructor(database: Database, log: Log, options: PostgresBusOptions = {}) {
    this.#log = log;
    this.#notifyPool = new Pool(database.target, {
      name: 'notify',
      maxConnections: 1,
      maxWaitingCalls: MAX_WAITING_NOTIFY_STATEMENTS,
      timeoutMs: QUERY_TIMEOUT_MS,
    });
    this.#resyncs = new ResyncScheduler((kinds) => this.#local.publish('resync', kinds));
    this.#node = options.node ?? randomBytes(6).toString('hex');
    this.#heartbeatMs = options.heartbeatMs ?? HEARTBEAT_MS;
    this.#listenConnection = new Connection(database.target, 'listen', {
      ignoresTimelineGate: true,
      onNotify: (payload) => this.#receive(payload),
      onClose: () => this.#scheduleHeartbeat(RECONNECT_MS),
    });
  }

  /** Starts to listen, publishes a resync, and sends events that were published before. */
  start(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    void this.#heartbeat();
    this.#startFlush();
  }

  stop(): void {
    this.#stopped = true;
    if (this.#heartbeatTimer !== null) clearTimeout(this.#heartbeatTimer);
    this.#heartbeatTimer = null;
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    this.#retryTimer = null;
    this.#resyncs.stop();
    this.#listenConnection.close();
    this.#notifyPool.stop();
    this.#pendingAcks.stop();
  }

  subscribe(listener: Partial<BusEvents>): () => void {
    return this.#local.subscribe(listener);
  }

  publish<Event extends BroadcastEvent>(event: Event, payload: Parameters<BusEvents[Event]>[0]): void {
    this.#local.publish(event, payload);
    if (this.#hasNoPeers) return;
    this.#batch.add(event, payload);
    this.#startFlush();
  }

  /** Sends the request even if this node receives nothing from `node`: the lease table may list `node` all the same. */
  confirmHooksChanged(node: string, conversation: ConversationId, timeoutMs: number): Promise<boolean> {
    return this.#pendingAcks.request(node, timeoutMs, (nonce) => {
      void this.#notifyNow(`?${nonce},${node},${conversation}`, timeoutMs);
    });
  }

  /** Sends a request or its acknowledgement before all queued events. If one is lost, the requesting node retries. */
  async #notifyNow(notification: string, timeoutMs: number): Promise<void> {
    if (this.#stopped) return;
    try {
      await this.#notifyPool.run((sql) => notify(sql, `${this.#node} ${notification}`), timeoutMs);
    } catch (error) {
      this.#log.debug('bus: a request or an answer was lost', { error });
    }
  }

  /**
   * True when this node received nothing from another one for three heartbeats. A NOTIFY without a receiver would cost
   * one more commit for each commit that is announced. A new node sends a heartbeat at once, gets a resync, and
   * receives every event from then on.
   */
  get #hasNoPeers(): boolean {
    if (!this.#listenConnection.ready) return false;
    const silentSince = Math.max(this.#lastListenStartedAt, this.#lastPeerSeenAt);
    return performance.now() - silentSince > 3 * this.#heartbeatMs;
  }

  /** Starts to send the queued events, unless they are being sent, or wait for a retry after a failure. */
  #startFlush(): void {
    if (!this.#isSending && this.#retryTimer === null && !this.#stopped) void this.#flush();
  }

  /**
   * Sends the queued events, one notification at a time; events that arrive meanwhile go into the next notification.
   */
  async #flush(): Promise<void> {
    this.#isSending = true;
    while (!this.#stopped) {
      const payload = this.#batch.take(MAX_PAYLOAD_BYTES - this.#node.length - 1);
      if (payload === null) break;
      try {
        await this.#notifyPool.run((sql) => notify(sql, `${this.#node} ${payload.payloadText}`));
        this.#retryMs = MIN_RETRY_MS;
      } catch (error) {
        // The notification is sent again and may arrive twice, which is cheaper than a resync of all nodes.
        this.#batch.putBack(payload);
        this.#log.debug('bus: a notification to the other nodes failed and is repeated', { error });
        this.#scheduleRetry();
        break;
      }
    }
    this.#isSending = false;
  }

  #scheduleRetry(): void {
    if (this.#stopped) return;
    // The delay is random, so that not all nodes send at once when the database comes back.
    const delayMs = this.#retryMs * (0.5 + Math.random() / 2);
    this.#retryMs = Math.min(2 * this.#retryMs, MAX_RETRY_MS);
    this.#retryTimer = setTimeout(() => {
      this.#retryTimer = null;
      this.#startFlush();
    }, delayMs);
  }

  #receive(payload: string): void {
    const [node, notifications = ''] = payload.split(' ', 2);
    if (node === this.#node) {
      if (notifications === '.') this.#lastHeartbeatEchoAt = performance.now();
      return;
    }
    if (this.#hasNoPeers) this.#batch.requireResync();
    this.#lastPeerSeenAt = performance.now();
    this.#startFlush();
    for (const notification of notifications.split(';'))
      this.#dispatch(node!, notification[0], notification.slice(1).split(','));
  }

  #dispatch(node: string, kind: string | undefined, items: readonly string[]): void {
    if (dispatchNotification(this.#local, node, { letter: kind, items })) return;
    if (kind === '?') this.#publishAndAcknowledge(items);
    else if (kind === '!') this.#pendingAcks.onAck(node, items[0]!);
    else if (kind === RESYNC_LETTER) this.#resyncs.request(decodeResync(items));
  }

  #publishAndAcknowledge([nonce, node, conversation]: readonly string[]): void {
    if (node !== this.#node) return;
    this.#local.publish('hooksChanged', [Number(conversation) as ConversationId]);
    void this.#notifyNow(`!${nonce}`, QUERY_TIMEOUT_MS);
  }

  /** Opens the session when there is none, and sends a heartbeat that must come back through the database. */
  async #heartbeat(): Promise<void> {
    try {
      if (!this.#listenConnection.ready) {
        await this.#listenConnection.run(listen, QUERY_TIMEOUT_MS);
        this.#lastHeartbeatEchoAt = performance.now();
        this.#lastListenStartedAt = this.#lastHeartbeatEchoAt;
        this.#announceGap();
      } else if (performance.now() - this.#lastHeartbeatEchoAt > 2.5 * this.#heartbeatMs) {
        throw new Error('notifications do not come through');
      }
      // A listener may have stopped the bus; `run` would open the session again.
      if (this.#stopped) return;
      await this.#listenConnection.run((sql) => notify(sql, `${this.#node} .`), QUERY_TIMEOUT_MS);
      this.#scheduleHeartbeat(this.#heartbeatMs);
    } catch (error) {
      this.#log.debug('bus: the listening session is lost', { error });
      this.#listenConnection.close();
      this.#scheduleHeartbeat(RECONNECT_MS);
    }
    this.#startFlush();
  }

  /**
   * Announces that notifications may have been lost. At the start this node resyncs alone, so the resync needs no
   * delay. A later loss may affect all nodes at once.
   */
  #announceGap(): void {
    if (this.#hasListened) this.#resyncs.request(RELIABLE_EVENTS);
    else this.#local.publish('resync', RELIABLE_EVENTS);
    this.#hasListened = true;
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
