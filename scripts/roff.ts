const MAX_LINE = 80;

/** Escapes text for a manual page in the language of man(7). It keeps long lines: man fills them. */
export function roff(text: string): string {
  const escaped = text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('`', '\\(ga')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
    .replace(/…/g, '...');
  // roff would interpret a line that begins with a dot as a request.
  return escaped.replace(/^\./gm, '\\&.');
}

/** Renders sentences for a manual page; text in backticks becomes bold. */
export function prose(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? bold(part.slice(1, -1)) : roff(part)))
    .join('')
    .replaceAll(/(?<=[.:;?!]) (?=[A-Z"])/g, '\n');
}

export function bold(text: string): string {
  return text === '' ? '' : `\\fB${roff(text)}\\fR`;
}

export function italic(text: string): string {
  return text === '' ? '' : `\\fI${roff(text)}\\fR`;
}

/**
 * Renders a usage line such as `klatch send [options] <group>`: literal words are bold, and placeholders are italic.
 */
export function usage(text: string): string {
  return text
    .split(/(<[^>]*>|\[[^\]]*\]|[\s|]+)/)
    .map((part) => {
      if (/^<.*>$/.test(part)) return italic(part.slice(1, -1));
      return /^[[\s|]|^$/.test(part) ? roff(part) : bold(part);
    })
    .join('');
}

/** A section of a manual page with its title. */
export function section(title: string, ...lines: readonly string[]): string[] {
  return [`.SH ${title}`, ...lines];
}

/** The lines of a list item: a term and its meaning. */
export function item(term: string, ...meaning: readonly string[]): string[] {
  return ['.TP', term, ...meaning];
}

/** Lines that keep their layout, such as examples. */
export function verbatim(lines: readonly string[]): string[] {
  return ['.PP', '.nf', '.RS 4', ...lines.map((line) => roff(line)), '.RE', '.fi'];
}

/** The name of a manual page, the number of its section and its date. */
export interface PageName {
  readonly name: string;
  readonly section: number;
  /** The day of the release, such as `2026-11-21`. */
  readonly date: string;
}

/** A page in the language of man(7). */
export function manualPage({ name, section: number, date }: PageName, lines: readonly string[]): string {
  const head = [
    '.\\" Made by scripts/docs.ts. Do not edit.',
    `.TH ${name.toUpperCase()} ${number} ${date} "Klatch" "Klatch manual"`,
    '.nh',
    '.ad l',
  ];
  return `${[...head, ...folded(lines)].join('\n')}\n`;
}

/** Breaks long lines, which are hard to compare in a review, and which linters of manual pages reject. */
function folded(lines: readonly string[]): string[] {
  let isVerbatim = false;
  return lines
    .flatMap((line) => line.split('\n'))
    .flatMap((line) => {
      if (line === '.nf' || line === '.fi') isVerbatim = line === '.nf';
      return isVerbatim || line.startsWith('.') ? [line] : fold(line);
    });
}

function fold(line: string): string[] {
  const folds: string[] = [];
  for (const word of line.split(' ')) {
    const last = folds.at(-1);
    if (last !== undefined && last.length + word.length < MAX_LINE) folds[folds.length - 1] = `${last} ${word}`;
    // At the beginning of a line, roff would interpret a word that begins with a dot as a request.
    else folds.push(folds.length > 0 && word.startsWith('.') ? `\\&${word}` : word);
  }
  return folds;
}
