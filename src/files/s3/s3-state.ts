import * as z from 'zod';
import { NotInStoreError, type UploadProgress, type UploadState } from '../store.ts';

/** The most parts that any store accepts in one upload. */
const MAX_PARTS = 10_000;
const MIB = 1024 * 1024;
/** The smallest part that Klatch sends. S3 requires at least 5 MiB for all parts but the last. */
const MIN_PART_BYTES = 8 * MIB;

/**
 * The state of an upload to S3. All its parts have the same size, except for the last one. Bytes that do not fill a
 * part are in an object of their own, the remainder, since S3 accepts no small parts. The next append begins with the
 * remainder.
 */
const uploadStateSchema = z.object({
  partBytes: z.int().positive(),
  /** The store's id of the multipart upload; null: none was begun, so no part is stored. */
  uploadId: z.string().nullable(),
  /** The store's ETag of each stored part, in order. */
  etags: z.array(z.string()).readonly(),
  /** The length of the remainder in bytes. */
  remainder: z.int().nonnegative(),
  /**
   * The name of the current remainder; null: there is none. A new remainder gets another name, and so does not
   * overwrite this one.
   */
  remainderName: z.string().nullable(),
  /** True if the upload ever had a remainder, whose object may still exist. */
  hasRemainder: z.boolean(),
  /** True if the last bytes are stored too: as the last part, or as a single object with the whole file. */
  isComplete: z.boolean(),
});

export type S3UploadState = z.infer<typeof uploadStateSchema>;

/** The state of an upload of which nothing is stored yet. */
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

/**
 * Checks the state from an upload's row. Throws NotInStoreError for a state in the form of another kind of store, in
 * which the upload was begun.
 */
export function parseUploadState(state: UploadState): S3UploadState {
  const parsed = uploadStateSchema.safeParse(state);
  if (parsed.success) return parsed.data;
  throw new NotInStoreError('the upload was begun in another store');
}

/** Like `parseUploadState`, but also throws NotInStoreError if the bytes in the state do not add up to `received`. */
export function parseProgress({ receivedBytes: received, state: given }: UploadProgress): S3UploadState {
  const state = parseUploadState(given);
  const { etags, partBytes, remainder, isComplete } = state;
  if (isComplete || etags.length * partBytes + remainder === received) return state;
  throw new NotInStoreError('the upload does not stand where its row says');
}

/**
 * The size of the parts in bytes, in whole MiB. It is so large that a file of `maxFileBytes` needs no more than
 * `MAX_PARTS` parts.
 */
export function partBytesFor(maxFileBytes: number): number {
  return Math.max(MIN_PART_BYTES, Math.ceil(maxFileBytes / MAX_PARTS / MIB) * MIB);
}
