import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { pipeline, Transform, type Readable, type TransformCallback } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { Busboy, BusboyFileStream, BusboyHeaders } from '@fastify/busboy';
import { KlatchError } from '../errors.ts';
import type { Attachment } from '../model/attachment.ts';
import { processBodyMemory, type BodyMemoryHandle } from './body-memory.ts';
import { maxBodySizeExceededError } from './body.ts';
import { beginsLikeObject, createMultipartParser, tooManyPartsError } from './form-fields.ts';
import { GrowingBuffer } from './growing-buffer.ts';

/** A file of a form on its way into the store. */
export interface FormFile {
  /** As the sender gave it. */
  readonly name: string;
  /** Called once, when the file is admitted. */
  readonly bytes: () => Readable;
  /** Ends the upload with its reason. */
  readonly signal: AbortSignal;
}

export interface MultipartOptions {
  /** Bytes of a form without its files. */
  readonly maxBodyBytes: number;
  readonly maxFileBytes: number;
  readonly maxFiles: number;
  /** From the first file on, everything besides the files has to arrive within this time in all. */
  readonly nonFileTimeoutMs: number;
  /** Called once, when the form has a file: from here on it is an upload. What it throws ends the reading. */
  readonly onFirstFile: () => void;
  /** Runs the parsing, and charges its time to the sender. */
  readonly chargeParseTime: <T>(work: () => T) => T;
  readonly store: (file: FormFile) => Promise<Attachment>;
  /** Gets every byte of the body, as it was sent. */
  readonly onChunk: (chunk: Buffer) => void;
  /** Discards a file that was stored. Does not reject. */
  readonly discardFile: (id: string) => Promise<void>;
}

/** A file of a form, stored. */
interface ReceivedFile {
  readonly attachment: Attachment;
  readonly sha256: string;
}

/** A form; of several fields with one name it has the first. */
export interface ReceivedForm {
  readonly fields: ReadonlyMap<string, string>;
  readonly files: readonly ReceivedFile[];
  /** The whole body of a form without files; null: it has some. */
  readonly body: Buffer | null;
}

const FILE_FIELD_NAME = /^(?:files?(?:\[\d{0,3}\])?|file\d{1,3}|document|photo)$/;
/** With it, a field of Telegram's methods names the field of its file. */
const FILE_REFERENCE = /^attach:\/\/([\w-]{1,64})$/;

const invalid = (sentence: string): KlatchError => new KlatchError('invalid_input', { sentence });

/**
 * Reads one multipart form as it arrives. It keeps the body of a form without files whole. From the first file on it
 * keeps only the fields; each file goes to the store at the store's speed, one after the other. A form that fails, or
 * is not whole in the end, leaves no file behind.
 */
export class MultipartReceiver {
  readonly #options: MultipartOptions;
  readonly #parser: InstanceType<typeof Busboy>;
  readonly #fields = new Map<string, string>();
  readonly #referencedFields = new Set<string>();
  readonly #files: ReceivedFile[] = [];
  readonly #abortController = new AbortController();
  readonly #failure: Promise<never>;
  readonly #parsed: Promise<void>;
  /** The body so far; null from the first file on. */
  #body: GrowingBuffer | null = new GrowingBuffer();
  #receivedBytes = 0;
  #bodyMemoryHandle: BodyMemoryHandle | null = null;
  #fieldValueBytes = 0;
  #fileCount = 0;
  /** The error of a body that is no form, or of a form without a file so far. */
  #deferredFormError: KlatchError | null = null;
  /** True from the first file on, or when the whole body was read. */
  #parseErrorsFailAtOnce = false;
  readonly #nonFileTimeout: PausableTimeout;
  #storeQueue: Promise<void> = Promise.resolve();

