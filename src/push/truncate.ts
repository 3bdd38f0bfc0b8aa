const ELLIPSIS = '…';

/**
 * A text that takes at most so many bytes as it stands in JSON (quotes not counted). A longer one is cut between
 * characters as people see them, so that no emoji falls apart, and ends in an ellipsis. What is no valid Unicode is
 * replaced.
 */
export function truncateToJsonBytes(text: string, maxBytes: number): string {
  // Each code unit takes a byte at least: what lies behind the bound is not looked at. One more shows that it is cut.
  const isLong = text.length > maxBytes;
  const head = (isLong ? text.slice(0, maxBytes + 1) : text).toWellFormed();
  if (!isLong && jsonBytesWithoutQuotes(head) <= maxBytes) return head;
  const budget = maxBytes - Buffer.byteLength(ELLIPSIS);
  if (budget < 0) return '';
  const kept = joinWithinJsonBytes(graphemes(head), budget);
  // A letter with thousands of marks on it is one character: then it is cut inside.
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
