import { randomBytes } from 'node:crypto';
import { KlatchError } from '../../errors.ts';
import { ChunkBuffer } from '../chunk-buffer.ts';
import type { PartReservation, PartBufferPool } from '../part-buffer-pool.ts';
import { remainderKey, type S3Bucket } from './s3-bucket.ts';
import type { S3UploadState } from './s3-state.ts';
import type { AppendSource, FileKey, UploadProgress } from '../store.ts';

/** The size of the buffer for the bytes of one upload that arrive while its part waits for a slot in memory. */
const MAX_BUFFERED_BYTES = 256 * 1024;
/**
 * A part takes a slot in memory only for bytes beyond this number. So small uploads, and uploads that stall early,
 * block no other upload.
 */
const MAX_UNRESERVED_BYTES = 256 * 1024;

const REMAINDER_NAME_BYTES = 12;

/** The place to which an append writes. */
interface AppendTarget {
  readonly bucket: S3Bucket;
  readonly partBuffers: PartBufferPool;
  readonly key: FileKey;
}

/**
 * Appends a stream to an upload. Sends each part when it is full, while the next one is filled; so at most two parts
 * are in memory. The bytes after the last full part are stored as the last part if the upload ends with them, else as
 * the remainder.
 */
export async function appendToS3(
  target: AppendTarget,
  progress: S3UploadState,
  source: AppendSource,
): Promise<UploadProgress> {
  const buffer = new ChunkBuffer(source.bytes, MAX_BUFFERED_BYTES);
  const append = new S3Append(target, progress, source);
  try {
    await append.loadRemainder();
    for (;;) {
      const chunks = await buffer.take();
      if (chunks === null) break;
      for (const chunk of chunks) await append.add(chunk);
    }
    const sourceError = buffer.sourceError;
    const storedProgress = await append.finishAppend(source.isEndOfFile === true && sourceError === null);
    if (sourceError === null) return storedProgress;
    source.onProgress(storedProgress);
    throw sourceError;
  } finally {
    buffer.detachAndPause();
    await append.release();
  }
}

class S3Append {
  readonly #target: AppendTarget;
  readonly #source: AppendSource;
  #state: S3UploadState;
  /** The length of the upload in bytes, with all chunks that were added. */
  #addedUpTo: number;
  #chunks: Buffer[] = [];
  #bufferedBytes = 0;
  #reservation: PartReservation | null = null;
  /** The part that is being sent; resolves to its error, or to null. */
  #partInFlight: Promise<unknown> | null = null;

  constructor(target: AppendTarget, state: S3UploadState, source: AppendSource) {
    this.#target = target;
    this.#state = state;
    this.#addedUpTo = this.#storedBytes;
    this.#source = source;
  }

  /** Loads the remainder that the last append stored, as the beginning of the next part. */
  async loadRemainder(): Promise<void> {
    const { bucket, key } = this.#target;
    const { remainder, remainderName, hasRemainder } = this.#state;
    if (remainderName !== null && remainder > 0)
      await this.#addToParts(await bucket.readRemainder(key, remainderName, remainder));
    // The upload's row names this remainder, so the remainders of earlier requests are not needed any more.
    if (hasRemainder) await bucket.removeRemainders(key, remainderName);
  }

  async add(chunk: Buffer): Promise<void> {
    this.#addedUpTo += chunk.length;
    await this.#addToParts(chunk);
  }