  /** Throws where the type names no boundary. */
  constructor(headers: BusboyHeaders, options: MultipartOptions) {
    this.#options = options;
    const { signal } = this.#abortController;
    this.#failure = new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
    this.#nonFileTimeout = new PausableTimeout(options.nonFileTimeoutMs, () => {
      this.#fail(new KlatchError('request_timeout', { sentence: 'The form was not complete in time' }));
    });
    // Code that waits for something races it against this failure; that may be later, or never.
    this.#failure.catch(() => {});
    this.#parser = createMultipartParser(headers, options.maxBodyBytes);
    this.#parser.on('field', (name, value, _isNameCut, isTruncated) => this.#onField(name, value, isTruncated));
    this.#parser.on('file', (field, stream, name) => this.#enqueueFileOrFail(field, stream, name));
    this.#parser.on('partsLimit', () => this.#onParseError(tooManyPartsError()));
    this.#parser.on('error', () => this.#onParseError(invalid('The body is not a valid multipart form')));
    // Subscribed here: with more delimiters behind the closing one, the parser finishes while the body is still being
    // read.
    this.#parsed = new Promise((resolve) => this.#parser.once('finish', () => resolve()));
  }

  /** Resolves to the form, or to the body if that is no form but looks like a JSON object. */
  async read(req: IncomingMessage): Promise<Buffer | ReceivedForm> {
    this.#bodyMemoryHandle = processBodyMemory.track(() => this.#fail(new KlatchError('too_many_large_requests')));
    try {
      await this.#readAll(req);
      const body = this.#body?.toBuffer() ?? null;
      if (body !== null && beginsLikeObject(body)) return body;
      if (this.#deferredFormError !== null) throw this.#deferredFormError;
      this.#parseErrorsFailAtOnce = true;
      await this.#finish();
      return { fields: this.#fields, files: this.#files, body };
    } catch (error) {
      this.#fail(error);
      this.#nonFileTimeout.stop();
      // Discards the rest of the body, so that the sender comes to read the answer; the caller bounds that.
      req.resume();
      await this.#storeQueue;
      await this.discardFiles();
      throw this.#abortController.signal.reason;
    } finally {
      this.#bodyMemoryHandle?.release();
    }
  }

  /** Discards the files of a form that was not posted. */
  async discardFiles(): Promise<void> {
    await Promise.all(this.#files.splice(0).map(({ attachment }) => this.#options.discardFile(attachment.id)));
  }

  /** Not an iterator: a loop cannot be left while it waits for a sender that has stopped. */
  #readAll(req: IncomingMessage): Promise<void> {
    const { signal } = this.#abortController;
    return new Promise((resolve, reject) => {
      const done = (settle: () => void): void => {
        req.off('data', consume).off('end', end).off('close', onCut).off('error', onCut);
        signal.removeEventListener('abort', fail);
        settle();
      };
      const fail = (): void => done(() => reject(signal.reason as Error));
      const end = (): void => done(resolve);
      const onCut = (cause?: Error): void => {
        this.#fail(new KlatchError('invalid_input', { sentence: 'The body ended before it was complete', cause }));
      };
      const consume = (chunk: Buffer): void => {
        const busy = this.#consume(chunk);
        if (busy === null) return;
        req.pause();
        // If reading failed meanwhile, there is no listener any more, and the data is discarded.
        void busy.then(() => req.resume());
      };
      signal.addEventListener('abort', fail, { once: true });
      req.on('data', consume).once('end', end).once('close', onCut).once('error', onCut);
    });
  }

  /** Null: the parser takes more at once. */
  #consume(chunk: Buffer): Promise<void> | null {
    this.#receivedBytes += chunk.length;
    this.#options.onChunk(chunk);
    // Bytes of files go to the store; this keeps what came before them.
    if (this.#body !== null) this.#bodyMemoryHandle?.add(chunk.length);
    this.#body?.append(chunk);
    if (this.#deferredFormError === null && !this.#writeToParser(chunk)) return this.#drainParserThenCheckSize();
    this.#failIfFormTooLarge();
    return null;
  }

  /** The upload bounds the bytes of a file, so they count for no budget. */
  #writeToParser(chunk: Buffer): boolean {
    const write = (): boolean => this.#parser.write(chunk);
    return this.#body === null ? write() : this.#options.chargeParseTime(write);
  }

  async #drainParserThenCheckSize(): Promise<void> {
    // Without a file, nothing slows the parser down: by the next turn it has parsed everything.
    if (this.#body !== null) await setImmediate();
    if (this.#body === null) await this.#parserDrained();
    this.#failIfFormTooLarge();
  }

  /** Called once it is known whether the bytes belong to files. */
  #failIfFormTooLarge(): void {
    const { maxBodyBytes, maxFileBytes, maxFiles } = this.#options;
    if (this.#body !== null && this.#receivedBytes > maxBodyBytes) this.#fail(maxBodySizeExceededError(maxBodyBytes));
    else if (this.#receivedBytes > maxBodyBytes + maxFiles * maxFileBytes)
      this.#fail(fieldsTooLargeError(maxBodyBytes));
  }

  /** Resolves when the parser takes more, or never will. */
  #parserDrained(): Promise<void> {
    const { signal } = this.#abortController;
    if (!this.#parser.writableNeedDrain || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        for (const event of ['drain', 'error']) this.#parser.off(event, done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      for (const event of ['drain', 'error']) this.#parser.once(event, done);
      signal.addEventListener('abort', done, { once: true });
    });
  }

  async #finish(): Promise<void> {
    this.#nonFileTimeout.start();
    this.#parser.end();
    // The timeout runs until then: a parser that never finishes must not hold the request.
    await Promise.race([this.#parsed, this.#failure]);
    this.#nonFileTimeout.stop();
    await this.#storeQueue;
    if (this.#abortController.signal.aborted) throw this.#abortController.signal.reason;
  }

  #onField(name: string, value: string, isTruncated: boolean): void {
    // The byte count refuses a body without files that is past its bound.
    this.#fieldValueBytes += Buffer.byteLength(value);
    if (isTruncated || this.#fieldValueBytes > this.#options.maxBodyBytes)
      this.#onParseError(fieldsTooLargeError(this.#options.maxBodyBytes));
    else if (!this.#fields.has(name)) this.#fields.set(name, value);
    const referenced = FILE_REFERENCE.exec(value)?.[1];
    if (referenced !== undefined) this.#referencedFields.add(referenced);
  }

  #enqueueFileOrFail(field: string | undefined, stream: BusboyFileStream, name: string): void {
    // The stream fails with the form; its reader gets the error as well.
    stream.on('error', () => {});
    if (this.#body !== null) {
      this.#body = null;
      this.#parseErrorsFailAtOnce = true;
      this.#startTimeoutAndNotifyFirstFile();
    }
    if (field === 'text' || field === 'payload') {
      const sentence = `${field}: was sent as a file; with curl it is -F '${field}=<name', not -F '${field}=@name'`;
      this.#fail(invalid(sentence));
    } else if (field === undefined || !(FILE_FIELD_NAME.test(field) || this.#referencedFields.has(field))) {
      this.#fail(invalid('A file is in another field than file: name the field of each file "file"'));
    }
    // A part without a name may be no file: `#storeFile` finds out.
    if (name !== '') this.#countFile();
    this.#storeQueue = this.#storeQueue.then(() => this.#storeFile(stream, name));
  }

  #countFile(): void {
    this.#fileCount += 1;
    const { maxFiles } = this.#options;
    if (this.#fileCount <= maxFiles) return;
    this.#fail(invalid(`file: a message carries at most ${maxFiles} files (limits.attachments-per-message)`));
  }

  #startTimeoutAndNotifyFirstFile(): void {
    this.#nonFileTimeout.start();
    try {
      this.#options.onFirstFile();
    } catch (error) {
      this.#fail(error);
    }
  }

  async #storeFile(stream: BusboyFileStream, name: string): Promise<void> {
    const { signal } = this.#abortController;
    try {
      if (signal.aborted) return;
      const hashStream = new HashStream();
      pipeline(stream, hashStream, () => {});
      if (name === '') {
        // Browsers send this for a file field in which the user chose nothing.
        if (await isEmpty(hashStream, signal)) {
          hashStream.resume();
          return;
        }
        this.#countFile();
        if (signal.aborted) return;
      }
      // During this time the store bounds how fast the file comes.
      this.#nonFileTimeout.pause();
      const attachment = await this.#options.store({ name, bytes: () => hashStream, signal });
      this.#files.push({ attachment, sha256: hashStream.sha256 });
      this.#nonFileTimeout.start();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** The parser reads no further. */
  #onParseError(error: KlatchError): void {
    if (this.#parseErrorsFailAtOnce) this.#fail(error);
    else this.#deferredFormError ??= error;
  }

  /** Only the first reason is reported. */
  #fail(error: unknown): void {
    this.#abortController.abort(error);
  }
}

/** Counts down while a form waits for its sender. */
class PausableTimeout {
  readonly #onTimeout: () => void;
  #countdownRemainingMs: number;
  #countdownStartedAtMs = 0;
  #timer: NodeJS.Timeout | null = null;
  #isTimeoutStopped = false;

  constructor(ms: number, onTimeout: () => void) {
    this.#countdownRemainingMs = ms;
    this.#onTimeout = onTimeout;
  }

  start(): void {
    if (this.#isTimeoutStopped || this.#timer !== null) return;
    this.#countdownStartedAtMs = performance.now();
    this.#timer = setTimeout(this.#onTimeout, this.#countdownRemainingMs);
  }

  pause(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#countdownRemainingMs = Math.max(
      0,
      this.#countdownRemainingMs - (performance.now() - this.#countdownStartedAtMs),
    );
  }

  stop(): void {
    this.pause();
    this.#isTimeoutStopped = true;
  }
}

/** Hashes the data that passes through it. */
class HashStream extends Transform {
  readonly #hash = createHash('sha256');

  /** To be read after the end of the stream. */
  get sha256(): string {
    return this.#hash.digest('hex');
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#hash.update(chunk);
    done(null, chunk);
  }
}

/** Whether a stream ends without any data; data that it has stays in it. */
async function isEmpty(stream: Readable, signal: AbortSignal): Promise<boolean> {
  if (stream.readableLength === 0 && !stream.readableEnded) await once(stream, 'readable', { signal });
  return stream.readableLength === 0;
}

function fieldsTooLargeError(maxBytes: number): KlatchError {
  const sentence = `The form is larger than ${maxBytes} bytes (http.max-body-size) without its files`;
  return new KlatchError('too_large', { sentence });
}
