import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { checkStorePage } from '../../files/check-store.ts';
import { NotInStoreError, StoreUnavailableError } from '../../files/store.ts';
import { defineOperation } from '../core/operation.ts';

const findingSchema = z.object({
  problem: z
    .enum(['stray', 'lost', 'size', 'again', 'upload', 'usage'])
    .describe(
      'stray: a file without a row. lost: a row whose file is gone. size: a file of another length than its row says. again: a file that was lost and is there. upload: what is left of an upload. usage: a wrong count of what files take.',
    ),
  file: z.string().nullable().describe("The file's id; null for counts."),
  bytes: z.int().nullable().describe('Bytes that the store has of it; null: none, or not known.'),
  repaired: z.boolean().describe('Whether it was corrected.'),
});

export const checkFiles = defineOperation({
  name: 'files.check',
  summary: 'Compare a page of the database with the store of files; with `repair`, correct the differences.',
  input: z.strictObject({
    repair: z.boolean().default(false).describe('Correct the differences.'),
    after: z
      .string()
      .max(1_000)
      .nullable()
      .default(null)
      .describe('`next` of the page before; null: from the beginning on.'),
  }),
  output: z.object({
    store: z.string().describe('Description of the store, for people.'),
    files: z.int().describe('Files and uploads in the store that were looked at.'),
    uploads: z.int().describe('Unfinished uploads in the store that were looked at.'),
    found: z.array(findingSchema).describe('The differences.'),
    empty: z
      .boolean()
      .describe(
        'The store has no file at all, so that lost ones were not marked: it may be the wrong one, or not mounted.',
      ),
    next: z.string().nullable().describe('Pass it to get the next page; null: this is the last page.'),
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
      // The administrator gets a sentence that says what is wrong with the store.
      if (!(error instanceof StoreUnavailableError || error instanceof NotInStoreError)) throw error;
      throw new KlatchError('storage_unavailable', {
        sentence: `The store of files is away: ${error.message}`,
        cause: error,
      });
    }
  },
});
