import { scanLines } from '../src/config/line-scanner.ts';

const MAX_COLUMNS = 120;

/** `klatch setup` asks for these values. All other keys have a default, or a feature that is off without them. */
const PLACEHOLDERS: ReadonlyMap<string, string> = new Map([
  ['secret', '"<SERVER_SECRET>"'],
  ['http.base-uri', '"<BASE_URI>"'],
  ['services.postgresql.password', '"<DB_PASSWORD>"'],
]);

const HEAD = `\
# Configuration of the Klatch server (HOCON: sections in braces, key = value).
#
# Replace each value in <ANGLE BRACKETS>, by hand or with "klatch setup", then restart the server. A line that begins
# with #, without a space after it, shows a key with its default. To change the key, remove the #. Text needs double
# quotes. "klatch config check" lists every mistake. docs/configuration.md explains every key and its limits.
`;

/**
 * Renders etc/klatch/server.conf.template, of which `klatch setup` makes server.conf. The template has every key of
 * reference.conf, commented out unless it has to be set, with the first sentence about it.
 */
export function renderConfigTemplate(reference: string): string {
  const lines = scanLines(reference);
  const rendered: string[] = [];
  let comment: string[] = [];
  const headEnd = lines.findIndex(({ kind }) => kind === 'blank');
  for (const { kind, keyPath: path, indent, writtenKeyName: name, commentOrValue: text } of lines.slice(headEnd)) {
    if (kind === 'comment') comment.push(text);
    else {
      rendered.push(...wrap(firstSentence(comment.join(' ')), indent));
      comment = [];
      if (kind === 'open') rendered.push(`${indent}${name} {`);
      else if (kind === 'close') rendered.push(`${indent}}`);
      else if (kind === 'blank') rendered.push('');
      else if (PLACEHOLDERS.has(path)) rendered.push(`${indent}${name} = ${PLACEHOLDERS.get(path)}`);
      else rendered.push(`${indent}#${name} = ${text}`);
    }
  }
  return `${HEAD}${rendered.join('\n')}`;
}

/** The text up to its first full stop that ends a sentence. */
const firstSentence = (text: string): string => /^.*?\.(?=\s|$)/.exec(text)?.[0] ?? text;

function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = `${indent}#`;
  for (const word of text.split(' ').filter((each) => each !== '')) {
    if (line.length + 1 + word.length > MAX_COLUMNS) {
      lines.push(line);
      line = `${indent}#`;
    }
    line += ` ${word}`;
  }
  return text === '' ? [] : [...lines, line];
}
