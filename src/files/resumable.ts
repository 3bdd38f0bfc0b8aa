import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { KlatchError } from '../errors.ts';
import type { AccountId } from '../model/ids.ts';
import { findFile, type StoredFile } from '../storage/files.ts';
import type { Inflow } from './inflow.ts';
import { cleanName } from './names.ts';
import {
  beginInStore,
  clearBehindWriter,
  completeUpload,
  giveUpQuietly,
  openUpload,
  receive,
  refuseBytes,
} from './reception.ts';
import { NotInStoreError, type Progress } from './store.ts';
import { newFileId, type Uploads, type UploadWatch } from './uploads.ts';

/** A request that has sent nothing for so long makes room for one that goes on: its client's network has changed. */
const QUIET_MS = 5_000;
/** How long the newcomer waits until the other one has put away what it had. */
const TAKE_OVER_MS = 5_000;

/** How far a resumable upload is. */
export interface UploadStatus {
  readonly id: string;
  readonly name: string;
  readonly size: number;
  /** Bytes that are safe: it goes on from there. */
  readonly offset: number;
  /** When it is given up unless something of it comes; null: it is complete. */
  readonly expiresAt: Date | null;
}

/** A part of an upload. */
export interface Part {
  /** Where it begins: what the client believes the upload's offset to be. */
  readonly offset: number;
  /** Null: nobody knows. */
  readonly announcedBytes: number | null;
  /** Called once when the part is admitted. */
  readonly bytes: () => Readable;
}

/** The one request that goes on with an upload. */
interface Writer {
  readonly ending: AbortController;
  readonly ended: Promise<void>;
  readonly leave: () => void;
  flow: Inflow | null;
}

/** Uploads that come in parts and outlive connections and servers: what tus needs of them, without its headers. */
export class ResumableUploads {
  readonly #uploads: Uploads;
  readonly #expireAfterMs: number;
  readonly #writers = new Map<string, Writer>();

  constructor(uploads: Uploads, options: { expireAfterMs: number }) {
    this.#uploads = uploads;
    this.#expireAfterMs = options.expireAfterMs;
  }

