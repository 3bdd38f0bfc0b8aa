import type { Log } from '../log.ts';
import type { ConversationId, HookId, Seq } from '../model/ids.ts';
import type { HttpAttemptOutcome, DeliveryClient } from '../outbound/delivery-client.ts';
import type { PostReply } from '../receivers/core/reply.ts';
import { receiverFormat } from '../receivers/formats.ts';
import { isDefect } from '../storage/db/database-error.ts';
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
import { MessageRequestBuilder } from './request-body-builder.ts';
import type { RetryPolicy } from '../model/retry-policy.ts';
import { Sender } from './sender.ts';
import type { Settler } from './settler.ts';
import type { HostLimiter } from './host-limiter.ts';
import { OrderedStrategy } from './ordered-strategy.ts';
import { UnorderedStrategy } from './unordered-strategy.ts';
import { SettlementBuffer } from './settlement-buffer.ts';

/** The parts that all lanes share. */
export interface LaneContext {
  readonly reader: MessageReader;
  readonly eventReader: EventReader;
  /** The pool with which a lane reads its retry rows. */
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
  /** Reads the hook's row again: a settlement was refused, or the hook was removed or changed. */
  readonly onStale: (conversationId: ConversationId) => void;
  /**
   * Reads the hook's row again: the lane found no message although its head is greater. A retention rule may have
   * removed the message.
   */
  readonly onMissingMessages: (conversationId: ConversationId) => void;
  /** Removes the hook, since its target answered 410. */
  readonly onGone: (lane: Lane, fence: Settlement, attempt: AttemptRecord) => Promise<RemovalResult>;
  /**
   * Notifies the group that the hook has failed for `parkAfterMs`. Resolves to false when the write failed; to true
   * when the notice is written, or when somebody changed the hook.
   */
  readonly onParkDue: (lane: Lane, settlement: Settlement) => Promise<boolean>;
}

/**
 * The outcome of removing a hook. `stale`: somebody changed the hook meanwhile; `failed`: the removal could not be
 * written.
 */
export type RemovalResult = 'removed' | 'stale' | 'failed';

/** After the settlement of a lane was refused, the pause before its hook's row is read again. */
export const REFUSED_LANE_RELOAD_MS = ERROR_DELAY.ms;
/**
 * The most attempts of a lane that wait for their settlement. A kill of the process repeats as many deliveries. A wait
 * for each commit cost a third of the rate; more than 8 gained little.
 */
export const MAX_UNSETTLED_ATTEMPTS = 8;

/**
 * Delivers for one reverse webhook. The strategy decides the order of the requests. The lane runs its strategy while
 * there is work, unless the lane is suspended or retired.
 */
export class Lane {
  readonly id: HookId;
  readonly conversationId: ConversationId;
  readonly generation: number;
  /** The target's host. Logs may contain it, but never the target's path and query. */
  readonly host: string;
  readonly #row: LaneRow;
  readonly #context: LaneContext;
  readonly #settlementBuffer: SettlementBuffer;
  readonly #tracker: ProgressTracker;
  readonly #limiter: LaneLimiter;
  readonly #requests: MessageRequestBuilder;
  readonly #strategy: DeliveryStrategy;
  /** Null: the hook asks for no events. */
  readonly #events: EventRequestBuilder | null;
  #head: Seq;
  #strategyRun: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  /** True: a notification does not end the pause that `#timer` measures. */
  #ignoreWakeups = false;
  #hasLoggedDefect = false;
  /** True: a notification arrived while the strategy ran, perhaps after the strategy's last check for work. */
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
    const foreignReceiver =
      receiver === null ? null : { receiver, onTooOld: (record: AttemptRecord) => this.#logTooOld(record) };
    this.#requests = new MessageRequestBuilder(context.reader, row, foreignReceiver);
    const deps = this.#buildDeps(row, keys, receiver);
    this.#strategy = row.order === 'none' ? new UnorderedStrategy(deps) : new OrderedStrategy(deps);
  }

  get partition(): number {
    return this.id % PARTITIONS;
  }

  /** True once `retire` was called, though the last attempt may still be in flight. */
  get retired(): boolean {
    return this.#retired;
  }

  /** True when this lane knows of nothing pending or unsettled, so that it may be removed from memory. */
  get idle(): boolean {
    const isQuiet = this.#strategyRun === null && this.#timer === null && this.#settlementBuffer.isEmpty;
    return isQuiet && !this.#strategy.hasPendingWork;
  }

  /** Whether the receiver seems to answer posts of the group's webhook with further posts. */
  isLoop(nowMs: number): boolean {
    return this.#requests.isLoop(nowMs);
  }

  /** True when the hook's row may have changed, so that it must be read again before another attempt. */
  get stale(): boolean {
    return this.#stale;
  }

