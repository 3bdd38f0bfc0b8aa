/** The parts of an action of ntfy, by their names: `action`, `label`, `url` and others. */
type NtfyAction = Readonly<Record<string, string>>;

const MAX_ACTIONS = 10;
/** The names of the first parts of an action, for parts that are written without a name. */
const UNNAMED_PARTS = ['action', 'label', 'url'] as const;
const NAME_PATTERN = /([-.\w]+)[ \t]*=/y;

/**
 * Parses actions in the format of ntfy's header: `view, "Open, now", url=https://a.example; view, Log,
 * https://b.example`. Of a malformed text, returns the parts that can be read.
 */
export function parseNtfyActions(text: string): readonly NtfyAction[] {
  const actions: NtfyAction[] = [];
  let parts: Record<string, string> = {};
  let partCount = 0;
  for (let at = 0; at < text.length && actions.length < MAX_ACTIONS;) {
    const part = readPart(text, at);
    const name = part.name === '' ? UNNAMED_PARTS[partCount] : part.name.toLowerCase();
    if (name !== undefined) parts[name] = part.value;
    partCount += 1;
    at = part.end + 1;
    if (at <= text.length && text[part.end] !== ';') continue;
    actions.push(parts);
    [parts, partCount] = [{}, 0];
  }
  return partCount > 0 && actions.length < MAX_ACTIONS ? [...actions, parts] : actions;
}

/**
 * Reads the part of an action that begins at `start`. `end`: the position of the separator after the part, or the end
 * of the text.
 */
function readPart(text: string, start: number): { name: string; value: string; end: number } {
  let at = skipSpaces(text, start);
  NAME_PATTERN.lastIndex = at;
  const name = NAME_PATTERN.exec(text)?.[1] ?? '';
  if (name !== '') at = skipSpaces(text, NAME_PATTERN.lastIndex);
  const quote = text[at];
  if (quote !== '"' && quote !== "'") {
    const end = separatorFrom(text, at);
    return { name, value: text.slice(at, end).trim(), end };
  }
  const close = closingQuote(text, at + 1, quote);
  const value = text.slice(at + 1, close).replaceAll(`\\${quote}`, quote);
  return { name, value, end: separatorFrom(text, close) };
}

function skipSpaces(text: string, start: number): number {
  let at = start;
  while (text[at] === ' ' || text[at] === '\t' || text[at] === '\n') at += 1;
  return at;
}

function separatorFrom(text: string, start: number): number {
  let at = start;
  while (at < text.length && text[at] !== ',' && text[at] !== ';') at += 1;
  return at;
}

function closingQuote(text: string, start: number, quote: string): number {
  let at = start;
  while (at < text.length && text[at] !== quote) at += text[at] === '\\' ? 2 : 1;
  return Math.min(at, text.length);
}
