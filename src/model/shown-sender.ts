import { holdsInvisible, removeInvisible } from './invisible-text.ts';

const MAX_LABEL_CODE_POINTS = 80;
/** The UTF-16 units of a label that are read, for each character of the longest label that is shown. */
const LABEL_SCAN_FACTOR = 10;
const MAX_ICON_URL_LENGTH = 2_048;

/**
 * A label for a message, cleaned and cut; null if nothing visible is left. No label is a reason to refuse a message.
 */
export function labelOf(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const label = removeInvisible(value.slice(0, MAX_LABEL_CODE_POINTS * LABEL_SCAN_FACTOR)).trim();
  return label === '' ? null : Array.from(label).slice(0, MAX_LABEL_CODE_POINTS).join('');
}

/** Clients may open or fetch the icon, so anything but an address of the web is left out. */
export function iconUrlOf(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MAX_ICON_URL_LENGTH || !/^https?:\/\/[^\s\\]+$/i.test(value))
    return null;
  return !holdsInvisible(value) && URL.canParse(value) ? value : null;
}
