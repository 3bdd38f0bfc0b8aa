import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  constant,
  DecodeError,
  decodeOrNull,
  naturalNumber,
  object,
  recordOf,
  string,
  type Decoder,
} from '../core/decode.ts';

/** Conversations that are kept; those that were heard least recently are forgotten. */
const MAX_CONVERSATIONS = 20_000;
/** Between two writings while changes come; what a kill in between loses is heard once more. */
const SAVE_MS = 1_000;

const ID = /^\d{1,16}$/;
const decodeRevs: Decoder<Record<string, number>> = (value) => {
  const revs = recordOf(naturalNumber)(value);
  if (Object.keys(revs).every((id) => ID.test(id))) return revs;
  throw new DecodeError('revs by the numbers of conversations');
};

const decodeState = object({
  version: constant(1),
  /** The sign-in that the positions are of: with another one they mean nothing. */
  sign_in: string,
  revs: decodeRevs,
});

/** How far a client has heard, in a file, so that the next one goes on from there. */
export class StateFile {
  readonly #path: string;
  readonly #signIn: string;
  #revs: () => ReadonlyMap<number, number> = () => new Map();
  #timer: NodeJS.Timeout | null = null;
  #failure: unknown = null;

  constructor(path: string, signIn: string) {
    this.#path = path;
    this.#signIn = signIn;
  }

  /** What the last client left; null without one, after another sign-in, or where the file cannot be understood. */
  load(): Map<number, number> | null {
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
    const state = decodeOrNull(decodeState, parse(text));
    if (state === null || state.sign_in !== this.#signIn) return null;
    return new Map(Object.entries(state.revs).map(([id, rev]) => [Number(id), rev]));
  }

  /** To be called after every change: writes soon, and not more often than once a second. Throws why it failed last. */
  saveSoon(revs: () => ReadonlyMap<number, number>): void {
    if (this.#failure !== null) throw this.#failure;
    this.#revs = revs;
    this.#timer ??= setTimeout(() => this.#saveLater(), SAVE_MS);
  }

  /** Writes what was asked to be written, if anything was. */
  save(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    const revs = Object.fromEntries([...this.#revs()].slice(-MAX_CONVERSATIONS));
    const text = JSON.stringify({ version: 1, sign_in: this.#signIn, revs });
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    // A kill in between leaves the old one whole.
    writeFileSync(`${this.#path}.new`, `${text}\n`, { mode: 0o600 });
    renameSync(`${this.#path}.new`, this.#path);
  }

  /** Nobody waits for a timer: the next change is told. */
  #saveLater(): void {
    try {
      this.save();
    } catch (error) {
      this.#failure = error;
    }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // What cannot be read is refused by the decoder as well.
    return null;
  }
}
