import type { Log } from '../log.ts';
import type { ConversationId, HookId, Seq } from '../model/ids.ts';
import type { HttpAttemptOutcome, DeliveryClient } from '../outbound/delivery-client.ts';
import type { PostReply } from '../receivers/core/reply.ts';
import { receiverFormat } from '../receivers/formats.ts';
import { PARTITIONS, type LaneRow } from '../storage/hooks/lanes.ts';
import type { Pool } from '../storage/db/pool.ts';
import type { AttemptRecord, Settlement } from '../storage/hooks/settlement.ts';
import { RetryQueue } from './retry-queue.ts';
import { ERROR_DELAY, type DeliveryStrategy, type StrategyDeps, type Delay } from './delivery-strategy.ts';
import type { DeliveryCounts } from './delivery-counts.ts';
import type { FirstFailureWarningThrottle } from './failure-warning-throttle.ts';
import type { SigningKeys } from './headers.ts';
import type { Leases } from './leases.ts';
import { LaneLimiter, type SlowHooks } from './lane-limiter.ts';
import { ProgressTracker } from './progress-tracker.ts';
import { healthAfterFailure, toAttemptRecord, type AttemptResult } from './attempt-result.ts';
import { SlowStart } from './slow-start.ts';
import type { MessageReader } from './message-reader.ts';
import type { EventReader } from './events/event-reader.ts';
import { EventRequestBuilder } from './events/event-request-builder.ts';
import type { CreateFileLink } from './payload.ts';
import { Receiver } from './receivers/receiver.ts';
import { RequestBodyBuilder } from './request-body-builder.ts';
import type { RetryPolicy } from '../model/retry-policy.ts';
import { Sender } from './sender.ts';
import type { Settler } from './settler.ts';
import type { HostLimiter } from './host-limiter.ts';
import { OrderedStrategy } from './ordered-strategy.ts';
import { UnorderedStrategy } from './unordered-strategy.ts';
import { SettlementBuffer } from './settlement-buffer.ts';

/** What all lanes share. */
export interface LaneContext {
  readonly reader: MessageReader;
  readonly eventReader: EventReader;
  /** Where a lane reads what it repeats apart. */
  readonly retryQueuePool: Pool;
  readonly limiter: HostLimiter;
  readonly slowHooks: SlowHooks;
  readonly client: DeliveryClient;
  readonly createFileLink: CreateFileLink;
  readonly postReply: PostReply;
  readonly settler: Settler;
  readonly leases: Leases;
  readonly retryPolicy: RetryPolicy;
  readonly parkAfterMs: number;
  readonly counts: DeliveryCounts;
  readonly failureWarningThrottle: FirstFailureWarningThrottle;
  readonly log: Log;
  /** A settlement was not taken: the hook was changed by somebody and has to be read again. */
  readonly onStale: (conversationId: ConversationId) => void;
  /** The head counts a message that was not found: a retention rule may have removed it, so the row is read again. */
  readonly onMissingMessages: (conversationId: ConversationId) => void;
  /** The target answered 410. */
  readonly onGone: (lane: Lane, fence: Settlement, attempt: AttemptRecord) => Promise<RemovalResult>;
  /** The hook has failed for so long that its group is told; true once it was, or need not be. */
  readonly onParkDue: (lane: Lane, settlement: Settlement) => Promise<boolean>;
}

/** The outcome of removing a hook: `stale`, it was changed meanwhile; `failed`, it could not be written. */
export type RemovalResult = 'removed' | 'stale' | 'failed';

/** Rest of a lane that was refused by the fence, before its hook is read again. */
export const REFUSED_LANE_RELOAD_MS = ERROR_DELAY.ms;
/**
 * Attempts of a lane that may wait for their settlement, and so the deliveries that a kill can repeat. Waiting for each
 * one's commit cost a third of the rate; beyond 8 there was little to gain.
 */
export const MAX_UNSETTLED_ATTEMPTS = 8;

/**
 * One reverse webhook on its way through the log. In which order it sends is its course's; here is when: while something
 * is to be done, unless it is held, and until it is retired.
 */
export class Lane {
  readonly id: HookId;
  readonly conversationId: ConversationId;
  readonly generation: number;
  /** The target's host, which may be logged; its path and query never. */
  readonly host: string;
  readonly #row: LaneRow;
  readonly #context: LaneContext;
  readonly #settlementBuffer: SettlementBuffer;
  readonly #tracker: ProgressTracker;
  readonly #limiter: LaneLimiter;
  readonly #requests: RequestBodyBuilder;
  readonly #strategy: DeliveryStrategy;
  /** Null: the hook asks for no events. */
  readonly #events: EventRequestBuilder | null;
  #head: Seq;
  #run: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  /** What the timer waits for lets nothing else begin. */
  #ignoreWakeups = false;
  /** A word came while the course ran, which may have looked before. */
  #woken = false;
  #suspended = false;
  #retired = false;
  #stale = false;
  #isParkedOrParking: boolean;

