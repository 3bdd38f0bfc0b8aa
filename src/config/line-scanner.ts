/** A line of a configuration text, classified without a full HOCON parser. */
interface ScannedLine {
  /** The kind of the line. `other`: the continuation of a value, an include, or several fields in one line. */
  readonly kind: 'blank' | 'comment' | 'open' | 'close' | 'key' | 'commented-key' | 'other';
  /** The full path of the key, or of the section that begins in this line; empty for other lines. */
  readonly keyPath: string;
  readonly indent: string;
  /** The key's name as it is written in the line. */
  readonly writtenKeyName: string;
  /** The text of a comment, or the value of a key as it is written. */
  readonly commentOrValue: string;
}

const NAME = String.raw`[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)*`;
const SECTION_OPENING = new RegExp(String.raw`^(${NAME})\s*[=:]?\s*\{$`);
const KEY_LINE = new RegExp(String.raw`^(#?)(${NAME})\s*[=:]\s*(.+)$`);

/**
 * Classifies the lines of a configuration text that has the layout of Klatch's template: one key or brace per line,
 * prose after `# `, disabled keys as `#key = value`. The result is only a hint: after an edit, the caller has to check
 * the new text with the real parser.
 */
export function scanLines(text: string): ScannedLine[] {
  const sections: string[] = [];
  return text.split('\n').map((line) => {
    const indent = /^\s*/.exec(line)![0];
    const content = line.trim();
    const scannedLine = (kind: ScannedLine['kind'], name = '', rest = ''): ScannedLine => {
      return {
        kind,
        keyPath: name === '' ? '' : [...sections, name].join('.'),
        indent,
        writtenKeyName: name,
        commentOrValue: rest,
      };
    };
    if (content === '') return scannedLine('blank');
    if (content === '}') {
      sections.pop();
      return scannedLine('close');
    }
    const open = SECTION_OPENING.exec(content);
    if (open !== null) {
      const [, name = ''] = open;
      const result = scannedLine('open', name);
      sections.push(name);
      return result;
    }
    const [, hash, name = '', value = ''] = KEY_LINE.exec(content) ?? [];
    if (hash !== undefined) return scannedLine(hash === '#' ? 'commented-key' : 'key', name, value);
    return content.startsWith('#') ? scannedLine('comment', '', content.replace(/^# ?/, '')) : scannedLine('other');
  });
}
