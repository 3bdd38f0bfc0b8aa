import type { Mood } from './message-form.ts';
import { numberOf } from './values.ts';

const MAX_RGB = 0xff_ff_ff;

/**
 * The mood for a colour that is given as a number. Null if the value is no colour, or is 0, which programs send for "no
 * colour".
 */
export function colourOfNumber(value: unknown): Mood | null {
  const rgb = numberOf(value);
  const isColour = rgb !== null && Number.isInteger(rgb) && rgb > 0 && rgb <= MAX_RGB;
  return isColour ? `#${rgb.toString(16).padStart(6, '0')}` : null;
}

/** The mood for a colour in three or six hexadecimal digits, with `#` or without; null for every other text. */
export function colourOfHex(text: string): Mood | null {
  const digits = /^#?([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(text.trim())?.[1]?.toLowerCase();
  if (digits === undefined) return null;
  return `#${digits.length === 3 ? digits.replaceAll(/./g, '$&$&') : digits}`;
}
