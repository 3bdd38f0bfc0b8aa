import type { Seq } from '../model/ids.ts';
import { MAX_RETRIES, type RetryRow } from '../storage/retries.ts';
import type { LaneProgress, RetryRecord } from '../storage/settlement.ts';
import { drop, retriesOf, sendRow, settleRow } from './apart-request.ts';
import { follow, REST, type Course, type CourseParts, type Rest } from './course.ts';
import type { Slot } from './lane-slots.ts';
import { OpenRanges, type OpenRange, type Range } from './open-ranges.ts';
import { beyond, failed, HEALTHY, recordOf, type Sent } from './progress.ts';
import type { DeliveryRequest, RequestBounds } from './request.ts';
import { NextAttempt } from './retry.ts';
import type { Unsent } from './sender.ts';

/** Requests in flight at once (the contract). */
export const MAX_IN_FLIGHT = 16;
/** After so many failures without a success nothing further is read: the hook is at fault, not a message (the contract). */
const MAX_FAILURES = 20;

/**
 * In no order: several requests at once, and what fails becomes a row that is repeated apart, so that it holds back
 * nothing. The cursor stays below what is on its way, until too many have overtaken that.
 */
export class UnorderedCourse implements Course {
  readonly #parts: CourseParts;
  readonly #open: OpenRanges;
  #active = 0;
  #turn = Promise.withResolvers<void>();
  #pause: Rest | null = null;

  constructor(parts: CourseParts) {
    this.#parts = parts;
    this.#open = new OpenRanges(parts.ledger.progress.cursor);
  }

  get hasWork(): boolean {
    return this.#isBehind || this.#parts.apart.hasWork;
  }

  wake(): void {
    this.#turn.resolve();
  }

