/** One line of a configuration text, as far as it can be told without reading HOCON in full. */
interface ScannedLine {
  /** `other`: a continued value, an include, several things on one line. */
  readonly kind: 'blank' | 'comment' | 'open' | 'close' | 'key' | 'commented-key' | 'other';
  /** Full path of the key, or of the section that opens; else empty. */
  readonly path: string;
  readonly indent: string;
  /** Name of the key as it stands there. */
  readonly name: string;
  /** A comment's text, or a key's value as written. */
  readonly text: string;
}

const NAME = String.raw`[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)*`;
const SECTION_OPENING = new RegExp(String.raw`^(${NAME})\s*[=:]?\s*\{$`);
const KEY_LINE = new RegExp(String.raw`^(#?)(${NAME})\s*[=:]\s*(.+)$`);

/**
 * Tells the lines of a configuration text apart. It serves texts laid out as ours are: one key or brace a line, prose
 * after `# `, and keys that are switched off as `#key = value`. It is a hint and no parser: whoever edits by it has to
 * read the result with the real one.
 */
export function scanLines(text: string): ScannedLine[] {
  const sections: string[] = [];
  return text.split('\n').map((line) => {
    const indent = /^\s*/.exec(line)![0];
    const content = line.trim();
    const found = (kind: ScannedLine['kind'], name = '', rest = ''): ScannedLine => {
      return { kind, path: name === '' ? '' : [...sections, name].join('.'), indent, name, text: rest };
    };
    if (content === '') return found('blank');
    if (content === '}') {
      sections.pop();
      return found('close');
    }
    const open = SECTION_OPENING.exec(content);
    if (open !== null) {
      const [, name = ''] = open;
      const result = found('open', name);
      sections.push(name);
      return result;
    }
    const [, hash, name = '', value = ''] = KEY_LINE.exec(content) ?? [];
    if (hash !== undefined) return found(hash === '#' ? 'commented-key' : 'key', name, value);
    return content.startsWith('#') ? found('comment', '', content.replace(/^# ?/, '')) : found('other');
  });
}
