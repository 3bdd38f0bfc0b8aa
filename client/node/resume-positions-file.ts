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

/**
 * The maximum number of conversations in the file. If there are more, the file drops those that come first in the map
 * of positions.
 */
const MAX_SAVED_CONVERSATIONS = 20_000;
/** The shortest time between two writes. After a kill, the client receives the unsaved changes again. */
const MIN_SAVE_INTERVAL_MS = 1_000;

const CONVERSATION_ID_PATTERN = /^\d{1,16}$/;
const decodeNumbersByConversation: Decoder<Record<string, number>> = (value) => {
  const numberByConversation = recordOf(naturalNumber)(value);
  if (Object.keys(numberByConversation).every((id) => CONVERSATION_ID_PATTERN.test(id))) return numberByConversation;
  throw new DecodeError('revs by the numbers of conversations');
};

const decodeResumeState = objectWithAtLeast({
  version: constant(1),
  /** The sign-in that the positions belong to; for another sign-in they are invalid. */
  sign_in: string,
  revs: decodeNumbersByConversation,
  /** By conversation, the epoch of the server's log that the rev belongs to; absent conversations have epoch 0. */
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

  /**
   * The last handled revs that an earlier client stored, by conversation. Null if the file does not exist, belongs to
   * another sign-in, or has another shape. Throws any other error of reading the file.
   */
  loadRevs(): Map<number, number> | null {
    const state = this.#load();
    return state === null ? null : toMapByNumericId(state.revs);
  }

  /**
   * By conversation, the epoch of the server's log that the stored rev belongs to; 0 for conversations that are not in
   * the map.
   */
  loadEpochs(): Map<number, number> {
    return toMapByNumericId(this.#load()?.epochs ?? {});
  }

  #load(): Decoded<typeof decodeResumeState> | null {
    let fileText: string;
    try {
      fileText = readFileSync(this.#path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
    const state = decodeOrNull(decodeResumeState, parseJsonOrNull(fileText));
    return state === null || state.sign_in !== this.#signInId ? null : state;
  }

  /**
   * Schedules a write, at most one a second; called after every change. Throws the error of an earlier scheduled write.
   */
  scheduleSave(
    getRevs: () => ReadonlyMap<number, number>,
    getEpochs: () => ReadonlyMap<number, number> = () => new Map(),
  ): void {
    if (this.#timerSaveError !== null) throw this.#timerSaveError;
    this.#getRevs = getRevs;
    this.#getEpochs = getEpochs;
    this.#saveTimer ??= setTimeout(() => this.#saveOnTimer(), MIN_SAVE_INTERVAL_MS);
  }

  /** Writes the positions that wait for a write, if there are any. */
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
    // If the process is killed before the rename, the old file stays intact.
    writeFileSync(`${this.#path}.new`, `${text}\n`, { mode: 0o600 });
    renameSync(`${this.#path}.new`, this.#path);
  }

  /** Nothing awaits the timer, so the next `scheduleSave` throws the error of this save. */
  #saveOnTimer(): void {
    try {
      this.flushPendingSave();
    } catch (error) {
      this.#timerSaveError = error;
    }
  }
}

function toMapByNumericId(byId: Readonly<Record<string, number>>): Map<number, number> {
  return new Map(Object.entries(byId).map(([id, value]) => [Number(id), value]));
}

function parseJsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The decoder rejects null, as it rejects a file of another shape.
    return null;
  }
}
