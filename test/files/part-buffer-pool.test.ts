import { randomBytes } from 'node:crypto';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { KlatchError } from '../../src/errors.ts';
import { TOTAL_PART_MEMORY_BYTES, PartBufferPool } from '../../src/files/part-buffer-pool.ts';
import { S3Store } from '../../src/files/s3/s3-store.ts';
import { StoreUnavailableError, type UploadProgress } from '../../src/files/store.ts';
import { HANG_MS } from '../support/eventually.ts';
import { S3Server } from './s3-server.ts';
import { newKey, S3_TEST_BOUNDS } from './store-fixture.ts';

const KIB = 1024;
/** The size of parts of which the pool's memory holds exactly two. */
const TWO = TOTAL_PART_MEMORY_BYTES / 2;

describe('PartSlots', () => {
  test('are bounded, and who waits too long for one is refused', async () => {
    const slots = new PartBufferPool(TWO, 50);
    const first = await slots.take(null);
    await slots.take(null);
    await expect(slots.take(null)).rejects.toBeInstanceOf(StoreUnavailableError);
    const waiting = slots.take(null);
    first.release();
    const second = await waiting;
    // The released buffer went to the waiting caller, so no other one is free.
    await expect(slots.take(null)).rejects.toBeInstanceOf(StoreUnavailableError);
    second.release();
    await slots.take(null);
  });

  test('are called back from who has filled one for the longest, as soon as somebody has waited for most of its time', async () => {
    const slots = new PartBufferPool(TWO, 3_000);
    const called: string[] = [];
    const first = await slots.take(() => called.push('first'));
    const second = await slots.take(() => {
      called.push('second');
      second.release();
    });
    // The upload with a full part waits for the store, so it is not asked to give its buffer back.
    first.markFull();
    const third = await slots.take(() => called.push('third'));
    expect(called).toEqual(['second']);
    third.release();
    first.release();
    await Promise.all([slots.take(null), slots.take(null)]);
  });

  test('are not called back from who took one after the wait began', async () => {
    const slots = new PartBufferPool(TWO, 500);
    const [first] = [await slots.take(null), await slots.take(null)];
    let isCalled = false;
    const earlier = slots.take(() => (isCalled = true));
    const later = slots.take(null);
    first.release();
    await earlier;
    await expect(later).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(isCalled).toBe(false);
  });
});

describe('uploads that trickle into a bucket', () => {
  let server: S3Server;
  let store: S3Store;

  beforeAll(async () => {
    server = await S3Server.start();
    // The parts are so large that the memory for parts holds two.
    store = new S3Store(server.config({}), {
      maxFileBytes: 10_000 * TWO,
      bounds: S3_TEST_BOUNDS,
      reservationTimeoutMs: HANG_MS,
    });
  });
  afterAll(async () => {
    await store.stop();
    await server.stop();
  });

  test('make room for others, keep what came of them, and go on', async () => {
    const trickling = [await trickle(), await trickle()];
    const key = newKey();
    const bytes = randomBytes(600 * KIB);
    const begun = { receivedBytes: 0, state: await store.prepareStoreForUpload(key) };
    const source = { bytes: Readable.from([bytes]), onProgress: () => {}, isEndOfFile: true };
    await store.finish(key, await store.append(key, begun, source));
    expect((await buffer(await store.read(key, null))).equals(bytes)).toBe(true);

    // The first upload had to give its buffer up; the other one continued.
    const [cut, left] = trickling;
    const failure = await cut!.ended;
    expect(failure).toBeInstanceOf(KlatchError);
    expect((failure as KlatchError).message).toContain('Other uploads waited for this one');
    expect(cut!.reached().receivedBytes).toBe(300 * KIB);
    const rest = { bytes: Readable.from([Buffer.alloc(KIB)]), onProgress: () => {}, isEndOfFile: true };
    await store.finish(cut!.key, await store.append(cut!.key, cut!.reached(), rest));
    expect(await store.size(cut!.key)).toBe(301 * KIB);
    left!.source.end();
    expect(await left!.ended).toBeNull();
  });

  /** Begins an upload of which 300 KiB arrive and then nothing more, so that it holds a buffer. */
  async function trickle() {
    const key = newKey();
    let progress: UploadProgress = { receivedBytes: 0, state: await store.prepareStoreForUpload(key) };
    const source = new PassThrough({ highWaterMark: 1 });
    const appending = store.append(key, progress, { bytes: source, onProgress: (reached) => (progress = reached) });
    const ended = appending.then(
      () => null,
      (error: unknown) => error,
    );
    for (let n = 0; n < 3; n += 1)
      await new Promise<void>((done) => source.write(Buffer.alloc(100 * KIB), () => done()));
    // The store has read the bytes; in the next turn of the event loop it adds them, and takes a buffer for them.
    await new Promise((done) => setImmediate(done));
    return { key, source, ended, reached: () => progress };
  }
});
