import type { Seq } from '../model/ids.ts';
import type { AttemptRecord } from '../storage/settlement.ts';
import { dropAhead, sendApart } from './apart-request.ts';
import { follow, REST, type Course, type CourseParts, type Rest } from './course.ts';
import { beyond, failed, HEALTHY, isRefusal, recordOf, type Sent } from './progress.ts';
import type { RequestBounds } from './request.ts';
import { NextAttempt } from './retry.ts';
import type { Unsent } from './sender.ts';

/** So often a message is refused for itself before those behind it are offered. */
const MAX_REFUSALS = 5;
/** Messages that are offered then, once each. */
const MAX_OFFERS = 3;

/**
 * Strictly in the order of the log, one request at a time. A failure holds back what is behind it; only a message that
 * its target refuses, while it accepts one behind it, is set aside (the contract).
 */
export class StrictCourse implements Course {
  readonly #parts: CourseParts;
  /** Requests apart and those in order take turns, so that neither waits for the end of the other. */
  #apartLast = false;
  #next: NextAttempt | null = null;
  /** No row lies ahead of the cursor. */
  #isClear = false;

  constructor(parts: CourseParts) {
    this.#parts = parts;
  }

  get hasWork(): boolean {
    return this.#isBehind || this.#parts.apart.hasWork;
  }

  /** One request at a time: after it the head is looked at anyway. */
  wake(): void {}

  async run(): Promise<Rest | null> {
    const { apart, mayGo } = this.#parts;
    if (!this.#isClear && apart.count > 0) {
      const rest = await dropAhead(this.#parts);
      if (rest !== null) return rest;
    }
    this.#isClear = true;
    while (mayGo()) {
      const waitMs = this.#isBehind ? this.#waitMs() : null;
      const apartMs = apart.waitMs;
      const isApart = apartMs === 0 && !(waitMs === 0 && this.#apartLast);
      if (waitMs !== 0 && apartMs !== 0) return restOf(waitMs, apartMs);
      this.#apartLast = isApart;
      const rest = isApart ? await sendApart(this.#parts) : await this.#step();
      if (rest !== null) return rest;
    }
    return null;
  }

  get #isBehind(): boolean {
    return this.#parts.ledger.progress.cursor < this.#parts.head();
  }

  /** Until the next attempt in order; 0 when it is due. */
  #waitMs(): number {
    const { ledger, schedule } = this.#parts;
    const at = ledger.progress.nextAttemptAt;
    if (at === null) return 0;
    if (this.#next?.at !== at) this.#next = new NextAttempt(at, schedule);
    return this.#next.waitMs();
  }

  /** One request further. */
  async #step(): Promise<Rest | null> {
    const { slots, ledger } = this.#parts;
    const slot = await slots.acquire();
    if (slot === null) return REST;
    let sent: Sent | Unsent | 'passed' | 'nothing';
    // Read with the slot in hand: what waits for a slot holds no text, and the text is that of the attempt.
    try {
      sent = await this.#send(ledger.progress.cursor, this.#bounds());
    } finally {
      slots.release(slot);
    }
    if (sent === 'passed' || sent === 'interrupted') return null;
    if (sent === 'undecided' || sent === 'nothing') return REST;
    return this.#judge(sent);
  }

  /** A batch that failed before is sent as it was; where one was refused, what it held goes one by one. */
  #bounds(): RequestBounds {
    const { batch, ledger, ramp } = this.#parts;
    const { cursor, failures, batchLast, singlesLast } = ledger.progress;
    // A target that fails is likely to fail again: its lane reads no further than this request.
    const alone = failures > 0;
    if (batchLast !== null) return { messages: Number.POSITIVE_INFINITY, last: batchLast, alone };
    const isSingle = singlesLast !== null && cursor < singlesLast;
    return { messages: isSingle ? 1 : Math.min(batch, ramp.allowance), last: null, alone };
  }

