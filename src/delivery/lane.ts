import type { Log } from '../log.ts';
import type { ConversationId, HookId, Seq } from '../model/ids.ts';
import type { Attempt, DeliveryClient } from '../outbound/delivery-client.ts';
import { PARTITIONS, type LaneRow } from '../storage/lanes.ts';
import type { Pool } from '../storage/pool.ts';
import type { AttemptRecord, Settlement } from '../storage/settlement.ts';
import { Apart } from './apart.ts';
import { REST, type Course, type CourseParts, type Rest } from './course.ts';
import type { DeliveryCounts } from './delivery-counts.ts';
import type { FailureNews } from './failure-news.ts';
import type { SigningKeys } from './headers.ts';
import type { Leases } from './leases.ts';
import { LaneSlots, type SlowHooks } from './lane-slots.ts';
import { Ledger } from './ledger.ts';
import { failed, recordOf, type Sent } from './progress.ts';
import { Ramp } from './ramp.ts';
import type { MessageReader } from './reader.ts';
import { RequestReader } from './request.ts';
import type { RetrySchedule } from './retry.ts';
import { Sender } from './sender.ts';
import type { Settler } from './settler.ts';
import type { Slots } from './slots.ts';
import { StrictCourse } from './strict-course.ts';
import { UnorderedCourse } from './unordered-course.ts';
import { Unsettled } from './unsettled.ts';

/** What all lanes share. */
export interface LaneContext {
  readonly reader: MessageReader;
  /** Where a lane reads what it repeats apart. */
  readonly pool: Pool;
  readonly slots: Slots;
  readonly slow: SlowHooks;
  readonly client: DeliveryClient;
  readonly settler: Settler;
  readonly leases: Leases;
  readonly schedule: RetrySchedule;
  readonly parkAfterMs: number;
  readonly counts: DeliveryCounts;
  readonly news: FailureNews;
  readonly log: Log;
  /** A settlement was not taken: the hook was changed by somebody and has to be read again. */
  readonly onStale: (conversationId: ConversationId) => void;
  /** The target answered 410. */
  readonly onGone: (lane: Lane, settlement: Settlement, attempt: AttemptRecord) => Promise<Removal>;
  /** The hook has failed for so long that its group is told; true once it was, or need not be. */
  readonly onParked: (lane: Lane, settlement: Settlement) => Promise<boolean>;
}

/** What became of removing a hook: `stale`, it was changed meanwhile; `failed`, it could not be written. */
export type Removal = 'removed' | 'stale' | 'failed';

/** Rest of a lane that was refused by the fence, before its hook is read again. */
export const REST_MS = REST.ms;
/**
 * Attempts of a lane that may wait for their settlement, and so the deliveries that a kill can repeat. Waiting for each
 * one's commit cost a third of the rate; beyond 8 there was little to gain.
 */
