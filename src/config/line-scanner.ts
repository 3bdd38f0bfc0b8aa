/** One line of a configuration text, as far as it is known without parsing HOCON. */
interface ScannedLine {
  /** `other`: a continued value, an include, several things on one line. */
  readonly kind: 'blank' | 'comment' | 'open' | 'close' | 'key' | 'commented-key' | 'other';
  /** Full path of the key, or of the section that opens; else empty. */
  readonly path: string;
  readonly indent: string;
  /** Name of the key as written. */
  readonly name: string;
  /** A comment's text, or a key's value as written. */
  readonly text: string;
}

const NAME = String.raw`[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)*`;
const SECTION_OPENING = new RegExp(String.raw`^(${NAME})\s*[=:]?\s*\{$`);
const KEY_LINE = new RegExp(String.raw`^(#?)(${NAME})\s*[=:]\s*(.+)$`);

/**
 * Classifies the lines of a configuration text. It works for texts with Klatch's layout: one key or brace a line, prose
 * after `# `, and disabled keys as `#key = value`. It is a hint and no parser: code that edits by it has to read the
 * result with the real parser.
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
