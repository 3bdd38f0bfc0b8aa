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
  /** The file's name as it was sent. */
  readonly name: string;
  /** Called once, when the store has admitted the file. Returns the content of the file. */
  readonly bytes: () => Readable;
  /** When this signal is aborted, the upload ends with the signal's reason. */
  readonly signal: AbortSignal;
}

export interface MultipartOptions {
  /** The most bytes of a form, without its files. */
  readonly maxBodyBytes: number;
  readonly maxFileBytes: number;
  readonly maxFiles: number;
  /** From the first file on, the total time in which everything besides the files has to arrive. */
  readonly nonFileTimeoutMs: number;
  /**
   * Called once, when the first file begins: from here on the form is an upload. An error that it throws fails the
   * form.
   */
  readonly onFirstFile: () => void;
  /** Runs a piece of parsing, and charges its time to the sender. */
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

/** A form that was read completely. Of fields with the same name, it has the first one. */
export interface ReceivedForm {
  readonly fields: ReadonlyMap<string, string>;
  readonly files: readonly ReceivedFile[];
  /** The whole body of a form without files; null if the form has files. */
  readonly body: Buffer | null;
}

const FILE_FIELD_NAME = /^(?:files?(?:\[\d{0,3}\])?|file\d{1,3}|document|photo)$/;
/** The value by which a field of Telegram's methods names another field of the form, which holds the file. */
const FILE_REFERENCE = /^attach:\/\/([\w-]{1,64})$/;

const invalid = (sentence: string): KlatchError => new KlatchError('invalid_input', { sentence });

/**
 * Reads one multipart form as it arrives. The body of a form without files stays in memory. From the first file on only
 * the fields stay in memory, and the files go to the store one after the other. A form that fails or is not complete
 * leaves no file in the store.
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
  /**
   * The first error in a body without a file so far, which may be JSON. If it is not, the error is thrown at its end.
   */
  #deferredFormError: KlatchError | null = null;
  /** True from the first file on, and after the whole body was read: an error in the form then fails it at once. */
  #parseErrorsFailAtOnce = false;
  readonly #nonFileTimeout: PausableTimeout;
  #storeQueue: Promise<void> = Promise.resolve();

