import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { EndpointTls } from '../config/endpoint-tls.ts';
import type { ConnectionLimit } from '../connection-limit.ts';
import type { Operation } from '../operations/operation.ts';
import type { Services } from '../operations/services.ts';
import { Endpoint } from './endpoints.ts';
import { Feeds } from './feeds.ts';
import { HeapRelease } from './heap-release.ts';
import { LiveCounts } from './live-counts.ts';
import { LiveSessions, type SessionNews } from './live-sessions.ts';
import { Memberships } from './memberships.ts';
import { Presence } from './presence.ts';
import { SessionWatch } from './session-watch.ts';
import { Signals } from './signals.ts';
import { TrustedProxies } from '../model/trusted-proxies.ts';
import { Upgrades } from './upgrades.ts';
import { logFailure } from './log-failure.ts';

/** Heartbeats and deadlines are looked at so many times within the shortest of them, and never more rarely than this. */
const LOOKS = 5;
const MAX_LOOK_MS = 2_000;
/** Every session is looked up so often: one may have run out, or its end was not heard. */
const CHECK_MS = 60_000;
/** Signals are told together so often. */
const SIGNALS_MS = 1_000;

/** Live clients of this node: who they are, what they follow, and where they connect. */
export class Live {
  readonly counts = new LiveCounts();
  readonly feeds: Feeds;
  readonly sessions: LiveSessions;
  readonly presence: Presence;
  readonly #services: Services;
  readonly #memberships: Memberships;
  readonly #watch: SessionWatch;
  readonly #signals: Signals;
  readonly #heap = new HeapRelease();
  readonly #upgrades: Upgrades;
  readonly #endpoints: readonly Endpoint[];
  #isChecking = false;
  #checkAgain = false;
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
    this.feeds = new Feeds({ bus, pool: database.live, counts: this.counts, log });
    const news: SessionNews = {
      signedIn: () => this.#heap.came(),
      came: (accountId) => this.presence.came(accountId),
      went: (accountId) => this.presence.went(accountId),
      turnedAway: (accountId) => this.presence.turnedAway(accountId),
      asked: (conversationId, accountId) => this.#memberships.ask(conversationId, accountId),
      certain: (session) => this.#watch.certain(session),
    };
    this.sessions = new LiveSessions(services, operations, { counts: this.counts, feeds: this.feeds, news });
    const parts = { bus, pool: database.general, sessions: this.sessions, log };
    this.#memberships = new Memberships(parts);
    this.#watch = new SessionWatch(parts);
    this.#signals = new Signals({ ...parts, feeds: this.feeds });
    this.presence = new Presence(bus, this.sessions.foreground, (id, online) => this.#signals.changed(id, online));
    const proxies = new TrustedProxies(config.http.trustedProxies);
    this.#upgrades = new Upgrades(config, this.sessions, proxies);
    this.#endpoints = config.endpoints.map(
      (endpoint, index) =>
        new Endpoint(endpoint, tls[index] ?? null, {
          config,
          sessions: this.sessions,
          upgrades: this.#upgrades,
          proxies,
          limit,
          name: `endpoints[${index}]`,
        }),
    );
  }

  /** Where clients connect, besides the HTTP interface, in the order of the configuration; once started. */
  get endpoints(): readonly { readonly url: string; readonly port: number }[] {
    return this.#endpoints;
  }

  /** Opens the endpoints. Rejects with ListenError. */
  async start(): Promise<void> {
    const { bus, config } = this.#services;
    this.feeds.start();
    this.#memberships.start();
    this.#watch.start();
    this.#signals.start();
    this.presence.start();
    this.#unsubscribe = bus.subscribe({ gap: () => void this.#check() });
    const lookMs = Math.min(MAX_LOOK_MS, config.live.heartbeatMs / LOOKS, config.live.authenticateWithinMs / LOOKS);
    this.#timers = [
      setInterval(() => this.sessions.look(lookMs), lookMs),
      setInterval(() => {
        this.presence.look();
        this.#signals.look();
        this.#heap.look();
      }, SIGNALS_MS),
      setInterval(() => {
        this.feeds.reader.tidy();
        void this.#check();
      }, CHECK_MS),
    ];
    for (const endpoint of this.#endpoints) await endpoint.start();
  }

  /** A request of the HTTP interface that wants to become a WebSocket. */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    this.#upgrades.take(request, socket, head);
  }

  /** Takes nobody any more, tells everybody, and cuts what is left after `timeoutMs`. */
  stop(timeoutMs: number): Promise<void> {
    this.#stopping ??= this.#stop(timeoutMs);
    return this.#stopping;
  }

  async #stop(timeoutMs: number): Promise<void> {
    this.#upgrades.stop();
    const closed = Promise.all(this.#endpoints.map((endpoint) => endpoint.stop()));
    await this.sessions.end('stopping', timeoutMs);
    await closed;
    for (const timer of this.#timers) clearInterval(timer);
    this.#unsubscribe();
    this.presence.stop();
    this.#signals.stop();
    this.#watch.stop();
    this.#memberships.stop();
    this.feeds.stop();
  }

  /** Words may have been lost, or time has passed: are all sessions still what they were? */
  async #check(): Promise<void> {
    this.#checkAgain = true;
    if (this.#isChecking) return;
    this.#isChecking = true;
    while (this.#checkAgain && this.#stopping === null) {
      this.#checkAgain = false;
      await this.#checkOnce();
    }
    this.#isChecking = false;
  }

  async #checkOnce(): Promise<void> {
    await this.#watch.checkAll();
    try {
      await this.#memberships.compare();
    } catch (error) {
      logFailure(this.#services.log, 'live: memberships could not be read', error);
    }
  }
}