  constructor(row: LaneRow, keys: SigningKeys, context: LaneContext) {
    this.id = row.id;
    this.conversationId = row.conversationId;
    this.generation = row.generation;
    this.host = new URL(row.url).hostname;
    this.#row = row;
    this.#context = context;
    this.#head = row.lastSeq;
    this.#isParkedOrParking = row.parkedAt !== null;
    this.#settlementBuffer = new SettlementBuffer(context.settler, MAX_UNSETTLED_ATTEMPTS, () => this.#reload());
    this.#tracker = new ProgressTracker(row, this.#settlementBuffer);
    this.#limiter = new LaneLimiter(context.limiter, this, context.slowHooks);
    this.#events = row.eventCursor === null ? null : new EventRequestBuilder(context.eventReader, row);
    const receiver = this.#createReceiver(row, keys);
    const foreign =
      receiver === null ? null : { receiver, onTooOld: (record: AttemptRecord) => this.#logTooOld(record) };
    this.#requests = new RequestBodyBuilder(context.reader, row, foreign);
    const deps = this.#buildDeps(row, keys, receiver);
    this.#strategy = row.order === 'none' ? new UnorderedStrategy(deps) : new OrderedStrategy(deps);
  }

  get partition(): number {
    return this.id % PARTITIONS;
  }

  /** True once it was told to end, though its last attempt may still be in flight. */
  get retired(): boolean {
    return this.#retired;
  }

  /** True when nothing is pending or unsettled as far as this lane knows, so that it may be forgotten. */
  get idle(): boolean {
    const isQuiet = this.#run === null && this.#timer === null && this.#settlementBuffer.isEmpty;
    return isQuiet && !this.#strategy.hasPendingWork;
  }

  /** Whether the receiver seems to answer posts of the group's webhook with further ones. */
  isLoop(nowMs: number): boolean {
    return this.#requests.isLoop(nowMs);
  }

  /** True when the row is known to have changed beneath this lane, so that what it remembers must not be used. */
  get stale(): boolean {
    return this.#stale;
  }

  /** The conversation is at this seq, at least. */
  wake(seq: Seq): void {
    if (seq > this.#head) {
      this.#head = seq;
      this.#noteWakeupInterruptingWait();
    }
    this.#start();
  }

  /** The conversation has a new event. */
  wakeForEvents(): void {
    if (this.#events === null) return;
    this.#events.wake();
    this.#noteWakeupInterruptingWait();
    this.#start();
  }

  #noteWakeupInterruptingWait(): void {
    this.#woken = true;
    if (this.#run !== null) this.#strategy.wake();
    else if (this.#timer !== null && !this.#ignoreWakeups) this.#stopTimer();
  }

  /** From this moment on no attempt starts, until `resume` or for ever. */
  suspend(): void {
    this.#suspended = true;
  }

  resume(): void {
    this.#suspended = false;
    this.#strategy.wake();
    this.#start();
  }

  /** Ends the lane; resolves when its attempts in flight, if any, are over and settled. */
  async retire(): Promise<void> {
    this.#retired = true;
    this.#stopTimer();
    this.#limiter.stop();
    this.#strategy.wake();
    await this.#run;
    await this.#settlementBuffer.flush();
  }

  #buildDeps(row: LaneRow, keys: SigningKeys, receiver: Receiver | null): StrategyDeps {
    const context = this.#context;
    const { retryQueuePool, client, leases, retryPolicy, counts } = context;
    const limiter = this.#limiter;
    const isLaneActive = (): boolean => !this.#suspended && !this.#retired;
    return {
      maxMessagesPerRequest: row.batch,
      retryPolicy,
      limiter,
      requests: this.#requests,
      events: this.#events,
      sender: new Sender(row, keys, {
        client,
        leases,
        isLaneActive,
        markHookSlowOrQuick: (outcome) => limiter.markHookSlowOrQuick(outcome),
        receiver,
      }),
      tracker: this.#tracker,
      retryQueue: new RetryQueue(retryQueuePool, row, retryPolicy),
      slowStart: new SlowStart(),
      counts,
      isLaneActive,
      head: () => this.#head,
      lowerHeadAfterEmptyRead: (at, head) => {
        if (this.#head === head) this.#head = at;
        context.onMissingMessages(this.conversationId);
      },
      reloadHook: () => context.onMissingMessages(this.conversationId),
      tryHandleGone: (result) => this.#tryHandleGone(result),
      onCountedFailure: (outcome, settlement) => this.#logFailureAndParkIfDue(outcome, settlement),
      onError: (error) => this.#logInternalError(error),
      onDeadLetter: (message) => this.#onDeadLetter(message),
    };
  }

  #createReceiver(row: LaneRow, keys: SigningKeys): Receiver | null {
    const format = receiverFormat(row.format);
    if (format === null) return null;
    const { client, createFileLink, postReply, log } = this.#context;
    return new Receiver(row, format, keys, { client, createFileLink, postReply, log, isRetired: () => this.#retired });
  }

  /** Where the lease has lapsed, the lane that passes them over next logs them. */
  #logTooOld(record: AttemptRecord): void {
    const epoch = this.#suspended || this.#retired ? null : this.#context.leases.usableEpochOf(this.partition);
    if (epoch !== null) this.#tracker.settle({}, { epoch, attempts: [record] });
  }

  #start(): void {
    if (this.#run !== null || this.#timer !== null || this.#suspended || this.#retired) return;
    if (this.#row.pausedAt !== null || !this.#strategy.hasPendingWork) return;
    this.#woken = false;
    this.#run = this.#runStrategy().then((delay) => {
      this.#run = null;
      // A word that came in the last moment of the run found it still going.
      if (delay === null || (this.#woken && !delay.ignoreWakeups)) this.#start();
      else this.#scheduleRun(delay);
    });
  }

  async #runStrategy(): Promise<Delay | null> {
    try {
      return await this.#strategy.run();
    } catch (error) {
      this.#logInternalError(error);
      return ERROR_DELAY;
    }
  }

  #logInternalError(error: unknown): void {
    this.#context.log.debug('a lane rests after a failure', { hook: this.id, host: this.host, error });
  }

  #scheduleRun({ ms, ignoreWakeups }: Delay): void {
    if (this.#retired) return;
    this.#ignoreWakeups = ignoreWakeups;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#start();
    }, ms);
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** The target answered 410: the hook goes. False where it could not be removed: then it is a failure. */
  async #tryHandleGone(goneResult: AttemptResult): Promise<boolean> {
    const record = toAttemptRecord(goneResult, this.#tracker.progress.failures + 1);
    // The removal writes no cursor: what was delivered before must stand in the row by then.
    if (!(await this.#tracker.flush())) return true;
    const health = healthAfterFailure(this.#tracker.progress, goneResult, this.#context.retryPolicy);
    const settlement = this.#tracker.buildSettlement(health, { epoch: goneResult.epoch, attempts: [record] });
    const removal = await this.#context.onGone(this, settlement, record);
    this.#context.counts.add(record, removal === 'removed');
    // The next attempt tries again, when the retry policy says.
    if (removal === 'failed') return false;
    this.#reload();
    return true;
  }

  #reload(): void {
    this.#stale = true;
    this.suspend();
    this.#context.onStale(this.conversationId);
  }

  #logFailureAndParkIfDue({ category, code, detail, durationMs }: HttpAttemptOutcome, settlement: Settlement): void {
    const { failures, failingSince } = settlement;
    const fields = { hook: this.id, host: this.host, category, code, detail, failures, durationMs };
    this.#context.failureWarningThrottle.warnFirstElseDebug(fields);
    const failingMs = failingSince === null ? 0 : Date.now() - failingSince.getTime();
    if (failures === 1) this.#isParkedOrParking = false;
    if (!this.#isParkedOrParking && failingMs >= this.#context.parkAfterMs)
      void this.#parkHookNotifyingGroup(settlement);
  }

  #onDeadLetter({ firstSeq, rev, code }: AttemptRecord): void {
    this.#context.counts.deadLettered += 1;
    const fields = { hook: this.id, host: this.host, group: this.conversationId, seq: firstSeq, code };
    const { log } = this.#context;
    if (rev > 0)
      log.warn('an event was set aside: its target refuses it and accepts what is behind it', { ...fields, rev });
    else log.warn('a message was set aside: its target refuses it and accepts those behind it', fields);
  }

  /** Beside the attempts, which go on as before. Where it cannot be written, the next failure tries again. */
  async #parkHookNotifyingGroup(settlement: Settlement): Promise<void> {
    this.#isParkedOrParking = true;
    // The row has to say that it fails before it can say that it is parked.
    const isOurs = await this.#tracker.flush();
    this.#isParkedOrParking = isOurs && (await this.#context.onParkDue(this, settlement));
  }
}