export const MAX_UNSETTLED = 8;

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
  readonly #unsettled: Unsettled;
  readonly #ledger: Ledger;
  readonly #slots: LaneSlots;
  readonly #course: Course;
  #head: Seq;
  #run: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  /** What the timer waits for lets nothing else begin. */
  #deaf = false;
  /** A word came while the course ran, which may have looked before. */
  #woken = false;
  #held = false;
  #retired = false;
  #stale = false;
  #isParked: boolean;

  constructor(row: LaneRow, keys: SigningKeys, context: LaneContext) {
    this.id = row.id;
    this.conversationId = row.conversationId;
    this.generation = row.generation;
    this.host = new URL(row.url).hostname;
    this.#row = row;
    this.#context = context;
    this.#head = row.lastSeq;
    this.#isParked = row.parkedAt !== null;
    this.#unsettled = new Unsettled(context.settler, MAX_UNSETTLED, () => this.#reread());
    this.#ledger = new Ledger(row, this.#unsettled);
    this.#slots = new LaneSlots(context.slots, this, context.slow);
    const parts = this.#partsOf(row, keys);
    this.#course = row.order === 'none' ? new UnorderedCourse(parts) : new StrictCourse(parts);
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
    const rests = this.#run === null && this.#timer === null && this.#unsettled.isEmpty;
    return rests && !this.#course.hasWork;
  }

  /** True when the row is known to have changed beneath this lane, so that what it remembers must not be used. */
  get stale(): boolean {
    return this.#stale;
  }

  /** The conversation is at this seq, at least. */
  wake(seq: Seq): void {
    if (seq > this.#head) {
      this.#head = seq;
      this.#woken = true;
      if (this.#run !== null) this.#course.wake();
      else if (this.#timer !== null && !this.#deaf) this.#stopTimer();
    }
    this.#start();
  }

  /** From this moment on no attempt starts, until `resume` or for ever. */
  hold(): void {
    this.#held = true;
  }

  resume(): void {
    this.#held = false;
    this.#course.wake();
    this.#start();
  }

  /** Ends the lane; resolves when its attempts in flight, if any, are over and settled. */
  async retire(): Promise<void> {
    this.#retired = true;
    this.#stopTimer();
    this.#slots.stop();
    this.#course.wake();
    await this.#run;
    await this.#unsettled.drain();
  }

  #partsOf(row: LaneRow, keys: SigningKeys): CourseParts {
    const { reader, pool, client, leases, schedule, counts } = this.#context;
    const slots = this.#slots;
    const mayGo = (): boolean => !this.#held && !this.#retired;
    return {
      batch: row.batch,
      schedule,
      slots,
      requests: new RequestReader(reader, row),
      sender: new Sender(row, keys, { client, leases, mayGo, learn: (outcome) => slots.learn(outcome) }),
      ledger: this.#ledger,
      apart: new Apart(pool, row, schedule),
      ramp: new Ramp(),
      counts,
      mayGo,
      head: () => this.#head,
      caughtUp: (at, head) => {
        if (this.#head === head) this.#head = at;
      },
      unregister: (sent) => this.#unregister(sent),
      failed: (outcome, settlement) => this.#failed(outcome, settlement),
      troubled: (error) => this.#troubled(error),
      setAside: (message) => this.#setAside(message),
    };
  }

  #start(): void {
    if (this.#run !== null || this.#timer !== null || this.#held || this.#retired) return;
    if (this.#row.pausedAt !== null || !this.#course.hasWork) return;
    this.#woken = false;
    this.#run = this.#go().then((rest) => {
      this.#run = null;
      // A word that came in the last moment of the run found it still going.
      if (rest === null || (this.#woken && !rest.deaf)) this.#start();
      else this.#rest(rest);
    });
  }

  async #go(): Promise<Rest | null> {
    try {
      return await this.#course.run();
    } catch (error) {
      this.#troubled(error);
      return REST;
    }
  }

  #troubled(error: unknown): void {
    this.#context.log.debug('a lane rests after a failure', { hook: this.id, host: this.host, error });
  }

  #rest({ ms, deaf }: Rest): void {
    if (this.#retired) return;
    this.#deaf = deaf;
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
  async #unregister(sent: Sent): Promise<boolean> {
    const record = recordOf(sent, this.#ledger.progress.failures + 1);
    // The removal writes no cursor: what was delivered before must stand in the row by then.
    if (!(await this.#ledger.drain())) return true;
    const health = failed(this.#ledger.progress, sent, this.#context.schedule);
    const settlement = this.#ledger.draft(health, { epoch: sent.epoch, attempts: [record] });
    const removal = await this.#context.onGone(this, settlement, record);
    this.#context.counts.add(record, removal === 'removed');
    // The next attempt tries again, when the schedule says.
    if (removal === 'failed') return false;
    this.#reread();
    return true;
  }

  #reread(): void {
    this.#stale = true;
    this.hold();
    this.#context.onStale(this.conversationId);
  }

  #failed({ category, code, detail, durationMs }: Attempt, settlement: Settlement): void {
    const { failures, failingSince } = settlement;
    const fields = { hook: this.id, host: this.host, category, code, detail, failures, durationMs };
    this.#context.news.tell(fields);
    const failingMs = failingSince === null ? 0 : Date.now() - failingSince.getTime();
    if (failures === 1) this.#isParked = false;
    if (!this.#isParked && failingMs >= this.#context.parkAfterMs) void this.#park(settlement);
  }

  #setAside({ firstSeq, code }: AttemptRecord): void {
    this.#context.counts.setAside += 1;
    const fields = { hook: this.id, host: this.host, group: this.conversationId, seq: firstSeq, code };
    this.#context.log.warn('a message was set aside: its target refuses it and accepts those behind it', fields);
  }

  /** Beside the attempts, which go on as before. Where it cannot be written, the next failure tries again. */
  async #park(settlement: Settlement): Promise<void> {
    this.#isParked = true;
    // The row has to say that it fails before it can say that it is parked.
    const isOurs = await this.#ledger.drain();
    this.#isParked = isOurs && (await this.#context.onParked(this, settlement));
  }
}
