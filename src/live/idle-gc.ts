import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Fewer leave nothing behind that is worth a collection. */
const MIN_AUTHENTICATIONS_FOR_GC = 1_000;
/** So many looks without anybody new: the others have come. */
const IDLE_TICKS_BEFORE_GC = 2;

/**
 * Gives back what many clients left behind that signed in at once: ten thousand of them take 80 MiB of objects that are
 * over before they have all come, and an idle server makes too few new ones for V8 ever to look. One collection of the
 * heap, when nobody new has come for two seconds; it starts V8's own giving back of memory, some seconds later.
 */
export class IdleGc {
  readonly #collect: () => void;
  #authenticationsSinceGc = 0;
  #authenticationsAtLastTick = 0;
  #idleTicks = 0;

  constructor(collect = collectHeap) {
    this.#collect = collect;
  }

  /** Somebody has signed in. */
  countAuthentication(): void {
    this.#authenticationsSinceGc += 1;
  }

  /** Called about every second. */
  tick(): void {
    this.#idleTicks = this.#authenticationsSinceGc === this.#authenticationsAtLastTick ? this.#idleTicks + 1 : 0;
    this.#authenticationsAtLastTick = this.#authenticationsSinceGc;
    if (this.#authenticationsSinceGc < MIN_AUTHENTICATIONS_FOR_GC || this.#idleTicks < IDLE_TICKS_BEFORE_GC) return;
    this.#authenticationsSinceGc = 0;
    this.#authenticationsAtLastTick = 0;
    this.#collect();
  }
}

/** V8 offers this to tests only, behind a flag; a context made while it is set has it. */
function collectHeap(): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as (options: { type: 'major'; execution: 'async' }) => Promise<void>;
  setFlagsFromString('--no-expose-gc');
  void gc({ type: 'major', execution: 'async' });
}
