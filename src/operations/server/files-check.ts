import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { checkStorePage } from '../../files/check-store.ts';
import { NotInStoreError, StoreUnavailableError } from '../../files/store.ts';
import { defineOperation } from '../core/operation.ts';

const findingSchema = z.object({
  /**
   * `stray`: a file without a row. `lost`: a row whose file is missing. `size`: a file of another length than its row
   * says. `again`: a file that was lost and is present. `upload`: the rest of an upload. `usage`: a wrong count of the
   * space that files take.
   */
  problem: z.enum(['stray', 'lost', 'size', 'again', 'upload', 'usage']),
  /** The file's id; null for counts. */
  file: z.string().nullable(),
  /** Bytes that the store has of it; null: none, or unknown. */
  bytes: z.int().nullable(),
  repaired: z.boolean(),
});

export const checkFiles = defineOperation({
  name: 'files.check',
  summary: 'Compare a page of the database with the store of files, and repair what does not fit if it is asked for.',
  input: z.strictObject({
    repair: z.boolean().default(false),
    /** `next` of the previous page; null: from the beginning. */
    after: z.string().max(1_000).nullable().default(null),
  }),
  output: z.object({
    /** A description of the store, for people. */
    store: z.string(),
    /** Files and uploads in the store that were checked. */
    files: z.int(),
    uploads: z.int(),
    found: z.array(findingSchema),
    /** The store has no file at all, so that lost ones were not marked: it may be the wrong store, or not mounted. */
    empty: z.boolean(),
    /** The `after` of the next page; null: there is none. */
    next: z.string().nullable(),
  }),
  who: 'system',
  scope: null,
  errors: ['storage_unavailable'],
  run: async ({ database, fileStore: store }, { repair, after }) => {
    try {
      const page = await checkStorePage({ pool: database.general, store }, { after, repair: repair ? 'all' : 'none' });
      const { findings, files, uploads, hasSkippedMarkingLost: isEmpty, next } = page;
      return { store: store.description, files, uploads, found: [...findings], empty: isEmpty, next };
    } catch (error) {
      // The error tells the administrator what to do.
      if (!(error instanceof StoreUnavailableError || error instanceof NotInStoreError)) throw error;
      throw new KlatchError('storage_unavailable', {
        sentence: `The store of files is away: ${error.message}`,
        cause: error,
      });
    }
  },
});