  async run(): Promise<Rest | null> {
    const { mayGo } = this.#parts;
    this.#pause = null;
    for (;;) {
      this.#turn = Promise.withResolvers();
      try {
        while (mayGo() && this.#pause === null && this.#next !== null && this.#active < this.#limit)
          await this.#begin();
      } catch (error) {
        // Those in flight end first: nobody else would wait for them.
        this.#pause = REST;
        if (this.#active === 0) throw error;
        this.#parts.troubled(error);
      }
      if (this.#active === 0) return mayGo() ? (this.#pause ?? this.#rest()) : null;
      await this.#nextTurn();
    }
  }

  /** Until a request is over, a word comes, or something falls due that is repeated apart. */
  async #nextTurn(): Promise<void> {
    const dueMs = this.#parts.apart.waitMs;
    const timer = dueMs === null || dueMs === 0 ? undefined : setTimeout(() => this.#turn.resolve(), dueMs);
    await this.#turn.promise;
    clearTimeout(timer);
  }

  get #limit(): number {
    return Math.min(MAX_IN_FLIGHT, this.#parts.ramp.allowance);
  }

  get #isBehind(): boolean {
    return this.#open.readTo < this.#parts.head() || this.#open.again !== undefined;
  }

  get #next(): 'apart' | 'further' | null {
    if (this.#parts.apart.waitMs === 0) return 'apart';
    return this.#isBehind && this.#waitMs() === 0 ? 'further' : null;
  }

  /** Until it may read on, in ms; null when that depends on what is repeated apart. */
  #waitMs(): number | null {
    const { ledger, apart } = this.#parts;
    const { failures, nextAttemptAt } = ledger.progress;
    if (apart.count + this.#open.count >= MAX_RETRIES || this.#open.isCrowded) return null;
    if (failures < MAX_FAILURES) return 0;
    if (apart.count > 0 || this.#active > 0) return null;
    // Nothing is left to try it with, since the hook asked for order until now.
    return nextAttemptAt === null ? 0 : new NextAttempt(nextAttemptAt, this.#parts.schedule).waitMs();
  }

  #rest(): Rest | null {
    const apartMs = this.#parts.apart.waitMs;
    if (apartMs !== null) return { ms: apartMs, deaf: false };
    if (!this.#isBehind) return null;
    // With nothing that waits apart, and yet not allowed to read on, there is only a while to wait.
    return { ms: this.#waitMs() ?? REST.ms, deaf: false };
  }

  /** Lets the next request go. They are taken out of their places one after the other. */
  async #begin(): Promise<void> {
    await this.#parts.ledger.room();
    if (this.#next === 'apart') await this.#beginApart();
    else if (this.#next === 'further') await this.#beginFurther();
  }

  async #beginApart(): Promise<void> {
    const { slots, apart, ledger } = this.#parts;
    const row = await apart.take(
      () => ledger.drain(),
      (seq) => this.#open.holds(seq),
    );
    if (row === null) return;
    const slot = await slots.acquire();
    if (slot !== null) {
      this.#launch(this.#sendApart(row), slot);
    } else {
      apart.done('undecided');
      this.#pause = REST;
    }
  }

  async #beginFurther(): Promise<void> {
    const { slots } = this.#parts;
    const slot = await slots.acquire();
    if (slot === null) {
      this.#pause = REST;
      return;
    }
    let isOnItsWay = false;
    try {
      isOnItsWay = await this.#sendFurther(slot);
    } finally {
      if (!isOnItsWay) slots.release(slot);
    }
  }

  /** True when a request is on its way, which gives the slot back. */
  async #sendFurther(slot: Slot): Promise<boolean> {
    const { requests, head, caughtUp } = this.#parts;
    // It stays where the cursor sees it until it is on its way.
    const { again, readTo } = this.#open;
    const after = again === undefined ? readTo : ((again.first - 1) as Seq);
    const headBefore = head();
    const bounds = again === undefined ? this.#bounds() : { messages: Number.POSITIVE_INFINITY, last: again.last };
    const { passed, request } = await requests.next(after, bounds);
    if (request === null) {
      if (passed > after) this.#leaveOut(passed, again);
      else if (again === undefined) caughtUp(after, headBefore);
      else this.#pause = REST;
      return false;
    }
    this.#launch(this.#send(request, this.#open.begin(request, again)), slot);
    return true;
  }

  /** A batch that failed while the hook asked for order is sent as it was, and one that was refused, one by one. */
  #bounds(): RequestBounds {
    const { batch, ledger, ramp } = this.#parts;
    const { batchLast, singlesLast } = ledger.progress;
    const { readTo } = this.#open;
    if (batchLast !== null && readTo < batchLast) return { messages: Number.POSITIVE_INFINITY, last: batchLast };
    const isSingle = singlesLast !== null && readTo < singlesLast;
    return { messages: isSingle ? 1 : Math.min(batch, ramp.allowance), last: null };
  }

  #leaveOut(passed: Seq, again: Range | undefined): void {
    const { ledger, sender, mayGo } = this.#parts;
    // What is left out may be another by now.
    if (!mayGo()) return;
    this.#open.leaveOut(passed, again);
    const epoch = sender.epoch;
    if (epoch === null) this.#pause = REST;
    // The cursor is written with the next settlement when not with this one.
    else ledger.settle(this.#place(), { epoch, attempts: [] });
  }

  /** A request is on its way; the slot is given back when it is over. */
  #launch(request: Promise<void>, slot: Slot): void {
    const { slots } = this.#parts;
    this.#active += 1;
    void request
      .catch((error: unknown) => {
        // What could not be decided is sent again after a rest.
        this.#pause = REST;
        this.#parts.troubled(error);
      })
      .finally(() => {
        this.#active -= 1;
        slots.release(slot);
        this.#turn.resolve();
      });
  }

  async #send(request: DeliveryRequest, range: OpenRange): Promise<void> {
    const { sender, requests, unregister } = this.#parts;
    let isDecided = false;
    try {
      const sent = await sender.send(request, requests.idOf(request), () => this.#written(range));
      if (sent === 'undecided') this.#pause = REST;
      isDecided = typeof sent !== 'string' && !(sent.outcome.code === 410 && (await unregister(sent)));
      if (!isDecided) return;
      // Before what it became is written, so that the cursor may pass it.
      this.#open.decided(range);
      if (range.hasRow) this.#parts.apart.replaced(range.first);
      await this.#judge(sent as Sent, range.hasRow);
    } finally {
      if (!isDecided) this.#open.undecided(range);
    }
  }

  #written(range: OpenRange): void {
    const wasCrowded = this.#open.isCrowded;
    range.isWritten = true;
    if (wasCrowded) this.#turn.resolve();
  }

