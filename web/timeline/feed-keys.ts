/** Where the focus goes in the list of messages. */
export type FeedMove = 'previous' | 'next' | 'page-up' | 'page-down' | 'first' | 'last';
/** What a key does with the message that has the focus. */
type MessageCommand = 'edit' | 'remove' | 'copy' | 'menu';

/** The part of a KeyboardEvent that decides. */
interface KeyPress {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
}

const MOVES: ReadonlyMap<string, FeedMove> = new Map([
  ['ArrowUp', 'previous'],
  ['ArrowDown', 'next'],
  ['PageUp', 'page-up'],
  ['PageDown', 'page-down'],
  ['Home', 'first'],
  ['End', 'last'],
]);
const COMMANDS: ReadonlyMap<string, MessageCommand> = new Map([
  ['e', 'edit'],
  ['c', 'copy'],
  ['Delete', 'remove'],
  ['Enter', 'menu'],
]);

/** Null: the key moves nothing. With Ctrl, Alt, Shift or ⌘ every key keeps what the browser does with it. */
export function feedMoveOf(press: KeyPress): FeedMove | null {
  return hasModifier(press) ? null : (MOVES.get(press.key) ?? null);
}

/** Null: the key does nothing with a message. */
export function messageCommandOf(press: KeyPress): MessageCommand | null {
  if (hasModifier(press)) return null;
  const { key } = press;
  return COMMANDS.get(key.length === 1 ? key.toLowerCase() : key) ?? null;
}

/** Of a key or a click. */
export function hasModifier({ ctrlKey, metaKey, altKey, shiftKey }: Omit<KeyPress, 'key'>): boolean {
  return ctrlKey || metaKey || altKey || shiftKey;
}
