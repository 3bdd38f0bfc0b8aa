import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** The fewest sign-ins since the last collection for which a collection is worth while. */
const MIN_AUTHENTICATIONS_FOR_GC = 1_000;
/** A collection starts after this many ticks (of a second) without a sign-in: by then a rush of clients is over. */
const IDLE_TICKS_BEFORE_GC = 2;

/**
 * Frees the garbage of many clients that signed in at once. The sign-ins of ten thousand clients leave 80 MiB of
 * garbage. An idle server then allocates too little for V8 to start a collection. This class starts a collection when
 * nobody has signed in for two seconds; V8 then returns memory to the system some seconds later.
 */
export class IdleGc {
  readonly #collect: () => void;
  #authenticationsSinceGc = 0;
  #authenticationsAtLastTick = 0;
  #idleTicks = 0;

  constructor(collect = collectHeap) {
    this.#collect = collect;
  }

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

/** V8 offers `gc` for tests only, behind a flag. A context that is created while the flag is set has `gc`. */
function collectHeap(): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as (options: { type: 'major'; execution: 'async' }) => Promise<void>;
  setFlagsFromString('--no-expose-gc');
  void gc({ type: 'major', execution: 'async' });
}
