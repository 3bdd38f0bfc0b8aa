import { open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as z from 'zod';

const FILE = 'witness.json';
/** The fields of a WitnessedHead (`storage/messages/witness.ts`), in its order. */
const witnessRowSchema = z.tuple([z.int(), z.int(), z.int(), z.int(), z.int(), z.int()]);
const witnessFileSchema = z.object({
  format: z.literal(1),
  /** The store id of the database that the other fields belong to. */
  database: z.string(),
  log_epoch: z.int(),
  heads: z.array(witnessRowSchema),
});

/**
 * The numbers of one conversation, in this order:
 * - its id
 * - its newest seq, and the time of the message with this seq
 * - its newest rev, the seq of the message that this rev changed, and the time of that change
 *
 * Times are in ms of Unix time.
 */
export type WitnessRow = z.infer<typeof witnessRowSchema>;

/** The newest changes that a node knew to be committed when it last wrote the file. */
export interface WitnessFileContent {
  readonly storeId: string;
  readonly logEpoch: number;
  readonly heads: readonly WitnessRow[];
}

/** The witness file exists but cannot be used. */
export class BrokenWitnessFileError extends Error {
  override readonly name = 'BrokenWitnessFileError';
}

/** Reads the witness file; null: there is no file yet. Rejects with BrokenWitnessFileError. */
export async function readWitnessFile(dataDir: string): Promise<WitnessFileContent | null> {
  const path = join(dataDir, FILE);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new BrokenWitnessFileError(`${path} cannot be read`, { cause: error });
  }
  try {
    const { database, log_epoch: logEpoch, heads } = witnessFileSchema.parse(JSON.parse(text));
    return { storeId: database, logEpoch, heads };
  } catch (error) {
    throw new BrokenWitnessFileError(`${path} is broken`, { cause: error });
  }
}

/**
 * Replaces the witness file: after a crash or a loss of power it has the whole old or the whole new content. Calls must
 * not overlap.
 */
export async function writeWitnessFile(
  dataDir: string,
  { storeId: database, logEpoch, heads }: WitnessFileContent,
): Promise<void> {
  const path = join(dataDir, FILE);
  const file = await open(`${path}.new`, 'w', 0o600);
  try {
    await file.writeFile(`${JSON.stringify({ format: 1, database, log_epoch: logEpoch, heads })}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