  /** Begins an upload of this many bytes. Throws `too_large`, `space_full`, `limit_reached`, `uploads_full`. */
  async create(upload: { accountId: AccountId; name: string; size: number }): Promise<UploadStatus> {
    const { accountId, size } = upload;
    const id = newFileId();
    const name = cleanName(upload.name);
    await openUpload(this.#uploads.parts, { id, accountId, name, announcedBytes: size, isResumable: true });
    if (size > 0) return this.#status(await this.#row(id, accountId));
    return this.append(id, accountId, { offset: 0, announcedBytes: 0, bytes: () => Readable.from([]) });
  }

  /** How far an upload of this account is. Throws `file_not_found` and `upload_over`. */
  async find(id: string, accountId: AccountId): Promise<UploadStatus> {
    const holder = this.#writers.get(id);
    // Who asks wants to go on: what a silent request still holds back counts then.
    if (holder !== undefined && isQuiet(holder)) await this.#end(holder, new KlatchError('upload_locked'));
    const file = await this.#upload(id, accountId);
    const isWhole = file.state === 'uploading' && file.size > 0 && file.received === file.size;
    // A server that was killed between its last byte and its end: for the client nothing is left to be done.
    if (isWhole && !this.#writers.has(id)) {
      return this.append(id, accountId, { offset: file.size, announcedBytes: 0, bytes: () => Readable.from([]) });
    }
    return this.#status(file);
  }

  /**
   * Takes a part. Throws `upload_locked` while another request brings one, `upload_conflict` when it does not begin where
   * the upload is, and what `find` and Uploads.storeFile throw. What arrived stays, however it ends.
   */
  async append(id: string, accountId: AccountId, part: Part): Promise<UploadStatus> {
    return this.#uploads.counting({ accountId, conversationId: null }, async (watch) => {
      const writer = await this.#lock(id);
      try {
        const file = await this.#upload(id, accountId);
        const status = await this.#take(file, part, { writer, watch }).catch(async (error: unknown) => {
          await clearBehindWriter(this.#uploads.parts, id);
          throw error;
        });
        return { outcome: status.expiresAt === null ? 'stored' : 'paused', result: status };
      } catch (error) {
        if (!(error instanceof NotInStoreError)) throw error;
        await giveUpQuietly(this.#uploads.parts, id);
        throw new KlatchError('upload_over', { cause: error });
      } finally {
        this.#writers.delete(id);
        writer.leave();
      }
    });
  }

  /** Ends an upload, or removes what became of it. Throws `file_not_found`, also where a message has the file. */
  async remove(id: string, accountId: AccountId): Promise<void> {
    await this.#row(id, accountId);
    const holder = this.#writers.get(id);
    if (holder !== undefined) await this.#end(holder, new KlatchError('upload_over'));
    if (await this.#uploads.removeOwn(id, accountId)) return;
    const sentence = 'There is no such file of yours, or a message has it: it goes with the message';
    throw new KlatchError('file_not_found', { sentence });
  }

  /** Ends the requests in hand: their clients go on with what is safe, later. */
  stop(): void {
    for (const { ending } of this.#writers.values()) ending.abort(new KlatchError('stopping'));
  }

  async #take(file: StoredFile, part: Part, by: { writer: Writer; watch: UploadWatch }): Promise<UploadStatus> {
    const { parts } = this.#uploads;
    const { id, size } = file;
    const remaining = size - file.received;
    if (part.offset !== file.received) throw new KlatchError('upload_conflict');
    if ((part.announcedBytes ?? 0) > remaining) {
      const sentence = `The upload was announced with ${size} bytes: only ${remaining} are missing`;
      throw new KlatchError('too_large', { sentence });
    }
    const signal = AbortSignal.any([by.watch.signal, by.writer.ending.signal]);
    const onFlow = (flow: Inflow): void => {
      by.writer.flow = flow;
      by.watch.onFlow(flow);
    };
    const isWhole = file.state === 'stored' || (remaining === 0 && size > 0);
    // Without a length only its body tells whether a part brings more than the upload has room for.
    if (isWhole && part.announcedBytes === null) {
      await refuseBytes(parts, { bytes: part.bytes(), size, signal, onFlow });
    }
    if (file.state === 'stored') return this.#status(file);
    const from: Progress =
      file.upload === null ? await beginInStore(parts, id) : { received: file.received, state: file.upload };
    if (isWhole) {
      await completeUpload(parts, { id, progress: from }, null);
      return this.#status({ ...file, state: 'stored' });
    }
    const { progress, head } = await receive(
      parts,
      { id, size, progress: from },
      {
        bytes: part.bytes(),
        isLast: part.announcedBytes === remaining,
        isResumable: true,
        signal,
        onFlow,
      },
    );
    if (progress.received < size) return this.#status({ ...file, received: progress.received, touchedAt: new Date() });
    await completeUpload(parts, { id, progress }, from.received === 0 ? head : null);
    return this.#status({ ...file, received: size, state: 'stored' });
  }

  /** The same of one that comes in parts: another one is written by the request that began it, whatever node has that. */
  async #upload(id: string, accountId: AccountId): Promise<StoredFile> {
    const file = await this.#row(id, accountId);
    if (!file.isResumable) throw new KlatchError('file_not_found');
    // It was complete once, and nothing of it is left: who asks begins anew, and does not take it for stored.
    if (file.state === 'lost') throw new KlatchError('upload_over');
    return file;
  }

  /** The row of a file or an upload of this account that is not over. */
  async #row(id: string, accountId: AccountId): Promise<StoredFile> {
    const file = await this.#uploads.parts.pool.run((sql) => findFile(sql, id));
    if (file === null || file.accountId !== accountId) throw new KlatchError('file_not_found');
    const isExpired = file.state === 'uploading' && this.#expiry(file).getTime() <= Date.now();
    if (file.state === 'removed' || isExpired) throw new KlatchError('upload_over');
    return file;
  }

  #status(file: StoredFile): UploadStatus {
    const { id, name, size, received } = file;
    return { id, name, size, offset: received, expiresAt: file.state === 'stored' ? null : this.#expiry(file) };
  }

  #expiry({ touchedAt }: StoredFile): Date {
    return new Date(touchedAt.getTime() + this.#expireAfterMs);
  }

  /** One request at a time goes on with an upload. */
  async #lock(id: string): Promise<Writer> {
    const holder = this.#writers.get(id);
    if (holder !== undefined && isQuiet(holder)) await this.#end(holder, new KlatchError('upload_locked'));
    if (this.#writers.has(id)) throw new KlatchError('upload_locked');
    const { promise: ended, resolve: leave } = Promise.withResolvers<void>();
    const writer: Writer = { ending: new AbortController(), ended, leave, flow: null };
    this.#writers.set(id, writer);
    return writer;
  }

  async #end({ ending, ended }: Writer, reason: Error): Promise<void> {
    ending.abort(reason);
    const given = new AbortController();
    await Promise.race([ended, wait(TAKE_OVER_MS, undefined, { signal: given.signal })]);
    given.abort();
  }
}

function isQuiet({ flow }: Writer): boolean {
  return flow !== null && flow.quietMs > QUIET_MS;
}
