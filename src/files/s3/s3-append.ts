import { randomBytes } from 'node:crypto';
import { KlatchError } from '../../errors.ts';
import { ChunkBuffer } from '../chunk-buffer.ts';
import type { PartReservation, PartBufferPool } from '../part-buffer-pool.ts';
import { tailKey, type S3Bucket } from './s3-bucket.ts';
import type { S3State } from './s3-state.ts';
import type { AppendSource, FileKey, Progress } from '../store.ts';

/** What is gathered while a part waits for its turn. */
const BUFFERED_BYTES = 256 * 1024;
/** So much of a part needs no slot: whoever uploads little, or stalls early, keeps nobody from anything. */
const UNRESERVED_BYTES = 256 * 1024;

const TAIL_NAME_BYTES = 12;

/** Where an append goes to. */
interface Target {
  readonly bucket: S3Bucket;
  readonly partBuffers: PartBufferPool;
  readonly key: FileKey;
}

/**
 * Appends what a stream gives to an upload: full parts as they come, one being sent while the next one is filled, and
 * what is left as the tail, or where nothing comes behind it as the last part. Two parts are held at most.
 */
export async function appendToS3(target: Target, progress: S3State, source: AppendSource): Promise<Progress> {
  const buffer = new ChunkBuffer(source.bytes, BUFFERED_BYTES);
  const append = new S3Append(target, progress, source);
  try {
    await append.resume();
    for (;;) {
      const chunks = await buffer.take();
      if (chunks === null) break;
      for (const chunk of chunks) await append.add(chunk);
    }
    const failure = buffer.error;
    const reached = await append.end(source.isLast === true && failure === null);
    if (failure === null) return reached;
    source.onProgress(reached);
    throw failure;
  } finally {
    buffer.stop();
    await append.release();
  }
}

class S3Append {
  readonly #target: Target;
  readonly #source: AppendSource;
  #state: S3State;
  /** Bytes of the file up to what was added last. */
  #total: number;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #reservation: PartReservation | null = null;
  /** The part that is being sent; resolves to what it failed with. */
  #sending: Promise<unknown> | null = null;

  constructor(target: Target, state: S3State, source: AppendSource) {
    this.#target = target;
    this.#state = state;
    this.#total = this.#received;
    this.#source = source;
  }

  /** The tail of the last append is the beginning of the next part. */
  async resume(): Promise<void> {
    const { bucket, key } = this.#target;
    const { remainder, remainderName, hasRemainder } = this.#state;
    if (remainderName !== null && remainder > 0)
      await this.#fill(await bucket.readRemainder(key, remainderName, remainder));
    // From here the upload goes on, so that no row needs those of earlier requests.
    if (hasRemainder) await bucket.removeTails(key, remainderName);
  }

  async add(chunk: Buffer): Promise<void> {
    this.#total += chunk.length;
    await this.#fill(chunk);
  }

  /** Stores what is left. */
  async end(isLast: boolean): Promise<Progress> {
    this.#reservation?.markFull();
    await this.#finishSending();
    const body = this.#takeBody();
    if (isLast) await this.#putLast(body);
    else await this.#putTail(body);
    return { received: this.#total, state: { ...this.#state } };
  }

  /** Gives back what is held; a part that is being sent ends first. */
  async release(): Promise<void> {
    await this.#sending;
    this.#reservation?.release();
    this.#reservation = null;
  }

  async #fill(chunk: Buffer): Promise<void> {
    const { partBytes } = this.#state;
    for (let unread = chunk; unread.length > 0;) {
      const taken = unread.subarray(0, partBytes - this.#bytes);
      unread = unread.subarray(taken.length);
      this.#chunks.push(taken);
      this.#bytes += taken.length;
      if (this.#bytes > UNRESERVED_BYTES) this.#reservation ??= await this.#reserve();
      if (this.#bytes === partBytes) await this.#sendPart();
    }
  }

  get #received(): number {
    const { etags, partBytes, remainder } = this.#state;
    return etags.length * partBytes + remainder;
  }

  /** Called back, the source ends here: what came of it is stored as when its client leaves. */
  #reserve(): Promise<PartReservation> {
    const sentence = 'Other uploads waited for this one, which came too slowly; what is not complete can be sent again';
    return this.#target.partBuffers.take(() => {
      this.#source.bytes.destroy(new KlatchError('request_timeout', { sentence }));
    });
  }

  #takeBody(): Buffer {
    const body = Buffer.concat(this.#chunks, this.#bytes);
    this.#chunks = [];
    this.#bytes = 0;
    return body;
  }

  async #sendPart(): Promise<void> {
    this.#reservation?.markFull();
    await this.#finishSending();
    const body = this.#takeBody();
    // The slot goes with the part.
    const reservation = this.#reservation;
    this.#reservation = null;
    this.#sending = this.#putPart(body)
      .then(
        () => null,
        (error: unknown) => error,
      )
      .finally(() => reservation?.release());
  }

  /** Throws what the part failed with that was being sent. */
  async #finishSending(): Promise<void> {
    const failure = await this.#sending;
    this.#sending = null;
    if (failure !== null && failure !== undefined) throw failure;
  }

  async #putPart(body: Buffer): Promise<void> {
    const { bucket, key } = this.#target;
    const uploadId = this.#state.uploadId ?? (await bucket.beginUpload(key));
    if (this.#state.uploadId === null) this.#advance({ uploadId });
    const etag = await bucket.putPart(key, { uploadId, part: this.#state.etags.length + 1 }, body);
    this.#advance({ etags: [...this.#state.etags, etag], remainder: 0, remainderName: null });
  }

  async #putTail(body: Buffer): Promise<void> {
    const { bucket, key } = this.#target;
    // Without new bytes it is there as it was.
    if (body.length === this.#state.remainder) return;
    // Beside the last one: whoever is killed before this is noted goes on with that, and so does another node.
    const remainderName = randomBytes(TAIL_NAME_BYTES).toString('base64url');
    await bucket.put(tailKey(key, remainderName), body);
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

  #advance(change: Partial<S3State>): void {
    this.#state = { ...this.#state, ...change };
    this.#source.onProgress({ received: this.#received, state: { ...this.#state } });
  }
}
