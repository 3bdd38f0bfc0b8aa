const ELLIPSIS = '…';

/**
 * A text that takes at most `maxBytes` in JSON (quotes not counted). A longer text is cut between graphemes, so that no
 * emoji falls apart, and ends in an ellipsis. Invalid Unicode is replaced.
 */
export function truncateToJsonBytes(text: string, maxBytes: number): string {
  // Each code unit takes at least one byte, so the rest after the bound is skipped. One more code unit marks the text
  // as cut.
  const isLong = text.length > maxBytes;
  const head = (isLong ? text.slice(0, maxBytes + 1) : text).toWellFormed();
  if (!isLong && jsonBytesWithoutQuotes(head) <= maxBytes) return head;
  const budget = maxBytes - Buffer.byteLength(ELLIPSIS);
  if (budget < 0) return '';
  const kept = joinWithinJsonBytes(graphemes(head), budget);
  // A letter with thousands of marks is one grapheme: such a text is cut inside it.
  return `${kept === '' ? joinWithinJsonBytes(head, budget) : kept}${ELLIPSIS}`;
}

/** Bytes of a text in JSON, quotes not counted. */
export function jsonBytesWithoutQuotes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2;
}

function* graphemes(text: string): Generator<string> {
  for (const { segment } of new Intl.Segmenter().segment(text)) yield segment;
}

function joinWithinJsonBytes(parts: Iterable<string>, maxBytes: number): string {
  let kept = '';
  let bytes = 0;
  for (const part of parts) {
    bytes += jsonBytesWithoutQuotes(part);
    if (bytes > maxBytes) break;
    kept += part;
  }
  return kept;
}
