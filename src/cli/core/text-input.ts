import { exitCodes } from './exit-codes.ts';
import { CommandError } from './failure.ts';

/**
 * The most bytes that are read: the webhook's limit for one request. The server itself limits the length of messages.
 */
const MAX_INPUT_BYTES = 1024 * 1024;

/** Reads standard input to its end, as one text without its last line break. Rejects with CommandError. */
export async function readText(input: NodeJS.ReadStream): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_INPUT_BYTES) {
      const sentence = 'the text on standard input is longer than 1 MiB: send less at a time';
      throw new CommandError(exitCodes.operationFailed, sentence);
    }
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)).replace(/\r?\n$/, '');
  } catch (cause) {
    const sentence = 'the text on standard input is not valid UTF-8: convert it first, for instance with iconv';
    throw new CommandError(exitCodes.operationFailed, sentence, { cause });
  }
}
