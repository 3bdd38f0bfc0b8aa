import { TextByRev } from './text-by-rev.ts';

/** One delivery as a receiver got it: the messages of its body in their order, or its events. */
export interface Delivery {
  readonly hook: HookRecord;
  readonly seqs: readonly number[];
  /** The number of the post from which each message was made. */
  readonly posts: readonly number[];
  readonly events: readonly EventNumber[];
}

/** The numbers that identify an event within its group. */
interface EventNumber {
  readonly epoch: number;
  readonly rev: number;
}

interface ForwardedBody {
  /** The event type. Optional, since the tests of this file leave it out. */
  readonly type?: string;
  readonly data: {
    readonly rev?: number;
    readonly epoch?: number;
    readonly group?: { readonly id: number };
    readonly message: ForwardedMessage;
  };
}

interface ForwardedMessage {
  readonly seq: number;
  readonly text: string;
  readonly rev?: number;
  readonly rev_epoch?: number;
}

/**
 * A `webhook-id`: hook, group, and one number or a range. After the dot follows the log epoch, which rises when history
 * is lost.
 */
const DELIVERY_ID = /^\d+_\d+_(r?)(\d+)(?:-(\d+))?(?:\.\d+)?$/;
/** Matches the text of a post, also at the beginning of an edited message. */
const POST_TEXT = /^post (\d+)\b/;

/** The text of a post, which identifies it on arrival. */
export function textOf(post: number): string {
  return `post ${post}`;
}

/** The number of the post with this text; null: the text is of no post. */
export function postOf(text: string): number | null {
  const number = POST_TEXT.exec(text)?.[1];
  return number === undefined ? null : Number(number);
}

/** The arrivals of one hook, message by message. */
export class HookRecord {
  readonly path: string;
  /** Whether its messages have to arrive in the order of `seq`. */
  readonly strict: boolean;
  /** The number of messages and events that first arrived after a later one had arrived. Refused arrivals count too. */
  outOfOrder = 0;
  /** The number of arrivals of a message or event that the receiver had already accepted. */
  duplicates = 0;
  /** The largest number of duplicates in one run. */
  worstDuplicates = 0;
  /** The number of accepted messages, each counted once. */
  taken = 0;
  /** The number of duplicates whose post differs from that of the accepted message with the same `seq`. */
  changed = 0;
  /** The number of deliveries that arrived and were not accepted, because the fault made the receiver fail. */
  refused = 0;
  /** By `seq`: the number of the post, plus one; 0 where no message was accepted. */
  readonly #posts: number[] = [0];
  readonly #arrived: boolean[] = [];
  readonly #arrivedEvents = new Set<string>();
  readonly #takenEvents = new Set<string>();
  readonly #takenEventRevs = new Set<number>();
  #newestEvent: EventNumber = { epoch: 0, rev: 0 };
  #newest = 0;
  #through = 0;
  #duplicatesOfRun = 0;
  #firstTakenAt: number | null = null;
  /** The `webhook-timestamp` of the last delivery: the sender's clock, in seconds since 1970. */
  lastTimestampS = 0;

  constructor(path: string, strict: boolean) {
    this.path = path;
    this.strict = strict;
  }

  /** The number of accepted messages plus refused deliveries. */
  get answered(): number {
    return this.taken + this.refused;
  }

  /** The receiver has accepted every message from 1 up to this `seq`. */
  get through(): number {
    return this.#through;
  }

  /** The time when the receiver accepted the first new message since the last `mark`; null: none yet. */
  get firstTakenAt(): number | null {
    return this.#firstTakenAt;
  }

  /** Begins to count the duplicates of the next run. */
  beginRun(): void {
    this.#duplicatesOfRun = 0;
  }

  /** Makes `firstTakenAt` report the next new message that is accepted. */
  mark(): void {
    this.#firstTakenAt = null;
  }

  /** The number of the post that was accepted under this `seq`; null: none. */
  postAt(seq: number): number | null {
    const post = this.#posts[seq] ?? 0;
    return post === 0 ? null : post - 1;
  }

  /** The accepted posts, one for each `seq`. */
  posts(): number[] {
    return this.#posts.filter((post) => post > 0).map((post) => post - 1);
  }

  /**
   * Whether the receiver accepted an event with this rev, in any epoch: a new epoch continues the revs, and only those
   * of lost changes repeat.
   */
  hasEvent(rev: number): boolean {
    return this.#takenEventRevs.has(rev);
  }

