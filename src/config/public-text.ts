import { containsPemKey } from './value-types.ts';
import { settingEntries } from './schema.ts';

/** Words that suggest a secret in the same line, also in misspelt keys and in comments. */
const SENSITIVE = /pas+w|pwd|secret|token|key|auth|private|credential/i;
/** The parts of a URL that may be secret: credentials, path, query and fragment. `${?NAME}` does not match. */
const ADDRESS_SECRET = /@|(?<!\$\{)\?|#|:\/\/[^/\s"]*\/[^\s"]/;
const MERGE_MARK = /^(?:<{7}|\|{7}|={7}|>{7})/;
const LEADING_PUNCTUATION = /^[\s{}[\],"]+/;
const NAME = String.raw`[\w.-]+`;

interface KnownNames {
  /**
   * The names of keys that contain no secret, with and without their sections (`http.port`, `port`). A name that is
   * also a suffix of a secret key is left out.
   */
  readonly nonSecretNames: ReadonlySet<string>;
  /** The names of sections, with and without the sections around them. */
  readonly sectionNames: ReadonlySet<string>;
  /** All words in the paths of keys. */
  readonly pathWords: ReadonlySet<string>;
}

let cachedNames: KnownNames | null = null;

function knownNames(): KnownNames {
  cachedNames ??= collectKnownNames();
  return cachedNames;
}

function collectKnownNames(): KnownNames {
  const quotableNames = new Set<string>();
  const unquotableNames = new Set<string>();
  const sectionNames = new Set<string>();
  const pathWords = new Set<string>();
  for (const [key, { kind }] of settingEntries()) {
    const parts = key.split('.');
    for (const word of parts) pathWords.add(word);
    for (const end of pathSuffixes(parts)) (kind.quotableInMessages ? quotableNames : unquotableNames).add(end);
    for (let length = 1; length < parts.length; length++) {
      for (const end of pathSuffixes(parts.slice(0, length))) sectionNames.add(end);
    }
    for (const [name, field] of Object.entries(kind.items?.fields ?? {})) {
      pathWords.add(name);
      (field.kind.quotableInMessages ? quotableNames : unquotableNames).add(name);
    }
  }
  return {
    nonSecretNames: new Set([...quotableNames].filter((name) => !unquotableNames.has(name))),
    sectionNames,
    pathWords,
  };
}

function pathSuffixes(parts: readonly string[]): string[] {
  return parts.map((_, index) => parts.slice(index).join('.'));
}

/**
 * True if a text is a single punctuation character, or consists only of words in the paths of the schema's keys. Such a
 * text may be quoted in any message.
 */
export function isMadeOfKeyWords(text: string): boolean {
  if (/^[^\p{L}\p{N}]$/u.test(text)) return true;
  return text.split(/[.\s]+/).every((word) => word === '' || knownNames().pathWords.has(word));
}

/** The lines of a configuration file. Decides which of them may be shown in messages. */
export class ConfigSourceFile {
  readonly lines: readonly string[];
  /** The indexes of lines that begin within a text in triple quotes. */
  readonly #lineIndexesWithinTripleQuotes = new Set<number>();

  constructor(text: string) {
    this.lines = text.replace(/^\uFEFF/, '').split('\n');
    let tripleQuoteCount = 0;
    for (const [index, line] of this.lines.entries()) {
      if (tripleQuoteCount % 2 === 1) this.#lineIndexesWithinTripleQuotes.add(index);
      tripleQuoteCount += line.split('"""').length - 1;
    }
  }

  /**
   * True if a line may be shown (the first line is 1): it begins with a key that contains no secret, and neither it nor
   * the line before it suggests a secret. In doubt, returns false.
   */
  isPublicLine(lineNumber: number): boolean {
    const index = lineNumber - 1;
    const line = this.lines[index];
    if (line === undefined) return false;
    if (MERGE_MARK.test(line)) return true;
    // If the previous line ends with `=`, `:`, `[` or `(`, this line has its value, which may be a secret.
    return (
      !this.#lineIndexesWithinTripleQuotes.has(index) &&
      !/[=:[(]\s*$/.test(this.#previousContentLine(index)) &&
      mayShowText(line)
    );
  }

  #previousContentLine(index: number): string {
    for (let before = index - 1; before >= 0; before--) {
      const line = this.lines[before] ?? '';
      if (!/^\s*(?:#|\/\/|$)/.test(line)) return line;
    }
    return '';
  }
}

/** True if a line, or the beginning of one, may be shown, as far as this can be decided without the lines before it. */
export function mayShowText(text: string): boolean {
  const content = text.replace(LEADING_PUNCTUATION, '');
  if (content === '') return true;
  if (SENSITIVE.test(content) || ADDRESS_SECRET.test(content) || containsPemKey(content)) return false;
  const unquoted = content.replaceAll('"', ' ');
  const first = new RegExp(`^(${NAME})[ \\t]*(\\{|$)?`).exec(unquoted);
  if (first === null || !isNonSecretName(first[1] ?? '', first[2] !== undefined)) return false;
  const inner = unquoted.matchAll(new RegExp(`(${NAME})[ \\t]*(\\+?=|:(?!//)|\\{)`, 'g'));
  return [...inner].every(([, name = '', separator]) => isNonSecretName(name, separator === '{'));
}

/**
 * True if a name is that of a key that contains no secret, or of a section. `opensSection`: a brace or the end of the
 * line follows the name. Only then the name of a section counts, since otherwise a secret may follow it.
 */
function isNonSecretName(name: string, opensSection: boolean): boolean {
  const { nonSecretNames: quotableInMessages, sectionNames } = knownNames();
  const path = name.replace(/\.$/, '');
  return quotableInMessages.has(path) || (opensSection && sectionNames.has(path));
}
