import * as z from 'zod';
import { NotInStoreError, type Progress, type UploadState } from '../store.ts';

/** More than these no store takes in one upload. */
const MAX_PARTS = 10_000;
const MIB = 1024 * 1024;
/** The least that stores take is 5 MiB. */
const PART_BYTES = 8 * MIB;

/**
 * An upload to S3. Its parts are of one size, except for the last one. What is behind the last part waits as an object of
 * its own, the tail, since a store takes no small parts; the next append begins with it.
 */
const stateSchema = z.object({
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

export type S3State = z.infer<typeof stateSchema>;

/** Where an upload begins. */
export function newState(partBytes: number): S3State {
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
export function readState(state: UploadState): S3State {
  const parsed = stateSchema.safeParse(state);
  if (parsed.success) return parsed.data;
  throw new NotInStoreError('the upload was begun in another store');
}

/** The same, of an upload that is to go on from `received`. */
export function readProgress({ received, state: given }: Progress): S3State {
  const state = readState(given);
  const { etags, partBytes, remainder, isComplete } = state;
  if (isComplete || etags.length * partBytes + remainder === received) return state;
  throw new NotInStoreError('the upload does not stand where its row says');
}

/** Of parts, so that the largest file fits into as many as a store takes. Whole MiB. */
export function partBytesFor(maxFileBytes: number): number {
  return Math.max(PART_BYTES, Math.ceil(maxFileBytes / MAX_PARTS / MIB) * MIB);
}
