import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { EndpointTls } from '../config/endpoint-tls.ts';
import type { ConnectionLimit } from '../connection-limit.ts';
import type { Operation } from '../operations/core/operation.ts';
import type { Services } from '../operations/core/services.ts';
import { Endpoint } from './transport/endpoint.ts';
import { FeedRegistry } from './feed-registry.ts';
import { IdleGc } from './idle-gc.ts';
import { LiveCounts } from './live-counts.ts';
import { LiveSessions, type SessionEvents } from './live-sessions.ts';
import { MembershipSync } from './membership-sync.ts';
import { Presence } from './presence.ts';
import { SessionRevalidator } from './session-revalidator.ts';
import { EphemeralEvents } from './ephemeral-events.ts';
import { TrustedProxies } from '../model/trusted-proxies.ts';
import { WebSocketUpgrades } from './transport/websocket-upgrades.ts';
import { listLiveNodes } from '../storage/hooks/nodes.ts';
import { logFailureByKind } from './log-failure.ts';

/**
 * Sessions are checked this many times within the shortest heartbeat or deadline, and at the latest after this time.
 */
const TICKS_WITHIN_SHORTEST_DEADLINE = 5;
const MAX_SESSION_TICK_INTERVAL_MS = 2_000;
/**
 * Interval at which all sessions are revalidated: a session may have expired, or the notification of its end was lost.
 */
const REVALIDATE_INTERVAL_MS = 60_000;
/** If a notification of one of these kinds may be lost, all sessions and memberships are checked again. */
const EVENTS_WHOSE_LOSS_REVALIDATES = ['sessionsEnded', 'accountsChanged', 'membersChanged'] as const;
/** The interval at which presence, queued ephemeral events and the collection of idle garbage are handled. */
const PRESENCE_AND_GC_TICK_MS = 1_000;
const LIST_NODES_TIMEOUT_MS = 1_500;

/** Live clients of this node: their sessions, their subscriptions and their endpoints. */
export class Live {
  readonly counts = new LiveCounts();
  readonly feeds: FeedRegistry;
  readonly sessions: LiveSessions;
  readonly presence: Presence;
  readonly #services: Services;
  readonly #membershipSync: MembershipSync;
  readonly #revalidator: SessionRevalidator;
  readonly #ephemeralEvents: EphemeralEvents;
  readonly #idleGc = new IdleGc();
  readonly #upgrades: WebSocketUpgrades;
  readonly #endpoints: readonly Endpoint[];
  #isRevalidating = false;
  #shouldRevalidateAgain = false;
  #timers: NodeJS.Timeout[] = [];
  #unsubscribe: () => void = () => {};
  #stopping: Promise<void> | null = null;

