import { PostgresBus } from './bus/postgres-bus.ts';
import type { Config } from './config/config.ts';
import { readServerKeys } from './config/server-key-files.ts';
import { Lanes } from './delivery/lanes.ts';
import { Pinger } from './delivery/ping.ts';
import { createApp, createStartingApp } from './http/app.ts';
import { HttpListener } from './http/listener.ts';
import { RequestCounts } from './http/request-counts.ts';
import { ControlSocket } from './live/control-socket.ts';
import type { Log } from './log.ts';
import { EventLoopDelay } from './metrics/event-loop-delay.ts';
import { metricsListener } from './metrics/exposition.ts';
import { allFamilies, type MetricSources } from './metrics/families.ts';
import { SIGNING_KEYS } from './model/server-key.ts';
import { TokenDirectory } from './operations/access.ts';
import { DeliveryReport } from './operations/delivery-report.ts';
import { Housekeeping } from './operations/housekeeping.ts';
import { Rate } from './operations/rate.ts';
import { prepareSigning } from './operations/server-keys.ts';
import type { Services } from './operations/services.ts';
import { operationTable } from './operations/table.ts';
import { AddressPolicy } from './outbound/address-policy.ts';
import { DeliveryClient } from './outbound/delivery-client.ts';
import { NameLookup } from './outbound/name-lookup.ts';
import { controlSocketPath } from './storage/control-path.ts';
import { DataDirLock } from './storage/data-dir-lock.ts';
import { Database } from './storage/database.ts';
import { openDatabase, type OpenDatabase } from './storage/open-database.ts';
import { MessageLog } from './storage/message-log.ts';
import { readNodeId } from './storage/node-id.ts';
import { RunRecord, startIdOf, type Ending } from './storage/run-record.ts';
import { Sealer } from './storage/sealed.ts';
import { readVersion } from './version.ts';

const GROUPS_REGISTERING = 10_000;
const GROUPS_CHANGING = 10_000;
/** A scrape is answered within two seconds, so that a stop waits no longer for one. */
const SCRAPE_MS = 2_000;

/** `stop` was called before `start` was through. */
export class StoppedError extends Error {
  override readonly name = 'StoppedError';
}

/** A part that was started and has to be stopped, by name for the log. */
interface Part {
  readonly name: string;
  readonly stop: () => Promise<void> | void;
  /** True for what lets work in hand finish: these are stopped first and together, so that they share one time-out. */
  readonly drains: boolean;
}

/** The composition root: everything is built here, started in order, and stopped in the opposite order. */
export class Server {
  readonly #config: Config;
  readonly #log: Log;
  readonly #parts: Part[] = [];
  readonly #requests = new RequestCounts();
  readonly #failure = Promise.withResolvers<Error>();
  #connecting: Database | null = null;
  #starting: Promise<void> = Promise.resolve();
  #stopping: Promise<void> | null = null;
  readonly #record: RunRecord;
  readonly #explain: (error: unknown) => Ending;
  #lanes: Lanes | null = null;
  #pinger: Pinger | null = null;
  #refusing = false;
  #port = 0;
  #metricsPort: number | null = null;

  /** `explain` puts a failure into words for the record of the run. */
  constructor(config: Config, log: Log, explain: (error: unknown) => Ending = unexplained) {
    this.#config = config;
    this.#log = log;
    this.#record = new RunRecord(config.dataDir, { version: readVersion(), startId: startIdOf(process.env), log });
    this.#explain = explain;
  }

  /** Resolves, if ever, with the reason why this process must not go on; the caller stops it. */
  get failure(): Promise<Error> {
    return this.#failure.promise;
  }

  /** The port of the HTTP interface, once started. */
  get port(): number {
    return this.#port;
  }

  /** The port that metrics are served on, once started; null when they are not. */
  get metricsPort(): number | null {
    return this.#metricsPort;
  }

  /** Starts everything; on failure, or when it is stopped meanwhile, stops what was started and rejects. */
  async start(): Promise<void> {
    this.#starting = this.#start();
    try {
      await this.#starting;
    } catch (error) {
      if (!(error instanceof StoppedError)) this.#record.fail(this.#explain(error));
      await this.stop();
      throw error;
    }
  }

