const HAS_LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;
/** The beginning of the first word is compared, up to this many UTF-16 units; no trigger is longer. */
const MAX_WORD_LENGTH = 1_024;
const FIRST_WORD = /^\S+/;

/**
 * The first of these triggers that a text begins with; null: none. A trigger with a letter or digit must equal the
 * whole first word, including case. Any other trigger, such as `!`, must begin the first word.
 */
export function findTrigger(text: string, triggers: readonly string[]): string | null {
  const word = FIRST_WORD.exec(text.trimStart().slice(0, MAX_WORD_LENGTH))?.[0] ?? '';
  const matches = (trigger: string): boolean =>
    HAS_LETTER_OR_DIGIT.test(trigger) ? word === trigger : word.startsWith(trigger);
  return triggers.find(matches) ?? null;
}