  constructor(
    services: Services,
    operations: ReadonlyMap<string, Operation>,
    { tls, limit }: { tls: readonly (EndpointTls | null)[]; limit: ConnectionLimit },
  ) {
    const { config, bus, database, log } = services;
    this.#services = services;
    this.feeds = new FeedRegistry({ bus, pool: database.live, counts: this.counts, witness: database.witness, log });
    const events: SessionEvents = {
      onSessionAuthenticated: () => this.#idleGc.countAuthentication(),
      firstForegroundSessionStarted: (accountId) => this.presence.firstForegroundSessionStarted(accountId),
      lastForegroundSessionEnded: (accountId) => this.presence.lastForegroundSessionEnded(accountId),
      lastForegroundSessionBackgrounded: (accountId) => this.presence.lastForegroundSessionBackgrounded(accountId),
      recheckMembership: (conversationId, accountId) => this.#membershipSync.recheck(conversationId, accountId),
      whenRevalidated: (session) => this.#revalidator.whenRevalidated(session),
    };
    this.sessions = new LiveSessions(services, operations, { counts: this.counts, feeds: this.feeds, events });
    this.feeds.onNewEpoch = () => this.sessions.closeSubscribed('changes_lost');
    const deps = { bus, pool: database.general, sessions: this.sessions, log };
    this.#membershipSync = new MembershipSync(deps);
    this.#revalidator = new SessionRevalidator(deps);
    this.#ephemeralEvents = new EphemeralEvents({ ...deps, feeds: this.feeds });
    this.presence = new Presence({
      bus,
      node: services.node,
      listLiveNodes: () => database.general.run(listLiveNodes, LIST_NODES_TIMEOUT_MS),
      onChange: (id, online) => this.#ephemeralEvents.queuePresenceChange(id, online),
    });
    const proxies = new TrustedProxies(config.http.trustedProxies);
    this.#upgrades = new WebSocketUpgrades(config, this.sessions, proxies);
    this.#endpoints = config.endpoints.map(
      (endpoint, index) =>
        new Endpoint(endpoint, tls[index] ?? null, {
          config,
          sessions: this.sessions,
          upgrades: this.#upgrades,
          proxies,
          limit,
          configKey: `endpoints[${index}]`,
        }),
    );
  }

  /**
   * The endpoints for clients besides the HTTP interface, in the order of the configuration; available once started.
   */
  get endpoints(): readonly { readonly url: string; readonly port: number }[] {
    return this.#endpoints;
  }

  /** Opens the endpoints. Rejects with ListenError if the server cannot listen on one of them. */
  async start(): Promise<void> {
    const { bus, config } = this.#services;
    this.feeds.start();
    this.#membershipSync.start();
    this.#revalidator.start();
    this.#ephemeralEvents.start();
    this.presence.start();
    this.#unsubscribe = bus.subscribe({
      resync: (eventKinds) => {
        if (EVENTS_WHOSE_LOSS_REVALIDATES.some((event) => eventKinds.has(event))) void this.#revalidate();
      },
    });
    const tickMs = Math.min(
      MAX_SESSION_TICK_INTERVAL_MS,
      config.live.heartbeatMs / TICKS_WITHIN_SHORTEST_DEADLINE,
      config.live.authTimeoutMs / TICKS_WITHIN_SHORTEST_DEADLINE,
    );
    this.#timers = [
      setInterval(() => this.sessions.tick(tickMs), tickMs),
      setInterval(() => {
        this.presence.tick();
        this.#ephemeralEvents.startSendingAccountChanges();
        this.#idleGc.tick();
      }, PRESENCE_AND_GC_TICK_MS),
      setInterval(() => {
        this.feeds.reader.evictExpired();
        void this.#revalidate();
      }, REVALIDATE_INTERVAL_MS),
    ];
    for (const endpoint of this.#endpoints) await endpoint.start();
  }

  /** Takes over the socket of a request of the HTTP interface that asks for WebSocket. */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    this.#upgrades.handle(request, socket, head);
  }

  /** Refuses new connections, notifies all clients, and cuts the remaining connections after `timeoutMs`. */
  stop(timeoutMs: number): Promise<void> {
    this.#stopping ??= this.#stop(timeoutMs);
    return this.#stopping;
  }

  async #stop(timeoutMs: number): Promise<void> {
    this.#upgrades.stop();
    const closed = Promise.all(this.#endpoints.map((endpoint) => endpoint.stop()));
    await this.sessions.closeAll('stopping', timeoutMs);
    await closed;
    for (const timer of this.#timers) clearInterval(timer);
    this.#unsubscribe();
    this.presence.stop();
    this.#ephemeralEvents.stop();
    this.#revalidator.stop();
    this.#membershipSync.stop();
    this.feeds.stop();
  }

  /**
   * Checks whether all sessions and memberships are still valid: notifications may have been lost, or a session may
   * have expired.
   */
  async #revalidate(): Promise<void> {
    this.#shouldRevalidateAgain = true;
    if (this.#isRevalidating) return;
    this.#isRevalidating = true;
    while (this.#shouldRevalidateAgain && this.#stopping === null) {
      this.#shouldRevalidateAgain = false;
      await this.#revalidateSessionsAndMemberships();
    }
    this.#isRevalidating = false;
  }

  async #revalidateSessionsAndMemberships(): Promise<void> {
    await this.#revalidator.revalidateAll();
    try {
      await this.#membershipSync.reconcile();
    } catch (error) {
      logFailureByKind(this.#services.log, 'live: memberships could not be read', error);
    }
  }
}
