import { createProviders } from './activation/providers.ts';
import { PostgresBus } from './bus/postgres-bus.ts';
import type { Config } from './config/config.ts';
import { maxClientConnections, ConnectionLimit } from './connection-limit.ts';
import { readEndpointTls, type EndpointTls } from './config/endpoint-tls.ts';
import { readServerKeys } from './config/keys/server-key-files.ts';
import { createFileLinker } from './delivery/file-links.ts';
import { LaneManager } from './delivery/lane-manager.ts';
import { Pinger } from './delivery/ping.ts';
import { createFileServices, stopUploadsDrainingNonResumable } from './files/file-services.ts';
import { StoreIdCheck } from './files/store-id.ts';
import { FileSweeper } from './files/sweeper.ts';
import { createApp, createStartingApp } from './http/app.ts';
import { LargePostReader } from './http/large-posts/large-post-reader.ts';
import { HttpListener, httpUrl } from './http/listener.ts';
import { RequestCounts } from './http/request-counts.ts';
import { ControlSocket } from './live/transport/control-socket.ts';
import { Live } from './live/live.ts';
import { maxPresenceStalenessMs } from './live/presence.ts';
import type { Log } from './log.ts';
import { EventLoopDelay } from './metrics/event-loop-delay.ts';
import { metricsListener } from './metrics/exposition.ts';
import { allFamilies, type MetricSources } from './metrics/families.ts';
import { createScrapeListener, SCRAPE_STOP_TIMEOUT_MS } from './metrics/scrape-listener.ts';
import type { AccountId, LogEpoch } from './model/ids.ts';
import { MAX_KEYS_THAT_SIGN } from './model/server-key.ts';
import { IntegrationTokenCache } from './operations/core/access.ts';
import { ActivationCodes } from './operations/core/activation-codes.ts';
import { DeliveryReportCache } from './operations/core/delivery-report-cache.ts';
import { SearchAndMentionIndexer } from './workers/search-and-mention-indexer.ts';
import { ExpectationMonitor } from './workers/expectation-monitor.ts';
import { Housekeeping } from './workers/housekeeping.ts';
import { LostHistoryDetector } from './workers/lost-history-detector.ts';
import { createReplyPoster } from './operations/messages/post-reply.ts';
import { createRateLimiters } from './operations/core/rate-limiters.ts';
import { RefusedPostRecorder } from './operations/core/refused-post-recorder.ts';
import { SearchLimiterByPerson } from './operations/core/search-limiter.ts';
import { createMessageLog } from './operations/messages/create-message-log.ts';
import { retryOrReportUnsignedHooks } from './operations/server/unsigned-hooks.ts';
import type { Services } from './operations/core/services.ts';
import { SessionCache } from './operations/core/session-cache.ts';
import { SessionCookie } from './operations/core/session-cookie.ts';
import { operationTable } from './operations/table.ts';
import type { AddressPolicy } from './outbound/address-policy.ts';
import { DeliveryClient } from './outbound/delivery-client.ts';
import { createDnsResolver, type DnsResolver } from './outbound/dns-resolver.ts';
import { createAddressPolicy } from './outbound/create-address-policy.ts';
import { Lifecycle, type StartedPart } from './lifecycle.ts';
import { PushQueue, type PushQueueDeps } from './push/queue.ts';
import { createVendors } from './push/vendors/vendors.ts';
import { prepareControlSocket } from './data-dir/control-socket-path.ts';
import { DataDirLock } from './data-dir/lock.ts';
import { Database } from './storage/database.ts';
import { openDatabase, type OpenDatabase } from './storage/open-database.ts';
import { readOrCreateNodeId } from './data-dir/node-id.ts';
import { LastRunRecorder, startIdOf, type ExitReason } from './data-dir/server-state.ts';
import { Sealer } from './storage/db/sealed.ts';
import { readVersion, userAgent } from './version.ts';

/** Thrown by `start` if `stop` was called before it had finished. */
export class StoppedError extends Error {
  override readonly name = 'StoppedError';
}

