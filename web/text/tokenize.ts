/** How a token is shown. `marker`: a delimiter that styles the text beside it; it stays visible. */
type TokenKind = 'text' | 'marker' | 'code' | 'link' | 'mention';

/** A piece of a message's text, as it was written. */
export interface TextToken {
  readonly kind: TokenKind;
  readonly text: string;
  readonly strong: boolean;
  readonly emphasis: boolean;
  readonly struck: boolean;
}

/** Consecutive lines of one kind. The texts of all tokens of all blocks, joined in order, are the message's text. */
export interface TextBlock {
  readonly kind: 'lines' | 'quote' | 'fence';
  readonly tokens: readonly TextToken[];
}

interface LinePiece {
  kind: TokenKind | 'delimiter';
  readonly text: string;
  readonly canOpen: boolean;
  readonly canClose: boolean;
}

const FENCE_BEGIN = /^```[^`\n]*\n?$/;
const FENCE_END = /^```[ \t]*\r?\n?$/;
const QUOTE_MARKER = /^>[ \t]?/;
const LINK = /(?:https?:\/\/|mailto:)[^\s<>"`]+/iy;
const MENTION = /@[a-z0-9](?:[a-z0-9._-]{0,30}[a-z0-9])?(?![a-z0-9])/iy;
/**
 * After one of these characters, `@` belongs to an e-mail address or a path, and begins no mention (docs/messages.md).
 */
const NO_MENTION_AFTER = /[\p{L}\p{N}._@/-]/u;
const DELIMITERS = ['**', '~~', '*', '_'] as const;
const SPECIAL = /[`@*_~hHmM]/g;
const WORD_CHARACTER = /[\p{L}\p{N}]/u;
const SPACE = /\s/;
const LINK_PROTOCOLS: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:']);
const PLAIN = { strong: false, emphasis: false, struck: false } as const;

/**
 * Reads code, fences, quotes, links with their scheme, mentions and emphasis in a text. Takes time in proportion to the
 * length of the text, whatever the text is.
 */
export function tokenize(text: string): TextBlock[] {
  const lines = text.match(/[^\n]*\n|[^\n]+/g) ?? [];
  const nextFenceEnds = indexesOfNextFenceEnd(lines);
  const blocks: { kind: TextBlock['kind']; tokens: TextToken[] }[] = [];
  for (let index = 0; index < lines.length;) {
    const line = lines[index]!;
    const fenceEndIndex = FENCE_BEGIN.test(line) ? nextFenceEnds[index + 1]! : -1;
    if (fenceEndIndex >= 0) {
      const code = lines.slice(index + 1, fenceEndIndex).join('');
      const tokens = [
        plain('marker', line),
        ...(code === '' ? [] : [plain('code', code)]),
        plain('marker', lines[fenceEndIndex]!),
      ];
      blocks.push({ kind: 'fence', tokens });
      index = fenceEndIndex + 1;
      continue;
    }
    const marker = QUOTE_MARKER.exec(line)?.[0] ?? '';
    const kind = marker === '' ? 'lines' : 'quote';
    if (blocks.at(-1)?.kind !== kind) blocks.push({ kind, tokens: [] });
    const { tokens } = blocks.at(-1)!;
    if (marker !== '') tokens.push(plain('marker', marker));
    tokens.push(...tokenizeLine(line.slice(marker.length)));
    index += 1;
  }
  return blocks;
}

/** The address that a link leads to, or null if the page may not open it. */
export function linkTarget(text: string): string | null {
  const url = URL.parse(text);
  return url !== null && LINK_PROTOCOLS.has(url.protocol) ? url.href : null;
}

function plain(kind: TokenKind, text: string): TextToken {
  return { kind, text, ...PLAIN };
}

/** For each line, the index of the first line that can close a fence, at or after this line; -1: none. */
function indexesOfNextFenceEnd(lines: readonly string[]): number[] {
  const nextFenceEnds = Array.from<number>({ length: lines.length + 1 }).fill(-1);
  for (let index = lines.length - 1; index >= 0; index -= 1)
    nextFenceEnds[index] = FENCE_END.test(lines[index]!) ? index : nextFenceEnds[index + 1]!;
  return nextFenceEnds;
}

function tokenizeLine(line: string): TextToken[] {
  const pieces = piecesOf(line);
  pairDelimiters(pieces);
  return tokensOf(pieces);
}

function piecesOf(line: string): LinePiece[] {
  const pieces: LinePiece[] = [];
  let textBegin = 0;
  let hasMoreCode = true;
  const push = (
    kind: LinePiece['kind'],
    fromIndex: number,
    text: string,
    flanking = { canOpen: false, canClose: false },
  ): number => {
    if (fromIndex > textBegin)
      pieces.push({ kind: 'text', text: line.slice(textBegin, fromIndex), canOpen: false, canClose: false });
    if (text !== '') pieces.push({ kind, text, ...flanking });
    textBegin = fromIndex + text.length;
    return textBegin;
  };
  SPECIAL.lastIndex = 0;
  for (let found = SPECIAL.exec(line); found !== null; found = SPECIAL.exec(line)) {
    const { index } = found;
    const sign = line[index]!;
    let next = index + 1;
    if (sign === '`' && hasMoreCode) {
      const end = line.indexOf('`', index + 1);
      hasMoreCode = end >= 0;
      if (end > index + 1) {
        push('marker', index, '`');
        push('code', index + 1, line.slice(index + 1, end));
        next = push('marker', end, '`');
      } else if (end >= 0) next = end + 1;
    } else if (sign === '@') next = push('mention', index, mentionAt(line, index)) || next;
    else if (/[hm]/i.test(sign)) {
      const { text, isLink } = linkAt(line, index);
      // The search continues after an invalid link, so that its characters are read only once.
      next = isLink ? push('link', index, text) : index + Math.max(1, text.length);
    } else {
      const delimiter = DELIMITERS.find((each) => line.startsWith(each, index));
      if (delimiter !== undefined) next = push('delimiter', index, delimiter, flanks(line, index, delimiter));
    }
    SPECIAL.lastIndex = Math.max(next, index + 1);
  }
  push('text', line.length, '');
  return pieces;
}