  /** Stores the bytes that are left: as the last part if `isLast`, else as the remainder. */
  async finishAppend(isLast: boolean): Promise<UploadProgress> {
    this.#reservation?.markFull();
    await this.#awaitPartInFlight();
    const body = this.#takeBody();
    if (isLast) await this.#putLast(body);
    else await this.#putRemainder(body);
    return { receivedBytes: this.#addedUpTo, state: { ...this.#state } };
  }

  /** Waits until the part that is being sent has ended, and releases the slot of the part that is being filled. */
  async release(): Promise<void> {
    await this.#partInFlight;
    this.#reservation?.release();
    this.#reservation = null;
  }

  async #addToParts(chunk: Buffer): Promise<void> {
    const { partBytes } = this.#state;
    for (let remainingBytes = chunk; remainingBytes.length > 0;) {
      const taken = remainingBytes.subarray(0, partBytes - this.#bufferedBytes);
      remainingBytes = remainingBytes.subarray(taken.length);
      this.#chunks.push(taken);
      this.#bufferedBytes += taken.length;
      if (this.#bufferedBytes > MAX_UNRESERVED_BYTES) this.#reservation ??= await this.#reservePartMemory();
      if (this.#bufferedBytes === partBytes) await this.#sendPart();
    }
  }

  get #storedBytes(): number {
    const { etags, partBytes, remainder } = this.#state;
    return etags.length * partBytes + remainder;
  }

  /**
   * Takes a slot in memory for the next part. If another upload reclaims the slot, the source is destroyed, and the
   * bytes are stored as if the client had disconnected.
   */
  #reservePartMemory(): Promise<PartReservation> {
    const sentence = 'Other uploads waited for this one, which came too slowly; what is not complete can be sent again';
    return this.#target.partBuffers.take(() => {
      this.#source.bytes.destroy(new KlatchError('request_timeout', { sentence }));
    });
  }

  #takeBody(): Buffer {
    const body = Buffer.concat(this.#chunks, this.#bufferedBytes);
    this.#chunks = [];
    this.#bufferedBytes = 0;
    return body;
  }

  async #sendPart(): Promise<void> {
    this.#reservation?.markFull();
    await this.#awaitPartInFlight();
    const body = this.#takeBody();
    // The slot now belongs to the part that is sent, and is released when that is done.
    const reservation = this.#reservation;
    this.#reservation = null;
    this.#partInFlight = this.#putPart(body)
      .then(
        () => null,
        (error: unknown) => error,
      )
      .finally(() => reservation?.release());
  }

  /** Waits for the part that is being sent, and throws its error. */
  async #awaitPartInFlight(): Promise<void> {
    const failure = await this.#partInFlight;
    this.#partInFlight = null;
    if (failure !== null && failure !== undefined) throw failure;
  }

  async #putPart(body: Buffer): Promise<void> {
    const { bucket, key } = this.#target;
    const uploadId = this.#state.uploadId ?? (await bucket.beginUpload(key));
    if (this.#state.uploadId === null) this.#reportState({ uploadId });
    const etag = await bucket.putPart(key, { uploadId, part: this.#state.etags.length + 1 }, body);
    this.#reportState({ etags: [...this.#state.etags, etag], remainder: 0, remainderName: null });
  }

  async #putRemainder(body: Buffer): Promise<void> {
    const { bucket, key } = this.#target;
    // If no byte was added, the stored remainder is still right.
    if (body.length === this.#state.remainder) return;
    // Writes the remainder to a new object. If this process is killed before it writes the row, the upload can still
    // resume with the previous remainder, also on another node.
    const remainderName = randomBytes(REMAINDER_NAME_BYTES).toString('base64url');
    await bucket.put(remainderKey(key, remainderName), body);
    this.#state = { ...this.#state, remainder: body.length, remainderName, hasRemainder: true };
  }

  async #putLast(body: Buffer): Promise<void> {
    const { bucket, key } = this.#target;
    const { uploadId, etags } = this.#state;
    if (uploadId === null) await bucket.put(key, body);
    else if (body.length > 0) {
      const etag = await bucket.putPart(key, { uploadId, part: etags.length + 1 }, body);
      this.#state = { ...this.#state, etags: [...etags, etag] };
    }
    this.#state = { ...this.#state, remainder: 0, remainderName: null, isComplete: true };
  }

  #reportState(change: Partial<S3UploadState>): void {
    this.#state = { ...this.#state, ...change };
    this.#source.onProgress({ receivedBytes: this.#storedBytes, state: { ...this.#state } });
  }
}
