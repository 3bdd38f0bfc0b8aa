import { holdsKey } from './value-types.ts';
import { settingEntries } from './schema.ts';

/** Words beside which a secret stands, in keys that are misspelt too, and in remarks. */
const SENSITIVE = /pas+w|pwd|secret|token|key|auth|private|credential/i;
/** Credentials, paths, queries and fragments of addresses; `${?NAME}` is none. */
const ADDRESS_SECRET = /@|(?<!\$\{)\?|#|:\/\/[^/\s"]*\/[^\s"]/;
const MERGE_MARK = /^(?:<{7}|\|{7}|={7}|>{7})/;
const OPENING = /^[\s{}[\],"]+/;
const NAME = String.raw`[\w.-]+`;

interface Names {
  /** Keys by each end of their path (`http.port`, `port`), where none of that name may hold a secret. */
  readonly quotable: ReadonlySet<string>;
  /** Sections by each end of their path. */
  readonly sections: ReadonlySet<string>;
  /** Every word of a key's path. */
  readonly words: ReadonlySet<string>;
}

let known: Names | null = null;

function names(): Names {
  known ??= collectNames();
  return known;
}

function collectNames(): Names {
  const quotable = new Set<string>();
  const others = new Set<string>();
  const sections = new Set<string>();
  const words = new Set<string>();
  for (const [key, { kind }] of settingEntries()) {
    const parts = key.split('.');
    for (const word of parts) words.add(word);
    for (const end of endsOf(parts)) (kind.quotable ? quotable : others).add(end);
    for (let length = 1; length < parts.length; length++) {
      for (const end of endsOf(parts.slice(0, length))) sections.add(end);
    }
    for (const [name, field] of Object.entries(kind.items?.fields ?? {})) {
      words.add(name);
      (field.kind.quotable ? quotable : others).add(name);
    }
  }
  return { quotable: new Set([...quotable].filter((name) => !others.has(name))), sections, words };
}

function endsOf(parts: readonly string[]): string[] {
  return parts.map((_, index) => parts.slice(index).join('.'));
}

/** Whether a text is a single sign, or made of words of our own keys: then it may be repeated wherever it stands. */
export function isKnownToken(text: string): boolean {
  if (/^[^\p{L}\p{N}]$/u.test(text)) return true;
  return text.split(/[.\s]+/).every((word) => word === '' || names().words.has(word));
}

/** A file of a configuration by its lines, and which of them may be shown. */
export class SourceFile {
  readonly lines: readonly string[];
  /** Lines that begin within a text in triple quotes. */
  readonly #quoted = new Set<number>();

  constructor(text: string) {
    this.lines = text.replace(/^\uFEFF/, '').split('\n');
    let quotes = 0;
    for (const [index, line] of this.lines.entries()) {
      if (quotes % 2 === 1) this.#quoted.add(index);
      quotes += line.split('"""').length - 1;
    }
  }

  /**
   * Whether a line (from 1) can be shown: it begins with a key that is known to be harmless, and nothing on it or before
   * it suggests a secret. A guess that errs on the side of silence.
   */
  isPublic(number: number): boolean {
    const index = number - 1;
    const line = this.lines[index];
    if (line === undefined) return false;
    if (MERGE_MARK.test(line)) return true;
    // The value of the key before, whichever it is, stands here.
    return !this.#quoted.has(index) && !/[=:[(]\s*$/.test(this.#lineBefore(index)) && isPublicText(line);
  }

  #lineBefore(index: number): string {
    for (let before = index - 1; before >= 0; before--) {
      const line = this.lines[before] ?? '';
      if (!/^\s*(?:#|\/\/|$)/.test(line)) return line;
    }
    return '';
  }
}

/** Whether a line, or the beginning of one, can be shown as far as it can be told without the lines before it. */
export function isPublicText(text: string): boolean {
  const content = text.replace(OPENING, '');
  if (content === '') return true;
  if (SENSITIVE.test(content) || ADDRESS_SECRET.test(content) || holdsKey(content)) return false;
  const unquoted = content.replaceAll('"', ' ');
  const first = new RegExp(`^(${NAME})[ \\t]*(\\{|$)?`).exec(unquoted);
  if (first === null || !isHarmlessName(first[1] ?? '', first[2] !== undefined)) return false;
  const inner = unquoted.matchAll(new RegExp(`(${NAME})[ \\t]*(\\+?=|:(?!//)|\\{)`, 'g'));
  return [...inner].every(([, name = '', separator]) => isHarmlessName(name, separator === '{'));
}

/** `opens`: a section may stand here; in the place of a value a section's name says nothing about it. */
function isHarmlessName(name: string, opens: boolean): boolean {
  const { quotable, sections } = names();
  const path = name.replace(/\.$/, '');
  return quotable.has(path) || (opens && sections.has(path));
}