/** The composition root: builds all parts of the server, starts them in order, and stops them in the opposite order. */
export class Server {
  readonly #config: Config;
  readonly #log: Log;
  readonly #parts: Lifecycle;
  readonly #requestCounts = new RequestCounts();
  readonly #connectionLimit: ConnectionLimit;
  /** Resolves the host names of receivers and of browsers' push services. */
  readonly #dnsResolver: DnsResolver;
  readonly #fatalFailure = Promise.withResolvers<Error>();
  #connectingDatabase: Database | null = null;
  #startPromise: Promise<void> = Promise.resolve();
  #stopPromise: Promise<void> | null = null;
  readonly #lastRunRecorder: LastRunRecorder;
  readonly #toExitReason: (error: unknown) => ExitReason;
  #lanes: LaneManager | null = null;
  #pinger: Pinger | null = null;
  #live: Live | null = null;
  #expectationMonitor: ExpectationMonitor | null = null;
  readonly #listenerUrls: string[] = [];
  #isRefusingRequests = false;
  #httpPort = 0;
  #metricsPort: number | null = null;

  /** `explain`: turns an error into a sentence and an exit code for the record of this run. */
  constructor(config: Config, log: Log, explain: (error: unknown) => ExitReason = messageAsExitReason) {
    this.#config = config;
    this.#log = log;
    this.#parts = new Lifecycle(log);
    this.#connectionLimit = new ConnectionLimit(maxClientConnections(), log);
    this.#dnsResolver = createDnsResolver(config.delivery);
    const startInfo = { version: readVersion(), startId: startIdOf(process.env), log };
    this.#lastRunRecorder = new LastRunRecorder(config.dataDir, startInfo);
    this.#toExitReason = explain;
  }

  /** Resolves to the reason if this process must end, and else never. The caller then has to call `stop`. */
  get failure(): Promise<Error> {
    return this.#fatalFailure.promise;
  }

  /** The port of the HTTP interface, after `start`. */
  get port(): number {
    return this.#httpPort;
  }

  /** The endpoints for clients besides the HTTP interface, in the order of the configuration, after `start`. */
  get endpoints(): readonly { readonly url: string; readonly port: number }[] {
    return this.#live?.endpoints ?? [];
  }

  /** The port on which metrics are served, after `start`; null: metrics are disabled. */
  get metricsPort(): number | null {
    return this.#metricsPort;
  }

  /** Starts all parts. After a failure, or if `stop` is called meanwhile, stops the started parts and rejects. */
  async start(): Promise<void> {
    this.#startPromise = this.#start();
    try {
      await this.#startPromise;
    } catch (error) {
      if (!(error instanceof StoppedError)) this.#lastRunRecorder.setExitReason(this.#toExitReason(error));
      await this.stop();
      throw error;
    }
  }

  /** Records at once how this process ends; for an end that leaves no time to call `stop`. */
  recordExitAtOnce(exitReason: ExitReason): void {
    this.#lastRunRecorder.setExitReason(exitReason);
    this.#lastRunRecorder.markStoppedOrFailed();
  }

