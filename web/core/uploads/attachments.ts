import { signal } from '@preact/signals';
import { isTransient } from '../../../client/core/chat-error.ts';
import { formatBytes } from '../../../client/core/format-bytes.ts';

/** A file that the server has stored. */
export interface StoredFile {
  readonly id: string;
  readonly name: string;
  readonly size: number;
}

/** The part of a file that the server has already; a later attempt continues after it. */
interface PartialUpload {
  /** The address of the upload on the server; null: the server knows of no upload in parts. */
  url: string | null;
}

export interface UploadOptions {
  readonly onProgress: (sentBytes: number) => void;
  readonly signal: AbortSignal;
  readonly partial: PartialUpload;
}

/** The limits of this server for the files of a message. */
export interface FileLimits {
  readonly maxBytes: number;
  readonly maxFiles: number;
}

/** A file that is attached to a message before it is sent. */
export interface AttachedFile {
  readonly key: number;
  readonly conversation: number;
  readonly file: File;
  readonly sentBytes: number;
  /** The stored file; null: not stored yet. */
  readonly stored: StoredFile | null;
  /** Why the upload failed; null: it has not failed. */
  readonly problem: string | null;
}

/** Assumed while the page cannot read the server's limits. The server refuses files that exceed its limits. */
const ASSUMED_LIMITS: FileLimits = { maxBytes: Number.MAX_SAFE_INTEGER, maxFiles: 10 };

interface AttachmentsOptions {
  /** Rejects with ServerError, ConnectionError, and the reason of an aborted signal. */
  readonly upload: (file: File, options: UploadOptions) => Promise<StoredFile>;
  /** Removes a file that no message contains, or a partial upload. */
  readonly remove: (id: string) => Promise<void>;
  /** Reads the limits from the server. Rejects with ServerError and ConnectionError. */
  readonly readLimits: () => Promise<FileLimits>;
}

/** The maximum number of files that are uploaded at the same time; other files wait. */
const UPLOADS_AT_ONCE = 3;

/** The files of messages that are not sent yet. Each file is uploaded as soon as it is attached. */
export class DraftAttachments {
  /** The files of all conversations. */
  readonly files = signal<readonly AttachedFile[]>([]);
  readonly #options: AttachmentsOptions;
  /** The controller that aborts each running upload, by the key of its file. */
  readonly #aborts = new Map<number, AbortController>();
  /** The partial uploads by the key of the file, each from the first attempt on. */
  readonly #partials = new Map<number, PartialUpload>();
  /** The keys of files whose upload failed because the connection broke or the server was not available. */
  readonly #interruptedKeys = new Set<number>();
  /** The limits that were read from the server; null: none were read yet. */
  #knownLimits: FileLimits | null = null;
  #lastKey = 0;
  #isStopped = false;

  constructor(options: AttachmentsOptions) {
    this.#options = options;
  }

  filesOf(conversation: number): AttachedFile[] {
    return this.files.value.filter((each) => each.conversation === conversation);
  }

  /**
   * Attaches files. Resolves to null if all were attached. Otherwise resolves to the maximum number of files of a
   * message, and attaches none beyond it.
   */
  async add(conversation: number, files: readonly File[]): Promise<number | null> {
    const { maxBytes, maxFiles } = await this.#limits();
    if (this.#isStopped) return null;
    const room = Math.max(0, maxFiles - this.filesOf(conversation).length);
    const newAttachments = files.slice(0, room).map((file): AttachedFile => {
      this.#lastKey += 1;
      const problem =
        file.size > maxBytes ? `The file is larger than ${formatBytes(maxBytes)}, the most of this server` : null;
      return { key: this.#lastKey, conversation, file, sentBytes: 0, stored: null, problem };
    });
    this.files.value = [...this.files.value, ...newAttachments];
    this.#uploadNext();
    return files.length > room ? maxFiles : null;
  }

  /** Uploads a file whose upload failed; continues after the part that the server has, if any. */
  retryUpload(key: number): void {
    this.#interruptedKeys.delete(key);
    const isContinued = typeof this.#partials.get(key)?.url === 'string';
    this.#change(key, { problem: null, ...(isContinued ? {} : { sentBytes: 0 }) });
    this.#uploadNext();
  }

  /** Repeats the uploads that failed because the connection broke or the server was not available. */
  retryInterrupted(): void {
    for (const key of this.#interruptedKeys) this.retryUpload(key);
  }

  /** Detaches a file: aborts its upload, and removes its stored or uploaded part from the server. */
  remove(key: number): void {
    void this.#discard(key);
    this.#uploadNext();
  }

  /** Detaches all files, before a sign-out. Resolves when the server has answered each removal; never rejects. */
  async removeAll(): Promise<void> {
    await Promise.all(this.files.value.map(({ key }) => this.#discard(key)));
  }

  /**
   * Detaches and returns the files of a conversation, for a message that contains them. Null: one of them is not stored
   * yet.
   */
  take(conversation: number): StoredFile[] | null {
    const files = this.filesOf(conversation);
    const stored = files.map((each) => each.stored).filter((each) => each !== null);
    if (stored.length < files.length) return null;
    for (const { key } of files) this.#forget(key);
    return stored;
  }

  stop(): void {
    this.#isStopped = true;
    for (const abort of this.#aborts.values()) abort.abort();
  }

  async #discard(key: number): Promise<void> {
    const id = this.#find(key)?.stored?.id ?? idOf(this.#partials.get(key));
    this.#aborts.get(key)?.abort();
    this.#forget(key);
    // If the removal fails, the server removes the file after `retention.orphaned-files`.
    if (id !== null) await this.#options.remove(id).catch(() => {});
  }

  #uploadNext(): void {
    const waitingFiles = this.files.value.filter(
      ({ key, stored, problem }) => stored === null && problem === null && !this.#aborts.has(key),
    );
    for (const next of waitingFiles.slice(0, Math.max(0, UPLOADS_AT_ONCE - this.#aborts.size))) void this.#upload(next);
  }

  async #upload({ key, file }: AttachedFile): Promise<void> {
    const abort = new AbortController();
    this.#aborts.set(key, abort);
    const partial = this.#partials.get(key) ?? { url: null };
    this.#partials.set(key, partial);
    try {
      const stored = await this.#options.upload(file, {
        signal: abort.signal,
        partial,
        onProgress: (sentBytes) => this.#change(key, { sentBytes }),
      });
      this.#change(key, { stored });
    } catch (error) {
      if (abort.signal.aborted) return;
      this.#change(key, { problem: (error as Error).message });
      if (isTransient(error)) this.#interruptedKeys.add(key);
    } finally {
      this.#aborts.delete(key);
      if (!this.#isStopped) this.#uploadNext();
    }
  }

  #find(key: number): AttachedFile | undefined {
    return this.files.value.find((each) => each.key === key);
  }

  #change(key: number, change: Partial<AttachedFile>): void {
    this.files.value = this.files.value.map((each) => (each.key === key ? { ...each, ...change } : each));
  }

  #forget(key: number): void {
    this.#partials.delete(key);
    this.#interruptedKeys.delete(key);
    this.files.value = this.files.value.filter((each) => each.key !== key);
  }

  async #limits(): Promise<FileLimits> {
    this.#knownLimits ??= await this.#options.readLimits().catch(() => null);
    return this.#knownLimits ?? ASSUMED_LIMITS;
  }
}

/** The id of the file that a partial upload will become; null: the server has no part of the file. */
function idOf(partial: PartialUpload | undefined): string | null {
  return partial?.url?.split('/').at(-1) ?? null;
}
