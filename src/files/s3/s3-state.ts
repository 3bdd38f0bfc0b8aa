import * as z from 'zod';
import { NotInStoreError, type UploadProgress, type UploadState } from '../store.ts';

/** The most parts that any store accepts in one upload. */
const MAX_PARTS = 10_000;
const MIB = 1024 * 1024;
/** Stores require at least 5 MiB. */
const MIN_PART_BYTES = 8 * MIB;

/**
 * An upload to S3. Its parts have one size, except for the last one. The bytes after the last part are in an object of
 * their own, the tail, since a store accepts no small parts. The next append begins with the tail.
 */
const uploadStateSchema = z.object({
  partBytes: z.int().positive(),
  /** The store's id of the upload; null: no part is stored. */
  uploadId: z.string().nullable(),
  /** The store's ETag of each part, in order. */
  etags: z.array(z.string()).readonly(),
  /** The length of the tail in bytes. */
  remainder: z.int().nonnegative(),
  /** The name of the current tail, since a new tail does not overwrite the recorded one; null: there is no tail. */
  remainderName: z.string().nullable(),
  /** Whether an object with a tail exists or existed. */
  hasRemainder: z.boolean(),
  /** Whether the last bytes are stored too: as the last part, or as the whole file. */
  isComplete: z.boolean(),
});

export type S3UploadState = z.infer<typeof uploadStateSchema>;

/** The initial state of an upload. */
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

/** Throws NotInStoreError for a state in another store's form: the upload was begun in that store. */
export function parseUploadState(state: UploadState): S3UploadState {
  const parsed = uploadStateSchema.safeParse(state);
  if (parsed.success) return parsed.data;
  throw new NotInStoreError('the upload was begun in another store');
}

/**
 * Like `parseUploadState`, and throws NotInStoreError if the state does not fit `received`, from which the upload
 * continues.
 */
export function parseProgress({ received, state: given }: UploadProgress): S3UploadState {
  const state = parseUploadState(given);
  const { etags, partBytes, remainder, isComplete } = state;
  if (isComplete || etags.length * partBytes + remainder === received) return state;
  throw new NotInStoreError('the upload does not stand where its row says');
}

/** The part size, in whole MiB: large enough that the largest file fits into the parts that a store accepts. */
export function partBytesFor(maxFileBytes: number): number {
  return Math.max(MIN_PART_BYTES, Math.ceil(maxFileBytes / MAX_PARTS / MIB) * MIB);
}
