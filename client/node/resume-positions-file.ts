import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  constant,
  DecodeError,
  decodeOrNull,
  naturalNumber,
  objectWithAtLeast,
  optional,
  recordOf,
  string,
  type Decoded,
  type Decoder,
} from '../core/decode.ts';

/** Conversations that are kept; those that were heard least recently are forgotten. */
const MAX_SAVED_CONVERSATIONS = 20_000;
/** Between two writings while changes come; what a kill in between loses is heard once more. */
const MIN_SAVE_INTERVAL_MS = 1_000;

const CONVERSATION_ID_PATTERN = /^\d{1,16}$/;
const decodeNumbersByConversation: Decoder<Record<string, number>> = (value) => {
  const revs = recordOf(naturalNumber)(value);
  if (Object.keys(revs).every((id) => CONVERSATION_ID_PATTERN.test(id))) return revs;
  throw new DecodeError('revs by the numbers of conversations');
};

const decodeResumeState = objectWithAtLeast({
  version: constant(1),
  /** The sign-in that the positions are of: with another one they mean nothing. */
  sign_in: string,
  revs: decodeNumbersByConversation,
  /** In which epoch of the server's log; those that it does not name: 0. */
  epochs: optional(decodeNumbersByConversation),
});

/** A file with the last handled rev of each conversation, at which the next client resumes. */
export class ResumePositionsFile {
  readonly #path: string;
  readonly #signInId: string;
  #getRevs: () => ReadonlyMap<number, number> = () => new Map();
  #getEpochs: () => ReadonlyMap<number, number> = () => new Map();
  #saveTimer: NodeJS.Timeout | null = null;
  #timerSaveError: unknown = null;

  constructor(path: string, signInId: string) {
    this.#path = path;
    this.#signInId = signInId;
  }

  /** What the last client left; null without one, after another sign-in, or where the file cannot be understood. */
  loadRevs(): Map<number, number> | null {
    const state = this.#load();
    return state === null ? null : numberedEntries(state.revs);
  }

  /** In which epoch of the server's log that was; those that it does not name: 0. */
  loadEpochs(): Map<number, number> {
    return numberedEntries(this.#load()?.epochs ?? {});
  }

  #load(): Decoded<typeof decodeResumeState> | null {
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
    const state = decodeOrNull(decodeResumeState, parseJsonOrNull(text));
    return state === null || state.sign_in !== this.#signInId ? null : state;
  }

  /** To be called after every change: writes soon, and not more often than once a second. Throws why it failed last. */
  scheduleSave(
    getRevs: () => ReadonlyMap<number, number>,
    getEpochs: () => ReadonlyMap<number, number> = () => new Map(),
  ): void {
    if (this.#timerSaveError !== null) throw this.#timerSaveError;
    this.#getRevs = getRevs;
    this.#getEpochs = getEpochs;
    this.#saveTimer ??= setTimeout(() => this.#saveOnTimer(), MIN_SAVE_INTERVAL_MS);
  }

  /** Writes what was asked to be written, if anything was. */
  flushPendingSave(): void {
    if (this.#saveTimer === null) return;
    clearTimeout(this.#saveTimer);
    this.#saveTimer = null;
    const revs = new Map([...this.#getRevs()].slice(-MAX_SAVED_CONVERSATIONS));
    const epochs = [...this.#getEpochs()].filter(([id, epoch]) => epoch !== 0 && revs.has(id));
    const text = JSON.stringify({
      version: 1,
      sign_in: this.#signInId,
      revs: Object.fromEntries(revs),
      ...(epochs.length === 0 ? {} : { epochs: Object.fromEntries(epochs) }),
    });
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    // A kill in between leaves the old one whole.
    writeFileSync(`${this.#path}.new`, `${text}\n`, { mode: 0o600 });
    renameSync(`${this.#path}.new`, this.#path);
  }

  /** Nobody waits for a timer: the next change is told. */
  #saveOnTimer(): void {
    try {
      this.flushPendingSave();
    } catch (error) {
      this.#timerSaveError = error;
    }
  }
}

function numberedEntries(byId: Readonly<Record<string, number>>): Map<number, number> {
  return new Map(Object.entries(byId).map(([id, value]) => [Number(id), value]));
}

function parseJsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // What cannot be read is refused by the decoder as well.
    return null;
  }
}