  /** Notes at once how this process ends, when there is no time left to stop it. */
  abandon(ending: Ending): void {
    this.#record.fail(ending);
    this.#record.end();
  }

  /** Takes nothing new, finishes what is in hand within `http.stop-timeout`, and leaves the rest in the database. */
  stop(reason: string | null = null): Promise<void> {
    this.#refusing = true;
    if (this.#stopping === null) this.#record.stopping(reason);
    // A start that waits for the database need not wait any longer.
    void this.#connecting?.stop();
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #start(): Promise<void> {
    const config = this.#config;
    const log = this.#log;
    const lock = await DataDirLock.acquire(config.dataDir);
    this.#keep('lock', () => lock.release());
    this.#record.begin();
    this.#keep('record of the run', () => this.#record.end());
    const listener = await this.#listen();
    const metrics = await this.#listenForScrapes();
    const sealer = new Sealer(config.secret);
    const serverKeys = readServerKeys(config.serverKeys);
    const onConnecting = (database: Database): void => {
      this.#connecting = database;
      if (this.#refusing) void database.stop();
    };
    const opened = await openDatabase(config, { sealer, log, onConnecting });
    this.#connecting = null;
    this.#keep('database', () => opened.stop());
    const node = await readNodeId(config.dataDir);
    const bus = new PostgresBus(opened.database, log, { node });
    this.#keep('bus', () => bus.stop());
    const services = this.#services(opened, { sealer, serverKeys, bus, node });
    this.#keep('message log', () => services.messageLog.stop());
    const housekeeping = new Housekeeping(services);
    await housekeeping.start();
    this.#keep('housekeeping', () => housekeeping.stop());
    const delivery = await this.#startDelivery(services, opened.database);
    bus.start();
    await this.#startControl(services);
    const requests = this.#requests;
    listener.handle(requests.counting(createApp(services, { stopping: () => this.#refusing })));
    if (metrics !== null) this.#startMetrics(metrics, { ...delivery, services, requests, listener });
    this.#record.ready();
    const { version, databaseVersion } = services;
    log.info('ready', { port: this.#port, metricsPort: this.#metricsPort, version, database: databaseVersion });
  }

  #services(opened: OpenDatabase, parts: Pick<Services, 'sealer' | 'serverKeys' | 'bus' | 'node'>): Services {
    const config = this.#config;
    const { limits, delivery } = config;
    const { database } = opened;
    const { bus } = parts;
    const messageLog = new MessageLog(database.intake, {
      maxPosts: limits.intakePosts,
      maxBytes: limits.intakeBytes,
      flushPosts: limits.flushPosts,
      flushBytes: limits.flushBytes,
      waitMs: limits.intakeWaitMs,
      onCommitted: (advanced) => bus.publish('advanced', advanced),
    });
    const log = this.#log;
    const { registrationsPerMinute, hookChangesPerMinute } = limits;
    return {
      ...parts,
      config,
      version: readVersion(),
      startedAt: new Date(),
      listeners: [httpUrl(config.http.interface, this.#port)],
      metricsUrl: this.#metricsPort === null ? null : `${httpUrl(config.metrics.interface, this.#metricsPort)}/metrics`,
      database,
      databaseVersion: opened.version,
      messageLog,
      tokens: new TokenDirectory(database.general, bus, limits),
      policy: new AddressPolicy(delivery.allow),
      registrations: perMinute(registrationsPerMinute, GROUPS_REGISTERING),
      hookChanges: perMinute(hookChangesPerMinute, GROUPS_CHANGING),
      sendPing: (target) => this.#pinger?.send(target) ?? Promise.resolve(null),
      deliveriesInFlight: () => this.#lanes?.load.inFlight ?? 0,
      deliveryReport: new DeliveryReport({ pool: database.general, parkAfterMs: delivery.parkAfterMs, log }),
      log,
    };
  }

  async #startDelivery(services: Services, database: Database): Promise<Pick<MetricSources, 'lanes' | 'lookup'>> {
    const { config, policy, sealer, bus, node, log, version } = services;
    const { delivery } = config;
    await prepareSigning(services);
    const lookup = new NameLookup({
      timeoutMs: delivery.lookupTimeoutMs,
      cacheMs: delivery.lookupCacheMs,
      failureCacheMs: delivery.lookupFailureCacheMs,
      concurrency: delivery.lookups,
    });
    const userAgent = `Klatch/${version}`;
    const client = new DeliveryClient({ ...delivery, policy, lookup, userAgent });
    this.#keep('delivery client', () => client.stop());
    const onOutdated = (error: Error): void => {
      this.#refusing = true;
      this.#record.fail(this.#explain(error));
      this.#failure.resolve(error);
    };
    const serverKeys = services.serverKeys.slice(0, SIGNING_KEYS).map((key) => key.privateKey);
    const pinger = new Pinger({ config: delivery, policy, lookup, userAgent, sealer, serverKeys, log });
    this.#pinger = pinger;
    this.#keep('pings', () => pinger.stop());
    const lanes = new Lanes({ database, bus, client, sealer, serverKeys, config: delivery, node, onOutdated, log });
    this.#lanes = lanes;
    this.#keep('lanes', () => lanes.stop(config.http.stopTimeoutMs), true);
    await lanes.start();
    return { lanes, lookup };
  }

  /** Before anything that takes time: a port that is taken is told at once, and who asks is told to wait. */
  async #listen(): Promise<HttpListener> {
    const { http } = this.#config;
    const listener = new HttpListener(http, this.#requests.counting(createStartingApp(this.#log)));
    this.#keep('HTTP listener', () => listener.stop(http.stopTimeoutMs), true);
    this.#port = await listener.start();
    return listener;
  }

  /** On a port of its own, to the end of a stop. Null when metrics are switched off. */
  async #listenForScrapes(): Promise<HttpListener | null> {
    const { metrics, http } = this.#config;
    if (!metrics.enabled) return null;
    const { interface: address, port } = metrics;
    const config = {
      interface: address,
      port,
      requestTimeoutMs: http.requestTimeoutMs,
      maxHeaderBytes: http.maxHeaderBytes,
    };
    const listener = new HttpListener(config, metricsListener(null, this.#log), 'metrics.interface, metrics.port');
    this.#keep('metrics listener', () => listener.stop(SCRAPE_MS));
    this.#metricsPort = await listener.start();
    return listener;
  }

  #startMetrics(
    scrapes: HttpListener,
    parts: Omit<MetricSources, 'eventLoop' | 'connections'> & { readonly listener: HttpListener },
  ): void {
    const { listener, ...sources } = parts;
    const eventLoop = new EventLoopDelay();
    this.#keep('event loop delay', () => eventLoop.stop());
    eventLoop.start();
    const families = allFamilies({ ...sources, eventLoop, connections: () => listener.connections });
    scrapes.handle(metricsListener(families, this.#log));
  }

  async #startControl(services: Services): Promise<void> {
    const { config, log } = services;
    const path = controlSocketPath(config.dataDir);
    const control = new ControlSocket({ path, services, operations: operationTable(), log });
    this.#keep('control socket', () => control.stop(), true);
    await control.start();
  }

  #keep(name: string, stop: Part['stop'], drains = false): void {
    this.#parts.unshift({ name, stop, drains });
    if (this.#refusing) throw new StoppedError('stopped while it was starting');
  }

  async #stop(): Promise<void> {
    // What is being started is not in the list yet; a start that is told to stop ends at its next part.
    await this.#starting.catch(() => {});
    await Promise.all(this.#parts.filter((part) => part.drains).map((part) => this.#stopPart(part)));
    for (const part of this.#parts) if (!part.drains) await this.#stopPart(part);
  }

  async #stopPart(part: Part): Promise<void> {
    try {
      await part.stop();
    } catch (error) {
      this.#log.error('a part could not be stopped', { part: part.name, error });
    }
  }
}

/** A rate of so many uses a minute and key, all of which may come at once. */
function perMinute(uses: number, keys: number): Rate<number> {
  return new Rate({ perSecond: uses / 60, burst: uses, keys });
}

function unexplained(error: unknown): Ending {
  return { reason: error instanceof Error ? error.message : 'unknown', exitCode: null };
}

function httpUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
