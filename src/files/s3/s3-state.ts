import * as z from 'zod';
import { NotInStoreError, type UploadProgress, type UploadState } from '../store.ts';

/** More than these no store takes in one upload. */
const MAX_PARTS = 10_000;
const MIB = 1024 * 1024;
/** The least that stores take is 5 MiB. */
const MIN_PART_BYTES = 8 * MIB;

/**
 * An upload to S3. Its parts are of one size, except for the last one. What is behind the last part waits as an object of
 * its own, the tail, since a store takes no small parts; the next append begins with it.
 */
const uploadStateSchema = z.object({
  partBytes: z.int().positive(),
  /** The store's name for the upload; null: no part is stored. */
  uploadId: z.string().nullable(),
  /** What the store calls each part, in order. */
  etags: z.array(z.string()).readonly(),
  /** Bytes of the tail that count. */
  remainder: z.int().nonnegative(),
  /** Which tail they are in: a new one does not take the place of that which is noted. Null: in none. */
  remainderName: z.string().nullable(),
  /** There is, or was, an object with a tail. */
  hasRemainder: z.boolean(),
  /** The last bytes are stored as well: as the last part, or as the file itself. */
  isComplete: z.boolean(),
});

export type S3UploadState = z.infer<typeof uploadStateSchema>;

/** Where an upload begins. */
export function newUploadState(partBytes: number): S3UploadState {
  return {
    partBytes,
    uploadId: null,
    etags: [],
    remainder: 0,
    remainderName: null,
    hasRemainder: false,
    isComplete: false,
  };
}

/** Throws NotInStoreError for a state that is none of this store's: it was begun in another one. */
export function parseUploadState(state: UploadState): S3UploadState {
  const parsed = uploadStateSchema.safeParse(state);
  if (parsed.success) return parsed.data;
  throw new NotInStoreError('the upload was begun in another store');
}

/** The same, of an upload that is to go on from `received`. */
export function parseProgress({ received, state: given }: UploadProgress): S3UploadState {
  const state = parseUploadState(given);
  const { etags, partBytes, remainder, isComplete } = state;
  if (isComplete || etags.length * partBytes + remainder === received) return state;
  throw new NotInStoreError('the upload does not stand where its row says');
}

/** Of parts, so that the largest file fits into as many as a store takes. Whole MiB. */
export function partBytesFor(maxFileBytes: number): number {
  return Math.max(MIN_PART_BYTES, Math.ceil(maxFileBytes / MAX_PARTS / MIB) * MIB);
}