function mentionAt(line: string, index: number): string {
  if (index > 0 && NO_MENTION_AFTER.test(characterBefore(line, index))) return '';
  MENTION.lastIndex = index;
  return MENTION.exec(line)?.[0] ?? '';
}

/** The link at an index, without signs after it that end a sentence or close a bracket around the link. */
function linkAt(line: string, index: number): { text: string; isLink: boolean } {
  if (index > 0 && WORD_CHARACTER.test(characterBefore(line, index))) return { text: '', isLink: false };
  LINK.lastIndex = index;
  const found = LINK.exec(line)?.[0];
  if (found === undefined) return { text: '', isLink: false };
  const opened = { ')': found.split('(').length, ']': found.split('[').length };
  const closed = { ')': found.split(')').length, ']': found.split(']').length };
  let end = found.length;
  for (; end > 0; end -= 1) {
    const last = found[end - 1]!;
    const isBracket = last === ')' || last === ']';
    if (isBracket && closed[last] <= opened[last]) break;
    if (isBracket) closed[last] -= 1;
    else if (!/[.,;:!?'*_~]/.test(last)) break;
  }
  const text = found.slice(0, end);
  return { text, isLink: linkTarget(text) !== null };
}

/** Emphasis begins before a word and ends after one, so that `snake_case` and `2 * 3` stay as they are. */
function flanks(line: string, index: number, delimiter: string): { canOpen: boolean; canClose: boolean } {
  const before = characterBefore(line, index);
  const behind = line.slice(index + delimiter.length, index + delimiter.length + 2);
  const first = behind === '' ? '' : String.fromCodePoint(behind.codePointAt(0)!);
  const sign = delimiter[0];
  return {
    canOpen: first !== '' && !SPACE.test(first) && first !== sign && !WORD_CHARACTER.test(before) && before !== sign,
    canClose: before !== '' && !SPACE.test(before) && before !== sign && !WORD_CHARACTER.test(first) && first !== sign,
  };
}

function characterBefore(line: string, index: number): string {
  if (index === 0) return '';
  const isPair = index > 1 && /[\uDC00-\uDFFF]/.test(line[index - 1]!);
  return line.slice(index - (isPair ? 2 : 1), index);
}

/** Turns delimiters that belong together into markers, and the others into text. */
function pairDelimiters(pieces: LinePiece[]): void {
  const openerIndexes: number[] = [];
  const openerIndexByDelimiter = new Map<string, number>();
  pieces.forEach((piece, index) => {
    if (piece.kind !== 'delimiter') return;
    const opener = openerIndexByDelimiter.get(piece.text);
    if (piece.canClose && opener !== undefined) {
      pieces[opener]!.kind = 'marker';
      piece.kind = 'marker';
      // Unpaired delimiters within the pair stay text: none of them may pair with a delimiter after the pair.
      for (let last = openerIndexes.pop(); last !== undefined; last = openerIndexes.pop()) {
        openerIndexByDelimiter.delete(pieces[last]!.text);
        if (last === opener) break;
      }
    } else if (piece.canOpen && opener === undefined) {
      openerIndexes.push(index);
      openerIndexByDelimiter.set(piece.text, index);
    }
  });
  for (const piece of pieces) if (piece.kind === 'delimiter') piece.kind = 'text';
}

function tokensOf(pieces: readonly LinePiece[]): TextToken[] {
  const openDelimiters = new Set<string>();
  const tokens: TextToken[] = [];
  for (const { kind, text } of pieces) {
    const isDelimiter = kind === 'marker' && text !== '`';
    const isClosing = isDelimiter && openDelimiters.delete(text);
    const strong = openDelimiters.has('**');
    const emphasis = openDelimiters.has('*') || openDelimiters.has('_');
    const struck = openDelimiters.has('~~');
    if (isDelimiter && !isClosing) openDelimiters.add(text);
    tokens.push({ kind: kind as TokenKind, text, strong, emphasis, struck });
  }
  return tokens;
}