  /** `hasRow`: it was written as a row while it was on its way. */
  async #judge(sent: Sent, hasRow: boolean): Promise<void> {
    const { ledger, counts } = this.#parts;
    const record = recordOf(sent, 1);
    if (sent.outcome.code !== 410) counts.add(record);
    const { epoch } = sent;
    const row = { seq: sent.request.first, lastSeq: sent.request.last, attempts: 0 };
    if (sent.outcome.delivered) {
      const isOver = follow(this.#parts.ramp, ledger.progress, true);
      const retries = [...(hasRow ? retriesOf(this.#parts, row, sent) : []), ...this.#passOver()];
      ledger.settle({ ...this.#place(), ...HEALTHY }, { epoch, attempts: [record], retries });
      if (isOver) await this.#hasten();
      return;
    }
    const repeats = retriesOf(this.#parts, row, sent);
    this.#parts.apart.add(repeats.length, repeats[0]!.nextAt!);
    const retries = [...repeats, ...this.#passOver()];
    const health = this.#unhealthy(sent);
    this.#parts.failed(
      sent.outcome,
      ledger.settle({ ...this.#place(), ...health }, { epoch, attempts: [record], retries }),
    );
  }

  #passOver(): readonly RetryRecord[] {
    const rows = this.#open.passOver();
    if (rows.length > 0) this.#parts.apart.add(rows.length, rows[0]!.nextAt!);
    return rows;
  }

  async #sendApart(row: RetryRow): Promise<void> {
    const { apart, ledger, counts, ramp } = this.#parts;
    let sent: Sent | Unsent | 'nothing' = 'undecided';
    try {
      sent = await sendRow(this.#parts, row);
      if (typeof sent !== 'string' && sent.outcome.code === 410 && (await this.#parts.unregister(sent)))
        sent = 'interrupted';
    } finally {
      if (sent === 'undecided' || sent === 'interrupted') apart.done('undecided');
    }
    if (sent === 'undecided') this.#pause = REST;
    if (sent === 'nothing') this.#pause = drop(this.#parts, row) ?? this.#pause;
    if (typeof sent === 'string') return;
    const record = recordOf(sent, row.attempts + 1);
    if (sent.outcome.code !== 410) counts.add(record);
    const isOver = follow(ramp, ledger.progress, sent.outcome.delivered);
    const entry = { epoch: sent.epoch, attempts: [record], retries: settleRow(this.#parts, row, sent) };
    if (sent.outcome.delivered) ledger.settle(HEALTHY, entry);
    else this.#parts.failed(sent.outcome, ledger.settle(this.#unhealthy(sent), entry));
    if (isOver) await this.#hasten();
  }

  /** The target takes deliveries again: what waits for its hour need not. Where that fails, each has its own time. */
  async #hasten(): Promise<void> {
    try {
      await this.#parts.apart.hasten();
    } catch (error) {
      this.#pause = REST;
      this.#parts.troubled(error);
    }
  }

  #unhealthy(sent: Sent): Partial<LaneProgress> {
    const { ledger, schedule, apart } = this.#parts;
    const health = failed(ledger.progress, sent, schedule);
    return { ...health, nextAttemptAt: apart.nextAt ?? health.nextAttemptAt };
  }

  /** Everything below is delivered or a row. */
  #place(): Partial<LaneProgress> {
    const { batchLast, singlesLast } = this.#parts.ledger.progress;
    const { cursor } = this.#open;
    return { cursor, refusals: 0, batchLast: beyond(batchLast, cursor), singlesLast: beyond(singlesLast, cursor) };
  }
}
