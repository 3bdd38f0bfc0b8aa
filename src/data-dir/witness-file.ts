import { open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as z from 'zod';

const FILE = 'witness.json';
/** Conversation, newest seq and its moment, newest rev, which message that changed, and its moment. */
const rowSchema = z.tuple([z.int(), z.int(), z.int(), z.int(), z.int(), z.int()]);
const contentSchema = z.object({
  format: z.literal(1),
  /** Which database the rest is about: its store id. */
  database: z.string(),
  log_epoch: z.int(),
  heads: z.array(rowSchema),
});

/** Of a conversation: its id, newest seq, when that was sent, newest rev, what that changed, and when. */
export type WitnessRow = z.infer<typeof rowSchema>;

/** What a node knew to be committed when it wrote the file last. */
export interface WitnessFileContent {
  readonly database: string;
  readonly logEpoch: number;
  readonly heads: readonly WitnessRow[];
}

/** The file is there and cannot be used. */
export class BrokenWitnessFileError extends Error {
  override readonly name = 'BrokenWitnessFileError';
}

/** Null: there is none yet. Rejects with BrokenWitnessFileError. */
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
    const { database, log_epoch: logEpoch, heads } = contentSchema.parse(JSON.parse(text));
    return { database, logEpoch, heads };
  } catch (error) {
    throw new BrokenWitnessFileError(`${path} is broken`, { cause: error });
  }
}

/** At every instant the old or the new content is there whole, after a loss of power too. One call at a time. */
export async function writeWitnessFile(
  dataDir: string,
  { database, logEpoch, heads }: WitnessFileContent,
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