  /** Accepts no new work, finishes running work within `http.stop-timeout`, and stops all parts. */
  stop(reason: string | null = null): Promise<void> {
    this.#isRefusingRequests = true;
    if (this.#stopPromise === null) this.#lastRunRecorder.markStopping(reason);
    // A start that cannot reach the database waits for it: this aborts the wait.
    void this.#connectingDatabase?.stop();
    this.#stopPromise ??= this.#stop();
    return this.#stopPromise;
  }

  async #start(): Promise<void> {
    const config = this.#config;
    const log = this.#log;
    const lock = await DataDirLock.acquire(config.dataDir);
    this.#addPart('lock', () => lock.release());
    this.#lastRunRecorder.markStarting();
    this.#addPart('record of the run', () => this.#lastRunRecorder.markStoppedOrFailed());
    const listener = await this.#listen();
    const scrapeListener = await this.#listenForScrapes();
    const sealer = new Sealer(config.secret);
    const serverKeys = readServerKeys(config.serverSigningKeys);
    const tls = readEndpointTls(config);
    const onConnecting = (database: Database): void => {
      this.#connectingDatabase = database;
      if (this.#isRefusingRequests) void database.stop();
    };
    const isCancelled = (): boolean => this.#stopPromise !== null;
    const opened = await openDatabase(config, { sealer, log, onConnecting, isCancelled });
    this.#connectingDatabase = null;
    this.#addPart('database', () => opened.stop());
    const node = await readOrCreateNodeId(config.dataDir);
    const bus = new PostgresBus(opened.database, log, { node });
    this.#addPart('bus', () => bus.stop());
    await this.#startLostHistoryDetector({ database: opened.database, bus, node });
    const services = this.#createServices(opened, { sealer, serverKeys, bus, node, tls });
    this.#addPart('message log', () => services.messageLog.stop());
    this.#addPart('refused posts', () => services.refusedPosts.stop());
    this.#addPart('activations', () => services.activations.stop());
    this.#addPart('file store', () => services.fileStore.stop());
    this.#addPart('uploads', () => stopUploadsDrainingNonResumable(services, config.http.stopDrainTimeoutMs), true);
    services.uploads.checkStoreAndLogUnusable();
    await this.#startFileSweeper(services);
    const housekeeping = new Housekeeping(services);
    await housekeeping.start();
    this.#addPart('housekeeping', () => housekeeping.stop());
    const searchIndexer = new SearchAndMentionIndexer(services);
    this.#addPart('search indexer', () => searchIndexer.stop());
    searchIndexer.start();
    const deliverySources = await this.#startDelivery(services, opened.database);
    this.#addPart('push', () => services.push.stop(config.http.stopDrainTimeoutMs), true);
    services.push.start();
    bus.start();
    await this.#startControl(services);
    const live = await this.#startLive(services, tls, listener);
    const requests = this.#requestCounts;
    const largePosts = new LargePostReader({ log });
    this.#addPart('reader of large posts', () => largePosts.stop());
    const app = createApp(services, { isStopping: () => this.#isRefusingRequests, largePosts });
    listener.setHandler(requests.counting(app));
    const expectations = (this.#expectationMonitor = new ExpectationMonitor(services));
    this.#addPart('monitor of expectations', () => expectations.stop(), true);
    expectations.start();
    const sources = { ...deliverySources, services, live, housekeeping, expectations, requests };
    if (scrapeListener !== null) this.#startMetrics(scrapeListener, { ...sources, listener });
    this.#lastRunRecorder.markReady();
    const { version, databaseVersion } = services;
    log.info('ready', { port: this.#httpPort, metricsPort: this.#metricsPort, version, database: databaseVersion });
  }

  #createServices(
    opened: OpenDatabase,
    given: Pick<Services, 'sealer' | 'serverKeys' | 'bus' | 'node'> & { tls: readonly (EndpointTls | null)[] },
  ): Services {
    const { tls, ...parts } = given;
    const config = this.#config;
    const { limits, delivery } = config;
    const { database } = opened;
    const { bus } = parts;
    const messageLog = createMessageLog(database, bus, limits);
    const log = this.#log;
    const policy = createAddressPolicy(config, this.#dnsResolver, (host, error) => {
      log.warn('own host name not resolved', { host, error });
    });
    const postsWaiting = (): number => messageLog.depth;
    return {
      ...parts,
      config,
      version: readVersion(),
      startedAt: new Date(),
      listeners: this.#listenerUrls,
      certificateFingerprints: tls.flatMap((each) => (each === null ? [] : [each.certificateFingerprint])),
      metricsUrl: this.#metricsPort === null ? null : `${httpUrl(config.metrics.interface, this.#metricsPort)}/metrics`,
      database,
      databaseVersion: opened.version,
      messageLog,
      refusedPosts: new RefusedPostRecorder({ pool: database.general, log }),
      tokens: new IntegrationTokenCache(database.general, bus, limits, parts.sealer),
      sessions: new SessionCache(database.general, bus),
      sessionCookie: new SessionCookie(config.http.baseUri, database.general),
      activations: new ActivationCodes(createProviders(config, userAgent()), {
        secret: config.secret,
        pool: database.general,
        log,
        signUpsPerSourcePerHour: limits.codesPerSourcePerHour,
      }),
      ...createRateLimiters(limits),
      searchLimiterByPerson: new SearchLimiterByPerson(),
      onlineAccounts: () => this.#onlineAccountsOnAllNodes(),
      push: this.#createPushQueue({ database, bus, sealer: parts.sealer, postsWaiting }, policy),
      policy,
      ...createFileServices(config, { pool: database.general, log }),
      sendPingUnlessBusy: (target) => this.#pinger?.send(target) ?? Promise.resolve(null),
      buildExampleRequest: (target) => this.#pinger?.example(target) ?? null,
      deliveriesInFlight: () => this.#lanes?.load.inFlight ?? 0,
      loopingHooks: () => this.#lanes?.loopingHooks ?? [],
      recheckOverdueExpectations: () => this.#expectationMonitor?.lookForReturned(),
      deliveryReport: new DeliveryReportCache({ pool: database.general, parkAfterMs: delivery.parkAfterMs, log }),
      log,
    };
  }

  /** Starts the file sweeper only with this database's store: with another it would delete rows whose files stay. */
  async #startFileSweeper({ database, fileStore: store, node, config, log }: Services): Promise<void> {
    const [pool, orphanRetentionMs] = [database.general, config.retention.orphanedFilesMs];
    const sweeper = new FileSweeper({ pool, store, nodeName: node, orphanRetentionMs, log });
    this.#addPart('sweeper of files', () => sweeper.stop());
    const check = new StoreIdCheck({ pool, store, log });
    this.#addPart('check of the store id', () => check.stop());
    await check.start({ onMatch: () => sweeper.start(), onMismatch: (error) => this.#fail(error) });
  }

  #createPushQueue(
    given: Pick<PushQueueDeps, 'database' | 'bus' | 'sealer' | 'postsWaiting'>,
    policy: AddressPolicy,
  ): PushQueue {
    const { push: config, projectName, live } = this.#config;
    const log = this.#log;
    const vendors = createVendors(this.#config, { policy, lookup: this.#dnsResolver, userAgent: userAgent(), log });
    const foreground = (): readonly AccountId[] => this.#onlineAccountsOnAllNodes();
    const presence = { foreground, maxPresenceStalenessMs: maxPresenceStalenessMs(live.heartbeatMs) };
    return new PushQueue({ ...given, ...presence, config, projectName, vendors, log });
  }

  #onlineAccountsOnAllNodes(): readonly AccountId[] {
    return this.#live?.presence.onlineAccounts() ?? [];
  }

  async #startDelivery(services: Services, database: Database): Promise<Pick<MetricSources, 'lanes' | 'lookup'>> {
    const { config, policy, sealer, bus, node, log } = services;
    const { delivery } = config;
    await retryOrReportUnsignedHooks(services);
    const lookup = this.#dnsResolver;
    const client = new DeliveryClient({ ...delivery, policy, lookup, userAgent: userAgent() });
    this.#addPart('delivery client', () => client.stop());
    const onIncompatibleSchema = (error: Error): void => this.#fail(error);
    const serverKeys = services.serverKeys.slice(0, MAX_KEYS_THAT_SIGN).map((key) => key.privateKey);
    const pinger = new Pinger({ config: delivery, policy, lookup, userAgent: userAgent(), sealer, serverKeys, log });
    this.#pinger = pinger;
    this.#addPart('pings', () => pinger.stop());
    const createFileLink = createFileLinker(services.fileLinkKey, config.http.baseUri);
    const parts = { database, bus, client, sealer, serverKeys, createFileLink, onIncompatibleSchema, log };
    const postReply = createReplyPoster(services);
    const lanes = new LaneManager({ ...parts, nodeId: node, postReply, config: delivery });
    this.#lanes = lanes;
    this.#addPart('lanes', () => lanes.stop(config.http.stopDrainTimeoutMs), true);
    await lanes.start();
    return { lanes, lookup };
  }

  /**
   * Runs before the first write to the message log. The log must contain all changes in this node's witness; if some
   * are lost, the log epoch is raised.
   */
  async #startLostHistoryDetector(parts: Pick<Services, 'database' | 'bus' | 'node'>): Promise<void> {
    const onNewTimeline = (): void => this.#lanes?.suspendUntilOldLeasesExpire();
    const onEpochRaised = (epoch: LogEpoch): void => this.#live?.feeds.observeEpoch(epoch);
    const { dataDir } = this.#config;
    const events = { onNewTimeline, onEpochRaised };
    const detector = new LostHistoryDetector({ ...parts, dataDir, log: this.#log, events });
    this.#addPart('detector of lost history', () => detector.stop());
    await detector.start();
  }

  /** Reports an error after which the process must end: the caller of `start` then has to call `stop`. */
  #fail(error: Error): void {
    this.#isRefusingRequests = true;
    this.#lastRunRecorder.setExitReason(this.#toExitReason(error));
    this.#fatalFailure.resolve(error);
  }

  /** Runs before all slow steps, to report a port in use at once, and to answer requests with "starting". */
  async #listen(): Promise<HttpListener> {
    const { http } = this.#config;
    const starting = this.#requestCounts.counting(createStartingApp(this.#config, this.#log));
    const listener = new HttpListener(http, starting, { limit: this.#connectionLimit });
    this.#addPart('HTTP listener', () => listener.stop(http.stopDrainTimeoutMs), true);
    this.#httpPort = await listener.start();
    this.#listenerUrls.push(httpUrl(http.interface, this.#httpPort));
    return listener;
  }

  /** Serves the metrics on a port of their own, until the end of `stop`. Null if metrics are disabled. */
  async #listenForScrapes(): Promise<HttpListener | null> {
    const { metrics, http } = this.#config;
    if (!metrics.metricsEnabled) return null;
    const listener = createScrapeListener({ metrics, http }, this.#log);
    this.#addPart('metrics listener', () => listener.stop(SCRAPE_STOP_TIMEOUT_MS));
    this.#metricsPort = await listener.start();
    return listener;
  }

  #startMetrics(
    scrapeListener: HttpListener,
    parts: Omit<MetricSources, 'eventLoop' | 'connections' | 'limit'> & { readonly listener: HttpListener },
  ): void {
    const { listener, ...sources } = parts;
    const eventLoop = new EventLoopDelay();
    this.#addPart('event loop delay', () => eventLoop.stop());
    eventLoop.start();
    const metricFamilies = allFamilies({
      ...sources,
      eventLoop,
      connections: () => listener.openHttpConnections,
      limit: this.#connectionLimit,
    });
    scrapeListener.setHandler(metricsListener(metricFamilies, this.#log));
  }

  /** Starts the interfaces for live clients. Runs last, when all parts that clients use have started. */
  async #startLive(services: Services, tls: readonly (EndpointTls | null)[], listener: HttpListener): Promise<Live> {
    const live = new Live(services, operationTable(), { tls, limit: this.#connectionLimit });
    this.#live = live;
    this.#addPart('live', () => live.stop(services.config.http.stopDrainTimeoutMs), true);
    await live.start();
    this.#listenerUrls.push(...live.endpoints.map(({ url }) => url));
    listener.setUpgradeListener((request, socket, head) => live.upgrade(request, socket, head));
    return live;
  }

  async #startControl(services: Services): Promise<void> {
    const { config, log } = services;
    const path = prepareControlSocket(config.dataDir);
    const control = new ControlSocket({ path, services, operations: operationTable(), log });
    this.#addPart('control socket', () => control.stop(), true);
    await control.start();
  }

  #addPart(name: string, stop: StartedPart['stop'], drainsFirst = false): void {
    this.#parts.add({ name, stop, drainsFirst });
    if (this.#isRefusingRequests) throw new StoppedError('stopped while it was starting');
  }

  async #stop(): Promise<void> {
    // Waits for a running `start`, whose next part is not in the list yet. `start` rejects when it adds that part.
    await this.#startPromise.catch(() => {});
    await this.#parts.stop();
  }
}

function messageAsExitReason(error: unknown): ExitReason {
  return { reason: error instanceof Error ? error.message : 'unknown', exitCode: null };
}