  /** Throws if the Content-Type names no boundary. */
  constructor(headers: BusboyHeaders, options: MultipartOptions) {
    this.#options = options;
    const { signal } = this.#abortController;
    this.#failure = new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
    this.#nonFileTimeout = new PausableTimeout(options.nonFileTimeoutMs, () => {
      const sentence = 'The form was not complete in time: please send it again';
      this.#fail(new KlatchError('request_timeout', { sentence }));
    });
    // The promise may be awaited later, or never: its rejection must not count as unhandled.
    this.#failure.catch(() => {});
    this.#parser = createMultipartParser(headers, options.maxBodyBytes);
    this.#parser.on('field', (name, value, _isNameCut, isTruncated) => this.#onField(name, value, isTruncated));
    this.#parser.on('file', (field, stream, name) => this.#enqueueFileOrFail(field, stream, name));
    this.#parser.on('partsLimit', () => this.#onParseError(tooManyPartsError()));
    this.#parser.on('error', () => this.#onParseError(invalid('The body is not a valid multipart form')));
    // Listens before the body is read: if more delimiters follow the closing one, the parser finishes while the body is
    // still being read.
    this.#parsed = new Promise((resolve) => this.#parser.once('finish', () => resolve()));
  }

  /** Resolves to the form, or to the body if that has no files and begins like a JSON object. */
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
      // The rest of the body is read and discarded, so that the sender gets to read the answer. The calling code bounds
      // how long this takes.
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

  /** Reads the request by its events: an iterator cannot be aborted while it waits for a sender that has stopped. */
  #readAll(req: IncomingMessage): Promise<void> {
    const { signal } = this.#abortController;
    return new Promise((resolve, reject) => {
      const cleanUpThenSettle = (settle: () => void): void => {
        req.off('data', consume).off('end', onEnd).off('close', onCut).off('error', onCut);
        signal.removeEventListener('abort', fail);
        settle();
      };
      const fail = (): void => cleanUpThenSettle(() => reject(signal.reason as Error));
      const onEnd = (): void => cleanUpThenSettle(resolve);
      const onCut = (cause?: Error): void => {
        const sentence = 'The body ended before it was complete: send it again';
        this.#fail(new KlatchError('invalid_input', { sentence, cause }));
      };
      const consume = (chunk: Buffer): void => {
        const whenParserReady = this.#consume(chunk);
        if (whenParserReady === null) return;
        req.pause();
        // If the form has failed meanwhile, the request has no listener, and its data is discarded.
        void whenParserReady.then(() => req.resume());
      };
      signal.addEventListener('abort', fail, { once: true });
      req.on('data', consume).once('end', onEnd).once('close', onCut).once('error', onCut);
    });
  }

  /** Passes a chunk to the parser. Null: the parser takes the next chunk at once; otherwise resolves when it does. */
  #consume(chunk: Buffer): Promise<void> | null {
    this.#receivedBytes += chunk.length;
    this.#options.onChunk(chunk);
    // Bytes of files go to the store; only the bytes before them stay in memory.
    if (this.#body !== null) this.#bodyMemoryHandle?.add(chunk.length);
    this.#body?.append(chunk);
    if (this.#deferredFormError === null && !this.#writeToParser(chunk)) return this.#drainParserThenCheckSize();
    this.#failIfFormTooLarge();
    return null;
  }

  /**
   * Charges the sender for parsing only before the first file: after it, the bounds of an upload apply to the bytes.
   */
  #writeToParser(chunk: Buffer): boolean {
    const write = (): boolean => this.#parser.write(chunk);
    return this.#body === null ? write() : this.#options.chargeParseTime(write);
  }

  async #drainParserThenCheckSize(): Promise<void> {
    // Before the first file, the parser waits for nothing: by the next turn of the event loop, the chunk is parsed.
    if (this.#body !== null) await setImmediate();
    if (this.#body === null) await this.#parserDrained();
    this.#failIfFormTooLarge();
  }

  /** Fails a form with too many bytes. Called once it is known whether the last bytes belong to a file. */
  #failIfFormTooLarge(): void {
    const { maxBodyBytes, maxFileBytes, maxFiles } = this.#options;
    if (this.#body !== null && this.#receivedBytes > maxBodyBytes) this.#fail(maxBodySizeExceededError(maxBodyBytes));
    else if (this.#receivedBytes > maxBodyBytes + maxFiles * maxFileBytes)
      this.#fail(fieldsTooLargeError(maxBodyBytes));
  }

  /** Resolves when the parser takes more or has failed, or when the form has failed. */
  #parserDrained(): Promise<void> {
    const { signal } = this.#abortController;
    if (!this.#parser.writableNeedDrain || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const cleanUpThenResolve = (): void => {
        for (const event of ['drain', 'error']) this.#parser.off(event, cleanUpThenResolve);
        signal.removeEventListener('abort', cleanUpThenResolve);
        resolve();
      };
      for (const event of ['drain', 'error']) this.#parser.once(event, cleanUpThenResolve);
      signal.addEventListener('abort', cleanUpThenResolve, { once: true });
    });
  }

  async #finish(): Promise<void> {
    this.#nonFileTimeout.start();
    this.#parser.end();
    // The time-out runs until the parser has finished: a parser that reports nothing at the end of a body must not hold
    // the request.
    await Promise.race([this.#parsed, this.#failure]);
    this.#nonFileTimeout.stop();
    await this.#storeQueue;
    if (this.#abortController.signal.aborted) throw this.#abortController.signal.reason;
  }

  #onField(name: string, value: string, isTruncated: boolean): void {
    // Bounds the fields of a form with files. Without files, `#failIfFormTooLarge` bounds the whole body.
    this.#fieldValueBytes += Buffer.byteLength(value);
    if (isTruncated || this.#fieldValueBytes > this.#options.maxBodyBytes)
      this.#onParseError(fieldsTooLargeError(this.#options.maxBodyBytes));
    else if (!this.#fields.has(name)) this.#fields.set(name, value);
    const referencedField = FILE_REFERENCE.exec(value)?.[1];
    if (referencedField !== undefined) this.#referencedFields.add(referencedField);
  }

  #enqueueFileOrFail(field: string | undefined, stream: BusboyFileStream, name: string): void {
    // The stream of a file fails together with its form. The reader of the stream gets the error as well, so this
    // listener ignores it.
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
    // A file part without a name may be an empty one that does not count: `#storeFile` finds that out.
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
        // Browsers send an empty file without a name for a field in which nothing was chosen.
        if (await isEmpty(hashStream, signal)) {
          hashStream.resume();
          return;
        }
        this.#countFile();
        if (signal.aborted) return;
      }
      // While the store takes a file, the store itself bounds how fast the file's bytes have to come.
      this.#nonFileTimeout.pause();
      const attachment = await this.#options.store({ name, bytes: () => hashStream, signal });
      this.#files.push({ attachment, sha256: hashStream.sha256 });
      this.#nonFileTimeout.start();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Handles an error in the form, after which nothing more is parsed. */
  #onParseError(error: KlatchError): void {
    if (this.#parseErrorsFailAtOnce) this.#fail(error);
    else this.#deferredFormError ??= error;
  }

  /** Fails the form. Only the first error is reported. */
  #fail(error: unknown): void {
    this.#abortController.abort(error);
  }
}

/** A time-out that runs only while a form waits for its sender. */
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

/** Passes data through, and hashes it. */
class HashStream extends Transform {
  readonly #hash = createHash('sha256');

  /** The hash in hexadecimal digits. It can be read once, after the stream has ended. */
  get sha256(): string {
    return this.#hash.digest('hex');
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#hash.update(chunk);
    done(null, chunk);
  }
}

/** Whether a stream ends without any data. If it has data, these stay in the stream. */
async function isEmpty(stream: Readable, signal: AbortSignal): Promise<boolean> {
  if (stream.readableLength === 0 && !stream.readableEnded) await once(stream, 'readable', { signal });
  return stream.readableLength === 0;
}

function fieldsTooLargeError(maxBytes: number): KlatchError {
  const sentence = `The form is larger than ${maxBytes} bytes (http.max-body-size) without its files`;
  return new KlatchError('too_large', { sentence });
}
