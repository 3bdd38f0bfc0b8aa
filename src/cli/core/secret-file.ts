import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import type { CommandContext } from './context.ts';
import { exitCodes } from './exit-codes.ts';
import { CommandError } from './failure.ts';

/** The largest file that is read as a secret. A larger file certainly contains something else. */
const MAX_SECRET_BYTES = 65_536;

/** Reads the secret from a file, or from standard input for `-`. Throws a CommandError that names the option. */
export async function readSecretFile(context: CommandContext, option: string, file: string): Promise<string> {
  try {
    const secret = await readBounded(file === '-' ? context.input : createReadStream(file));
    if (secret === '') throw new Error('there is no secret in it');
    return secret;
  } catch (error) {
    throw new CommandError(exitCodes.usage, `${option}: ${unreadableReason(file, error)}`, { cause: error });
  }
}

function unreadableReason(file: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return `${file} does not exist`;
  if (code === 'EISDIR') return `${file} is a folder`;
  if (code === 'EACCES') return `this user may not read ${file}`;
  return message;
}

/**
 * Reads a stream to its end as text, without the line break that editors add at the end of a file. Rejects if the
 * stream has more than MAX_SECRET_BYTES.
 */
async function readBounded(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_SECRET_BYTES) throw new Error('it is too large for a secret');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '');
}
