import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Fewer leave nothing behind that is worth a collection. */
const MANY = 1_000;
/** So many looks without anybody new: the others have come. */
const QUIET_LOOKS = 2;

/**
 * Gives back what many clients left behind that signed in at once: ten thousand of them take 80 MiB of objects that are
 * over before they have all come, and an idle server makes too few new ones for V8 ever to look. One collection of the
 * heap, when nobody new has come for two seconds; it starts V8's own giving back of memory, some seconds later.
 */
export class HeapRelease {
  readonly #collect: () => void;
  #came = 0;
  #seen = 0;
  #quiet = 0;

  constructor(collect = collectHeap) {
    this.#collect = collect;
  }

  /** Somebody has signed in. */
  came(): void {
    this.#came += 1;
  }

  /** Called about every second. */
  look(): void {
    this.#quiet = this.#came === this.#seen ? this.#quiet + 1 : 0;
    this.#seen = this.#came;
    if (this.#came < MANY || this.#quiet < QUIET_LOOKS) return;
    this.#came = 0;
    this.#seen = 0;
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
