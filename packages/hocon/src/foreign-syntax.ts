import type { Cursor } from './cursor.ts';

/** The position of white space inside a key, and the path of keys up to there. */
export interface SpaceInKey {
  readonly offset: number;
  readonly keys: readonly string[];
}

/** A path of keys with the offset of its end. */
interface ParsedKey {
  readonly keys: readonly string[];
  readonly end: number;
  readonly spaceInKey: SpaceInKey | null;
}

const MERGE_CONFLICT_MARK = /(?:<{7}|\|{7}|={7}|>{7})(?![<|=>])/y;
const FIELD_START = /(?:"[^"\n]*"|[\w.-]+)[ \t]*(?:[=:{]|\+=)/y;

/** Fails at syntax of other formats, which the parser would otherwise report at another place, or not at all. */
export function refuseCCommentOrMergeMark(cursor: Cursor): void {
  const { text, offset } = cursor;
  const comment = text.startsWith('/*', offset) ? offset : text.startsWith('/*', offset - 1) ? offset - 1 : null;
  if (comment !== null) cursor.fail('Found /*, which begins no comment; begin each line of it with # or //.', comment);
  if (matchesAt(MERGE_CONFLICT_MARK, text, offset) && (offset === 0 || text[offset - 1] === '\n')) {
    cursor.fail('Found a mark of an unfinished merge; keep one of the two versions and remove the marks.');
  }
}

/** Fails because neither =, :, += nor { follows a key. If only the = was forgotten, the error is at the next word. */
export function failWithoutSeparator(cursor: Cursor, { keys, end, spaceInKey }: ParsedKey, newline: boolean): never {
  refuseCCommentOrMergeMark(cursor);
  if (spaceInKey?.keys[0] === '-')
    cursor.fail('Found an item behind a dash; a list is written as [a, b].', spaceInKey.offset);
  const at = spaceInKey?.offset ?? (newline ? end : cursor.offset);
  const key = (spaceInKey?.keys ?? keys).join('.');
  return cursor.failFound((quote) => ` after the key '${quote(key)}'; expected =, :, += or {.`, at);
}

/**
 * Fails if no value follows the separator that ends at `start`, and the next line is a field of its own. Otherwise the
 * parser would read that field as the value, and the message would be about that field.
 */
export function requireValueBeforeNextField(cursor: Cursor, { keys, spaceInKey }: ParsedKey, start: number): void {
  const { text, offset, char } = cursor;
  refuseCCommentOrMergeMark(cursor);
  if (char !== '' && !'}],'.includes(char) && !matchesAt(FIELD_START, text, offset)) return;
  if (spaceInKey !== null) {
    cursor.failFound(
      (quote) => ` after the key '${quote(spaceInKey.keys.join('.'))}'; expected =, :, += or {.`,
      spaceInKey.offset,
    );
  }
  cursor.offset = start;
  cursor.skipSpaceInLine();
  const comment = cursor.isAt('#') ? '#' : cursor.isAt('//') ? '//' : null;
  const isIndented = text[start - 1] === ':' && matchesAt(FIELD_START, text, offset);
  const hint =
    (comment === null ? '' : ` Text that holds ${comment} needs double quotes.`) +
    (isIndented ? ' A section is written in braces, not by indentation.' : '');
  cursor.failFound((quote) => ` after the key '${quote(keys.join('.'))}'; expected a value on this line.${hint}`);
}

/** The offset after the last character that is no white space. */
export function offsetBeforeSpace({ text, offset }: Cursor): number {
  let end = offset;
  while (end > 0 && text.charAt(end - 1).trim() === '') end--;
  return end;
}

function matchesAt(pattern: RegExp, text: string, offset: number): boolean {
  pattern.lastIndex = offset;
  return pattern.test(text);
}