  /** Announces that the conversation has a message with this seq, or a newer one. */
  wake(seq: Seq): void {
    if (seq > this.#head) {
      this.#head = seq;
      this.#noteWakeupInterruptingWait();
    }
    this.#start();
  }

  /** Announces that the conversation has a new event. */
  wakeForEvents(): void {
    if (this.#events === null) return;
    this.#events.onEventAnnounced();
    this.#noteWakeupInterruptingWait();
    this.#start();
  }

  #noteWakeupInterruptingWait(): void {
    this.#woken = true;
    if (this.#strategyRun !== null) this.#strategy.wake();
    else if (this.#timer !== null && !this.#ignoreWakeups) this.#stopTimer();
  }

  /** No attempt starts from this moment until `resume`. */
  suspend(): void {
    this.#suspended = true;
  }

  resume(): void {
    this.#suspended = false;
    this.#strategy.wake();
    this.#start();
  }

  /** Stops the lane for good. Resolves when its attempts in flight have ended and their outcomes are written. */
  async retire(): Promise<void> {
    this.#retired = true;
    this.#stopTimer();
    this.#limiter.stop();
    this.#strategy.wake();
    await this.#strategyRun;
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
      lowerHeadAfterEmptyRead: (toSeq, expectedHead) => {
        if (this.#head === expectedHead) this.#head = toSeq;
        context.onMissingMessages(this.conversationId);
      },
      reloadHook: () => context.onMissingMessages(this.conversationId),
      tryHandleGone: (result) => this.#tryHandleGone(result),
      onCountedFailure: (outcome, settlement) => this.#logFailureAndParkIfDue(outcome, settlement),
      onError: (error) => this.#logInternalError(error),
      onDeadLetter: (deadLetterRecord) => this.#onDeadLetter(deadLetterRecord),
    };
  }

  #createReceiver(row: LaneRow, keys: SigningKeys): Receiver | null {
    const format = receiverFormat(row.format);
    if (format === null) return null;
    const { client, createFileLink, postReply, log } = this.#context;
    return new Receiver(row, format, keys, { client, createFileLink, postReply, log, isRetired: () => this.#retired });
  }

  /**
   * Records in the delivery log that messages were too old for the hook. If this lane may write nothing now, the next
   * lane that skips the messages records them.
   */
  #logTooOld(record: AttemptRecord): void {
    const epoch = this.#suspended || this.#retired ? null : this.#context.leases.usableEpochOf(this.partition);
    if (epoch !== null) this.#tracker.settle({}, { leaseEpoch: epoch, attempts: [record] });
  }

  #start(): void {
    if (this.#strategyRun !== null || this.#timer !== null || this.#suspended || this.#retired) return;
    if (this.#row.pausedAt !== null || !this.#strategy.hasPendingWork) return;
    this.#woken = false;
    this.#strategyRun = this.#runStrategy().then((delay) => {
      this.#strategyRun = null;
      // A notification may have come between the strategy's last check for work and its end: then the strategy runs
      // again at once.
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
    const { log } = this.#context;
    const fields = { hook: this.id, host: this.host, error };
    // A lane tries again every second: it logs its first defect only, or the log would hold nothing else.
    if (this.#hasLoggedDefect || !isDefect(error)) return log.debug('a lane rests after a failure', fields);
    this.#hasLoggedDefect = true;
    log.error('a defect of Klatch fails the deliveries of a hook: the server keeps the messages, and retries', fields);
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

  /** Removes the hook, whose target answered 410. False when the removal fails: the answer then counts as a failure. */
  async #tryHandleGone(goneResult: AttemptResult): Promise<boolean> {
    const record = toAttemptRecord(goneResult, this.#tracker.progress.failures + 1);
    // The removal of the hook writes no cursor, so earlier deliveries must be settled first.
    if (!(await this.#tracker.flush())) return true;
    const health = healthAfterFailure(this.#tracker.progress, goneResult, this.#context.retryPolicy);
    const settlement = this.#tracker.buildSettlement(health, { leaseEpoch: goneResult.leaseEpoch, attempts: [record] });
    const removal = await this.#context.onGone(this, settlement, record);
    this.#context.counts.add(record, removal === 'removed');
    // If the removal failed, the next attempt follows after a wait by the retry policy. It gets a 410 again, and tries
    // the removal again.
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

  /**
   * Parks the hook and notifies its group; attempts continue. If the write fails, the lane tries again after the next
   * failed attempt.
   */
  async #parkHookNotifyingGroup(settlement: Settlement): Promise<void> {
    this.#isParkedOrParking = true;
    // The failure must be written to the hook's row before the hook can be parked.
    const areAllAccepted = await this.#tracker.flush();
    this.#isParkedOrParking = areAllAccepted && (await this.#context.onParkDue(this, settlement));
  }
}
