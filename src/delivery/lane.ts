import type { KeyObject } from 'node:crypto';
import type { Log } from '../log.ts';
import type { ConversationId, HookId, Seq } from '../model/ids.ts';
import type { Attempt, DeliveryClient } from '../outbound/delivery-client.ts';
import { PARTITIONS, type LaneRow } from '../storage/lanes.ts';
import type { AttemptRecord, Settlement } from '../storage/settlements.ts';
import type { DeliveryCounts } from './delivery-counts.ts';
import type { Leases } from './leases.ts';
import { deliveryId } from './payload.ts';
import type { MessageReader, ReadyMessage } from './reader.ts';
import { NextAttempt, retryDelayMs, type RetrySchedule } from './retry.ts';
import type { Settler } from './settler.ts';
import { signV1, signV1a } from './sign.ts';
import type { Slots } from './slots.ts';
import { Unsettled } from './unsettled.ts';

/** What all lanes share. */
export interface LaneContext {
  readonly reader: MessageReader;
  readonly slots: Slots;
  readonly client: DeliveryClient;
  readonly settler: Settler;
  readonly leases: Leases;
  readonly schedule: RetrySchedule;
  readonly counts: DeliveryCounts;
  readonly log: Log;
  /** A settlement was not taken: the hook was changed by somebody and has to be read again. */
  readonly onStale: (conversationId: ConversationId) => void;
  /** The target answered 410. */
  readonly onGone: (lane: Lane, settlement: Settlement, attempt: AttemptRecord) => Promise<Removal>;
}

/** What became of removing a hook: `stale`, it was changed meanwhile; `failed`, it could not be written. */
export type Removal = 'removed' | 'stale' | 'failed';

/** The signing keys of a hook; the old one counts until its time is over. */
export interface LaneKeys {
  readonly current: KeyObject;
  readonly old: { readonly key: KeyObject; readonly untilMs: number } | null;
  /** Private keys of the server that sign `v1a`. */
  readonly server: readonly KeyObject[];
}

/** What became of an attempt that would have lacked a signature which its hook asks for: it is not sent. */
const UNSIGNED: Attempt = {
  delivered: false,
  category: 'signature',
  code: null,
  durationMs: 0,
  retryAfterMs: null,
  detail: 'the hook asks for v1a, and modules.security.server-keys names no key',
};

/** Rest after something on our side failed (the database is away, the lease has lapsed, no connection was free). */
export const REST_MS = 1_000;
/** Messages that are left out are passed over this many at a time. */
const MAX_LEFT_OUT = 500;
/**
 * Attempts of a lane that may wait for their settlement, and so the deliveries that a kill can repeat. Waiting for each
 * one's commit cost a third of the rate; beyond 8 there was little to gain.
 */
export const MAX_UNSETTLED = 8;

interface Progress {
  cursor: Seq;
  failures: number;
  failingSince: Date | null;
  nextAttemptAt: Date | null;
}

/**
 * One reverse webhook on its way through the log, strictly in order: read on, send, and when it was answered the next,
 * while what became of the last ones is settled. A failure holds back what is behind it. The lane runs while something
 * is pending and rests otherwise.
 */
export class Lane {
  readonly id: HookId;
  readonly conversationId: ConversationId;
  readonly generation: number;
  /** The target's host, which may be logged; its path and query never. */
  readonly host: string;
  readonly #row: LaneRow;
  readonly #keys: LaneKeys;
  readonly #context: LaneContext;
  readonly #progress: Progress;
  readonly #unsettled: Unsettled;
  #next: NextAttempt;
  #head: Seq;
  #run: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #held = false;
  #retired = false;
  #stale = false;

