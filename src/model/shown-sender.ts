import { holdsInvisible, removeInvisible } from './invisible-text.ts';

const MAX_LABEL_CODE_POINTS = 80;
/** Of a sender's text, at most this many times the length of the longest label is read, in UTF-16 units. */
const LABEL_SCAN_FACTOR = 10;
const MAX_ICON_URL_LENGTH = 2_048;

/**
 * A label for a message, cleaned and cut; null if nothing visible is left. A message is never refused because of its
 * label.
 */
export function labelOf(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const label = removeInvisible(value.slice(0, MAX_LABEL_CODE_POINTS * LABEL_SCAN_FACTOR)).trim();
  return label === '' ? null : Array.from(label).slice(0, MAX_LABEL_CODE_POINTS).join('');
}

/** The address of a sender's icon. Null for anything but a web address, since clients may open or fetch it. */
export function iconUrlOf(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MAX_ICON_URL_LENGTH || !/^https?:\/\/[^\s\\]+$/i.test(value))
    return null;
  return !holdsInvisible(value) && URL.canParse(value) ? value : null;
}
