const ELLIPSIS = '…';

/**
 * Cuts a text so that it takes at most `maxBytes` in JSON, without the quotes. Cuts between graphemes, so that no emoji
 * is split, and appends an ellipsis. Replaces invalid Unicode.
 */
export function truncateToJsonBytes(text: string, maxBytes: number): string {
  // Each UTF-16 unit takes at least one byte, so no unit after `maxBytes` can fit. One unit more is kept, so that the
  // text still counts as too long.
  const isLong = text.length > maxBytes;
  const textPrefix = (isLong ? text.slice(0, maxBytes + 1) : text).toWellFormed();
  if (!isLong && jsonBytesWithoutQuotes(textPrefix) <= maxBytes) return textPrefix;
  const budgetBytes = maxBytes - Buffer.byteLength(ELLIPSIS);
  if (budgetBytes < 0) return '';
  const kept = joinWithinJsonBytes(graphemes(textPrefix), budgetBytes);
  // If not even the first grapheme fits (a letter with thousands of marks, say), the text is cut inside that grapheme.
  return `${kept === '' ? joinWithinJsonBytes(textPrefix, budgetBytes) : kept}${ELLIPSIS}`;
}

/** The bytes that a text takes in JSON, without the quotes. */
export function jsonBytesWithoutQuotes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2;
}

function* graphemes(text: string): Generator<string> {
  for (const { segment } of new Intl.Segmenter().segment(text)) yield segment;
}

function joinWithinJsonBytes(parts: Iterable<string>, maxBytes: number): string {
  let joined = '';
  let bytes = 0;
  for (const part of parts) {
    bytes += jsonBytesWithoutQuotes(part);
    if (bytes > maxBytes) break;
    joined += part;
  }
  return joined;
}