  async #send(cursor: Seq, bounds: RequestBounds): Promise<Sent | Unsent | 'passed' | 'nothing'> {
    const { requests, sender, caughtUp, head } = this.#parts;
    const known = bounds.last === null ? requests.ready(cursor) : null;
    if (known !== null) return sender.send(known, requests.idOf(known));
    const headBefore = head();
    const { passed, request } = await requests.next(cursor, bounds);
    if (request !== null) return sender.send(request, requests.idOf(request));
    if (passed > cursor) return this.#leaveOut(passed);
    // The word was ahead of what is there to read; a later word, or the sweep, will tell.
    caughtUp(cursor, headBefore);
    return 'nothing';
  }

  #leaveOut(cursor: Seq): 'passed' | 'interrupted' | 'undecided' {
    const { sender, ledger, mayGo } = this.#parts;
    // What is left out may be another by now.
    if (!mayGo()) return 'interrupted';
    const epoch = sender.epoch;
    if (epoch === null) return 'undecided';
    const batchLast = beyond(ledger.progress.batchLast, cursor);
    ledger.settle(
      { cursor, batchLast, singlesLast: beyond(ledger.progress.singlesLast, cursor) },
      { epoch, attempts: [] },
    );
    return 'passed';
  }

  #judge(sent: Sent): Rest | null | Promise<Rest | null> {
    return sent.outcome.delivered ? this.#delivered(sent, []) : this.#failed(sent);
  }

  /** `aside`: what is given up now that one behind it was taken. */
  #delivered(sent: Sent, aside: readonly AttemptRecord[]): Rest | null | Promise<null> {
    const { ledger, ramp, counts, batch } = this.#parts;
    const before = ledger.progress;
    const cursor = sent.request.last;
    const record = recordOf(sent, aside.length > 0 ? 1 : before.failures + 1);
    counts.add(record);
    follow(ramp, before, true);
    const settled = { cursor, ...HEALTHY, refusals: 0, batchLast: null };
    const attempts = aside.length > 0 ? [...aside, record] : [record];
    for (const message of aside) this.#parts.setAside(message);
    ledger.settle({ ...settled, singlesLast: beyond(before.singlesLast, cursor) }, { epoch: sent.epoch, attempts });
    const gapMs = batch === 1 ? ramp.gapMs : 0;
    if (gapMs > 0) return { ms: gapMs, deaf: true };
    return ledger.room()?.then(() => null) ?? null;
  }

  async #failed(sent: Sent): Promise<Rest | null> {
    const { ledger, counts, schedule, batch, unregister } = this.#parts;
    const { request, outcome, epoch } = sent;
    const before = ledger.progress;
    const isGone = outcome.code === 410;
    if (isGone && (await unregister(sent))) return null;
    const record = recordOf(sent, before.failures + 1);
    if (!isGone) counts.add(record);
    const isRefused = isRefusal(outcome);
    if (isRefused && request.first < request.last) {
      // It may be the fault of one of them: nobody waits before they go one by one.
      ledger.settle({ batchLast: null, singlesLast: request.last }, { epoch, attempts: [record] });
      return null;
    }
    const isBatch = batch > 1 && before.singlesLast === null;
    const change = {
      ...failed(before, sent, schedule),
      refusals: before.refusals + (isRefused ? 1 : 0),
      batchLast: isBatch || before.batchLast !== null ? request.last : null,
    };
    this.#parts.failed(outcome, ledger.settle(change, { epoch, attempts: [record] }));
    return isRefused && change.refusals >= MAX_REFUSALS ? this.#offer(sent) : null;
  }

  /**
   * The head was refused too often: is it its own fault? A few behind it are offered, once each. When one is taken, those
   * before it are given up: they were refused as well, and after it they would come out of order. Any other failure
   * says that the hook is at fault, and so does the refusal of all.
   */
  async #offer(head: Sent): Promise<Rest | null> {
    const { slots, requests, sender, ledger, counts } = this.#parts;
    const refused = [head];
    let after = head.request.last;
    while (refused.length <= MAX_OFFERS && this.#parts.mayGo()) {
      const slot = await slots.acquire();
      if (slot === null) return REST;
      let sent: Sent | Unsent;
      try {
        const { passed, request } = await requests.next(after, { messages: 1, last: null, alone: true });
        if (request === null && passed === after) return null;
        after = request?.last ?? passed;
        if (request === null) continue;
        sent = await sender.send(request, requests.idOf(request));
      } finally {
        slots.release(slot);
      }
      if (typeof sent === 'string') return sent === 'interrupted' ? null : REST;
      if (sent.outcome.delivered)
        return this.#delivered(
          sent,
          refused.map((one) => setAside(one, sent.at)),
        );
      const record = recordOf(sent, 1);
      counts.add(record);
      ledger.settle({}, { epoch: sent.epoch, attempts: [record] });
      if (!isRefusal(sent.outcome)) return null;
      refused.push(sent);
    }
    return null;
  }
}

/** The delivery log says of a message that it was given up, with the answer that it was refused with. */
function setAside(refused: Sent, at: Date): AttemptRecord {
  return { ...recordOf(refused, 0), outcome: 'set_aside', at };
}

/** Null: there is nothing to wait for. */
function restOf(waitMs: number | null, apartMs: number | null): Rest | null {
  if (waitMs === null && apartMs === null) return null;
  return {
    ms: Math.min(waitMs ?? Number.POSITIVE_INFINITY, apartMs ?? Number.POSITIVE_INFINITY),
    deaf: waitMs !== null,
  };
}
