import { clipped } from '../../callers/core/plain-text.ts';
import type { ReceiverMessage } from './receiver-format.ts';

/** Behind a text that a receiver does not take whole. */
const CUT_MARK = '… (cut)';

/** The text with a line for each file. */
export function textWithFiles({ text, files }: ReceiverMessage): string {
  return [text, ...files.map(({ name, url }) => `${name}: ${url}`)].filter((line) => line !== '').join('\n');
}

/** The name that a message is shown under: the one that its post gave itself, the sender's, or for a webhook its group's. */
export function shownSender({ sender, group }: ReceiverMessage): string {
  return sender.label ?? (sender.kind === 'webhook' ? group.title : sender.name);
}

/** The beginning of a text that has at most so many bytes in UTF-8, the mark included. A character is cut as a whole. */
export function clippedToBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes - Buffer.byteLength(CUT_MARK);
  // Bytes within a character begin with the bits 10.
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end) + CUT_MARK;
}

/** The beginning that has at most so many UTF-16 units, the mark included. */
export const clippedText = (text: string, maxLength: number): string => clipped(text, maxLength, CUT_MARK);