  constructor(row: LaneRow, keys: LaneKeys, context: LaneContext) {
    this.id = row.id;
    this.conversationId = row.conversationId;
    this.generation = row.generation;
    this.host = new URL(row.url).hostname;
    this.#row = row;
    this.#keys = keys;
    this.#context = context;
    this.#head = row.lastSeq;
    this.#unsettled = new Unsettled(context.settler, MAX_UNSETTLED, () => this.#reread());
    this.#next = new NextAttempt(row.nextAttemptAt, context.schedule);
    this.#progress = {
      cursor: row.cursor,
      failures: row.failures,
      failingSince: row.failingSince,
      nextAttemptAt: row.nextAttemptAt,
    };
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
    return rests && this.#progress.cursor >= this.#head;
  }

  /** True when the row is known to have changed beneath this lane, so that what it remembers must not be used. */
  get stale(): boolean {
    return this.#stale;
  }

  /** The conversation is at this seq, at least. */
  wake(seq: Seq): void {
    if (seq > this.#head) this.#head = seq;
    this.#start();
  }

  /** From this moment on no attempt starts, until `resume` or for ever. */
  hold(): void {
    this.#held = true;
  }

  resume(): void {
    this.#held = false;
    this.#start();
  }

  /** Ends the lane; resolves when its attempt in flight, if any, is over and settled. */
  async retire(): Promise<void> {
    this.#retired = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#run;
    await this.#unsettled.drain();
  }

  #start(): void {
    if (this.#run !== null || this.#timer !== null || this.#held || this.#retired) return;
    if (this.#row.pausedAt !== null || this.#progress.cursor >= this.#head) return;
    this.#run = this.#deliver().then((restMs) => {
      this.#run = null;
      if (restMs !== null) this.#rest(restMs);
      // A word that came in the last moment of the run found it still going.
      else this.#start();
    });
  }

  #rest(ms: number): void {
    if (this.#retired) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#start();
    }, ms);
  }

  /** Delivers what is pending. Resolves to null when there is nothing left to do, else to how long to rest. */
  async #deliver(): Promise<number | null> {
    try {
      while (!this.#held && !this.#retired && this.#progress.cursor < this.#head) {
        const waitMs = this.#next.waitMs();
        if (waitMs > 0) return waitMs;
        const stepped = await this.#step();
        // With the slot given back: this may wait for the database.
        const settlement = isGone(stepped) ? await this.#unregister(stepped) : stepped;
        // Held in the middle of it: the loop ends, or goes on when it was resumed already.
        if (settlement === 'interrupted') continue;
        if (settlement === null) return REST_MS;
        Object.assign(this.#progress, progressOf(settlement));
        this.#next = new NextAttempt(settlement.nextAttemptAt, this.#context.schedule);
        this.#unsettled.add(settlement);
        if (this.#unsettled.isFull) await this.#unsettled.room();
      }
      return null;
    } catch (error) {
      this.#context.log.debug('a lane rests after a failure', { hook: this.id, host: this.host, error });
      return REST_MS;
    }
  }

  /** One message further: sent, or left out. Null when nothing could be done now. */
  async #step(): Promise<Settlement | 'interrupted' | null> {
    const { slots, reader } = this.#context;
    if (!(await slots.acquire(this.host))) return null;
    // Read with the slot in hand: what waits for a slot holds no text, and the text is that of the attempt.
    try {
      const head = this.#head;
      let passed = this.#progress.cursor;
      let message = reader.peek(this.conversationId, passed) ?? (await reader.next(this.conversationId, passed));
      const first = message;
      for (let n = 0; message !== null && this.#skips(message) && n < MAX_LEFT_OUT; n += 1) {
        passed = message.seq;
        message = await reader.next(this.conversationId, passed);
      }
      if (passed > this.#progress.cursor) return this.#leaveOut(passed);
      if (first !== null) return await this.#attempt(first);
      // The word was ahead of what is there to read; a later word, or the sweep, will tell.
      if (this.#head === head) this.#head = this.#progress.cursor;
      return null;
    } finally {
      slots.release(this.host);
    }
  }

  #skips(message: ReadyMessage): boolean {
    return message.senderKind !== 'user' && this.#row.skip.includes(message.senderKind);
  }

  #leaveOut(cursor: Seq): Settlement | null {
    const epoch = this.#context.leases.epochOf(this.partition);
    if (epoch === null) return null;
    return { ...this.#progress, cursor, hookId: this.id, generation: this.generation, epoch, attempts: [] };
  }

  async #attempt(message: ReadyMessage): Promise<Settlement | 'interrupted' | null> {
    const { client, leases } = this.#context;
    let interrupted = false;
    const mayTry = (): number | null => {
      interrupted = this.#held || this.#retired;
      return interrupted ? null : leases.epochOf(this.partition);
    };
    // For an attempt that fails before anything is written this is the only time that is asked.
    let epoch = mayTry();
    if (epoch === null) return interrupted ? 'interrupted' : null;
    const at = new Date();
    if (this.#row.signature !== 'v1' && this.#keys.server.length === 0)
      return this.#judge(message, UNSIGNED, { at, epoch });
    // Asked again in the tick of the write: a lane that lost its partition, or was told to stop, sends nothing more.
    const outcome = await client.post(this.#row.url, this.#headers(message, at), message.body, () => {
      epoch = mayTry();
      return epoch !== null;
    });
    if (interrupted) return 'interrupted';
    // Without a verdict: the lease has lapsed, the client was stopped, or no connection was free.
    if (epoch === null || (!outcome.delivered && outcome.category === null)) return null;
    return this.#judge(message, outcome, { at, epoch });
  }

  #headers(message: ReadyMessage, at: Date): Record<string, string> {
    const id = deliveryId(this.id, this.conversationId, message.seq);
    const timestampS = Math.floor(at.getTime() / 1000);
    const { current, old, server } = this.#keys;
    const asked = this.#row.signature;
    const keys = old !== null && at.getTime() < old.untilMs ? [current, old.key] : [current];
    const v1 = asked === 'v1a' ? '' : signV1(keys, id, timestampS, message.body);
    const v1a = asked === 'v1' ? '' : signV1a(server, id, timestampS, message.body);
    return {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(timestampS),
      'webhook-signature': asked === 'both' ? `${v1} ${v1a}` : v1 + v1a,
      'klatch-hops': String(message.hops),
    };
  }

  #judge(message: ReadyMessage, outcome: Attempt, when: { at: Date; epoch: number }): Settlement {
    const { at, epoch } = when;
    const failures = outcome.delivered ? 0 : this.#progress.failures + 1;
    const record: AttemptRecord = {
      firstSeq: message.seq,
      lastSeq: message.seq,
      attempt: this.#progress.failures + 1,
      at,
      delivered: outcome.delivered,
      category: outcome.category,
      code: outcome.code,
      durationMs: Math.round(outcome.durationMs),
    };
    const fixed = { hookId: this.id, generation: this.generation, epoch, attempts: [record] };
    if (outcome.code !== 410) this.#context.counts.add(record);
    if (outcome.delivered) {
      return { ...fixed, cursor: message.seq, failures, failingSince: null, nextAttemptAt: null };
    }
    this.#logFailure(outcome, failures);
    const failure = { failures, retryAfterMs: outcome.retryAfterMs };
    const delayMs = retryDelayMs(this.#context.schedule, failure, Math.random());
    return {
      ...fixed,
      cursor: this.#progress.cursor,
      failures,
      failingSince: this.#progress.failingSince ?? at,
      nextAttemptAt: new Date(Date.now() + delayMs),
    };
  }

  /** The target answered 410: the hook goes. Where it could not be removed, the settlement of a failure. */
  async #unregister(settlement: Settlement): Promise<Settlement | 'interrupted'> {
    const record = settlement.attempts[0]!;
    // The removal writes no cursor: what was delivered before must stand in the row by then.
    if (!(await this.#unsettled.drain())) return 'interrupted';
    const removal = await this.#context.onGone(this, settlement, record);
    this.#context.counts.add(record, removal === 'removed');
    // The next attempt tries again, when the schedule says.
    if (removal === 'failed') return settlement;
    this.#reread();
    return 'interrupted';
  }

  #reread(): void {
    this.#stale = true;
    this.hold();
    this.#context.onStale(this.conversationId);
  }

  #logFailure(outcome: Attempt, failures: number): void {
    const { category, code, detail, durationMs } = outcome;
    const fields = { hook: this.id, host: this.host, category, code, detail, failures, durationMs };
    // The first failure is news; the repeats would fill the log for as long as a receiver is down.
    if (failures === 1) this.#context.log.warn('a delivery failed', fields);
    else this.#context.log.debug('a delivery failed again', fields);
  }
}

/** Whether the target answered 410 to the attempt that this settles. */
function isGone(settlement: Settlement | 'interrupted' | null): settlement is Settlement {
  return settlement !== null && settlement !== 'interrupted' && settlement.attempts[0]?.code === 410;
}

function progressOf(settlement: Settlement): Progress {
  const { cursor, failures, failingSince, nextAttemptAt } = settlement;
  return { cursor, failures, failingSince, nextAttemptAt };
}
