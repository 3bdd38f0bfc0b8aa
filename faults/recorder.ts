/** One delivery as a receiver got it: the messages of its body, in their order. */
export interface Delivery {
  readonly hook: HookRecord;
  readonly seqs: readonly number[];
  /** The number of the post that each message came from. */
  readonly posts: readonly number[];
}

interface ForwardedBody {
  /** Left out by tests of this file. */
  readonly type?: string;
  readonly data: { readonly rev?: number; readonly message: { readonly seq: number; readonly text: string } };
}

/** Behind the dot: the epoch of the log, which rises where history was lost. */
const DELIVERY_ID = /^\d+_\d+_(\d+)(?:-(\d+))?(?:\.\d+)?$/;
/** An edited message keeps what names its post. */
const POST_TEXT = /^post (\d+)\b/;

/** The text that a post carries, so that its arrival can be told. */
export function textOf(post: number): string {
  return `post ${post}`;
}

/** The number of the post that a message came from; null: it is of none. */
export function postOf(text: string): number | null {
  const number = POST_TEXT.exec(text)?.[1];
  return number === undefined ? null : Number(number);
}

/** What one hook's receiver saw, message by message. */
export class HookRecord {
  readonly path: string;
  /** Whether its messages have to arrive in the order of `seq`. */
  readonly strict: boolean;
  /** First arrivals of a message after the first arrival of a later one, refused arrivals included. */
  outOfOrder = 0;
  /** Arrivals of a message that the receiver had taken before. */
  duplicates = 0;
  /** The most of them in one run. */
  worstDuplicates = 0;
  /** Messages that were taken, each counted once. */
  taken = 0;
  /** Of the duplicates those whose text is another one than the first time. */
  changed = 0;
  /** Deliveries that arrived and were not taken: the receiver was at fault then. */
  refused = 0;
  /** By `seq`: the number of the post, plus one; 0 where nothing was taken. */
  readonly #posts: number[] = [0];
  readonly #arrived: boolean[] = [];
  readonly #eventRevs = new Set<number>();
  #newestEventRev = 0;
  #newest = 0;
  #through = 0;
  #duplicatesOfRun = 0;
  #firstTakenAt: number | null = null;
  /** The clock of the sender of the last arrival, in seconds since 1970. */
  lastTimestampS = 0;

  constructor(path: string, strict: boolean) {
    this.path = path;
    this.strict = strict;
  }

  /** Messages that were taken and deliveries that were refused. */
  get answered(): number {
    return this.taken + this.refused;
  }

  /** Every message up to this `seq` was taken. */
  get through(): number {
    return this.#through;
  }

  /** When the first message since the last `mark` was taken that had not been taken before, else null. */
  get firstTakenAt(): number | null {
    return this.#firstTakenAt;
  }

  /** Counts duplicates for another run from now on. */
  beginRun(): void {
    this.#duplicatesOfRun = 0;
  }

  /** From now on `firstTakenAt` tells of the next message. */
  mark(): void {
    this.#firstTakenAt = null;
  }

  /** The number of the post that was taken under this `seq`, else null. */
  postAt(seq: number): number | null {
    const post = this.#posts[seq] ?? 0;
    return post === 0 ? null : post - 1;
  }

  /** The posts that were taken, one for each `seq`. */
  posts(): number[] {
    return this.#posts.filter((post) => post > 0).map((post) => post - 1);
  }

  /** An event about a message, of a hook that asks for events. */
  eventArrived(rev: number): void {
    if (!this.#eventRevs.has(rev) && rev < this.#newestEventRev) this.outOfOrder += 1;
    this.#eventRevs.add(rev);
    this.#newestEventRev = Math.max(this.#newestEventRev, rev);
  }

  /** Whether an event with this rev arrived. */
  hasEvent(rev: number): boolean {
    return this.#eventRevs.has(rev);
  }

  arrived(seqs: readonly number[]): void {
    for (const seq of seqs) {
      if (this.#arrived[seq] !== true && seq < this.#newest) this.outOfOrder += 1;
      this.#arrived[seq] = true;
      this.#newest = Math.max(this.#newest, seq);
    }
  }

  take({ seqs, posts }: Delivery): void {
    for (const [index, seq] of seqs.entries()) {
      if (this.postAt(seq) !== null) {
        this.duplicates += 1;
        if (this.postAt(seq) !== posts[index]) this.changed += 1;
        this.#duplicatesOfRun += 1;
        this.worstDuplicates = Math.max(this.worstDuplicates, this.#duplicatesOfRun);
        continue;
      }
      this.#posts[seq] = posts[index]! + 1;
      this.taken += 1;
      this.#firstTakenAt ??= performance.now();
    }
    while (this.postAt(this.#through + 1) !== null) this.#through += 1;
  }
}

/** Sees every delivery of a run, at whichever receiver it arrives. */
export class Recorder {
  /** What must never be, in words. */
  readonly violations = new Set<string>();
  readonly #hooks = new Map<string, HookRecord>();

  get hooks(): HookRecord[] {
    return [...this.#hooks.values()];
  }

  expect(path: string, strict: boolean): HookRecord {
    const hook = new HookRecord(path, strict);
    this.#hooks.set(path, hook);
    return hook;
  }

  /** A complete request arrived; whether the receiver takes it, is said by `take`. Null for what is no delivery. */
  arrived(path: string, headers: NodeJS.Dict<string | string[]>, raw: string): Delivery | null {
    const hook = this.#hooks.get(path);
    if (hook === undefined) {
      this.violations.add('something arrived at a path that no hook has');
      return null;
    }
    const parsed = JSON.parse(raw) as ForwardedBody | ForwardedBody[];
    const bodies = Array.isArray(parsed) ? parsed : [parsed];
    if (bodies.some(({ type }) => type !== undefined && type !== 'message.created')) {
      for (const { data } of bodies) hook.eventArrived(data.rev ?? 0);
      return { hook, seqs: [], posts: [] };
    }
    const messages = bodies.map((body) => body.data.message);
    const seqs = messages.map(({ seq }) => seq);
    const id = DELIVERY_ID.exec(String(headers['webhook-id']));
    if (Number(id?.[1]) !== seqs[0] || Number(id?.[2] ?? id?.[1]) !== seqs.at(-1)) {
      this.violations.add('a webhook-id did not name the messages of its body');
    }
    const posts = messages.map(({ text }) => postOf(text) ?? Number.NaN);
    hook.arrived(seqs);
    hook.lastTimestampS = Number(headers['webhook-timestamp']);
    return { hook, seqs, posts };
  }
}