  eventsArrived(events: readonly EventNumber[]): void {
    for (const event of events) {
      const isLater = comesAfter(event, this.#newestEvent);
      if (!isLater && !this.#arrivedEvents.has(keyOf(event))) this.outOfOrder += 1;
      this.#arrivedEvents.add(keyOf(event));
      if (isLater) this.#newestEvent = event;
    }
  }

  arrived(seqs: readonly number[]): void {
    for (const seq of seqs) {
      if (this.#arrived[seq] !== true && seq < this.#newest) this.outOfOrder += 1;
      this.#arrived[seq] = true;
      this.#newest = Math.max(this.#newest, seq);
    }
  }

  take({ seqs, posts, events }: Delivery): void {
    for (const event of events) {
      if (this.#takenEvents.has(keyOf(event))) this.#countDuplicate();
      this.#takenEvents.add(keyOf(event));
      this.#takenEventRevs.add(event.rev);
    }
    for (const [index, seq] of seqs.entries()) {
      if (this.postAt(seq) !== null) {
        if (this.postAt(seq) !== posts[index]) this.changed += 1;
        this.#countDuplicate();
        continue;
      }
      this.#posts[seq] = posts[index]! + 1;
      this.taken += 1;
      this.#firstTakenAt ??= performance.now();
    }
    while (this.postAt(this.#through + 1) !== null) this.#through += 1;
  }

  #countDuplicate(): void {
    this.duplicates += 1;
    this.#duplicatesOfRun += 1;
    this.worstDuplicates = Math.max(this.worstDuplicates, this.#duplicatesOfRun);
  }
}

const keyOf = ({ epoch, rev }: EventNumber): string => `${epoch}:${rev}`;

/** Whether `event` comes after `other`. */
function comesAfter(event: EventNumber, other: EventNumber): boolean {
  return event.epoch === other.epoch ? event.rev > other.rev : event.epoch > other.epoch;
}

/** Records every delivery of a run, at all its receivers. */
export class Recorder {
  /** Violations, in words. */
  readonly violations = new Set<string>();
  /** The text of a message after each change, as hooks and live clients got it. */
  readonly textByRev = new TextByRev();
  readonly #hooks = new Map<string, HookRecord>();

  get hooks(): HookRecord[] {
    return [...this.#hooks.values()];
  }

  expect(path: string, strict: boolean): HookRecord {
    const hook = new HookRecord(path, strict);
    this.#hooks.set(path, hook);
    return hook;
  }

  /**
   * Records a complete request. If the receiver accepts it, the caller then calls `take` of the hook. Returns null for
   * a request that is not a delivery.
   */
  arrived(path: string, headers: NodeJS.Dict<string | string[]>, raw: string): Delivery | null {
    const hook = this.#hooks.get(path);
    if (hook === undefined) {
      this.violations.add('something arrived at a path that no hook has');
      return null;
    }
    const parsed = JSON.parse(raw) as ForwardedBody | ForwardedBody[];
    const bodies = Array.isArray(parsed) ? parsed : [parsed];
    for (const body of bodies) this.#noteText(body);
    const id = DELIVERY_ID.exec(String(headers['webhook-id']));
    const isEvents = id?.[1] === 'r';
    const numbers = bodies.map(({ data }) => (isEvents ? (data.rev ?? Number.NaN) : data.message.seq));
    const isOther = bodies.some(({ type = 'message.created' }) => (type === 'message.created') === isEvents);
    if (isOther || Number(id?.[2]) !== numbers[0] || Number(id?.[3] ?? id?.[2]) !== numbers.at(-1)) {
      this.violations.add('a webhook-id did not name the messages of its body');
    }
    hook.lastTimestampS = Number(headers['webhook-timestamp']);
    if (isEvents) {
      const events = bodies.map(({ data: { epoch = 0, rev = 0 } }) => ({ epoch, rev }));
      hook.eventsArrived(events);
      return { hook, seqs: [], posts: [], events };
    }
    const posts = bodies.map(({ data }) => postOf(data.message.text) ?? Number.NaN);
    hook.arrived(numbers);
    return { hook, seqs: numbers, posts, events: [] };
  }

  #noteText({ data: { group, message } }: ForwardedBody): void {
    const { seq, text, rev, rev_epoch: epoch = 0 } = message;
    if (group === undefined || rev === undefined) return;
    this.textByRev.note({ group: group.id, epoch, rev }, `${seq} ${text}`);
  }
}
