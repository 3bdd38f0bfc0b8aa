import { holdsInvisible, removeInvisible } from './invisible-text.ts';

const MAX_LABEL_CODE_POINTS = 80;
/** UTF-16 units of a longer label that are read, for each character that is kept. */
const LABEL_SCAN_FACTOR = 10;
const MAX_ICON_URL_LENGTH = 2_048;

/** A label is no reason to refuse a message: one that cannot be a name is left out, and others are cleaned and cut. */
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
