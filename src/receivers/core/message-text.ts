import { clipped } from '../../callers/core/plain-text.ts';
import type { ReceiverMessage } from './receiver-format.ts';

/** The mark at the end of a text that was cut for a receiver. */
const CUT_MARK = '… (cut)';

/** The text of a message, with a line for each of its files. */
export function textWithFiles({ text, files }: ReceiverMessage): string {
  return [text, ...files.map(({ name, url }) => `${name}: ${url}`)].filter((line) => line !== '').join('\n');
}

/**
 * The sender's name as shown: the label that the post chose, for a webhook's post the group's title, else the sender's
 * name.
 */
export function shownSender({ sender, group }: ReceiverMessage): string {
  return sender.label ?? (sender.kind === 'webhook' ? group.title : sender.name);
}

/**
 * The beginning of a text, never cut within a character: at most `maxBytes` bytes in UTF-8, including the mark if it is
 * cut.
 */
export function clippedToBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes - Buffer.byteLength(CUT_MARK);
  // In UTF-8, all bytes of a character but the first begin with the bits 10.
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end) + CUT_MARK;
}

/** The beginning of a text: at most `maxLength` UTF-16 units, including the mark if it is cut. */
export const clippedText = (text: string, maxLength: number): string => clipped(text, maxLength, CUT_MARK);
