/** A move of the focus in the list of messages. */
export type FeedMove = 'previous' | 'next' | 'page-up' | 'page-down' | 'first' | 'last';
/** A command of a key on the message that has the focus. */
type MessageCommand = 'edit' | 'remove' | 'copy' | 'menu';

/** The fields of a KeyboardEvent that these functions use. */
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

/** The move of a key press; null: none. With Ctrl, Alt, Shift or ⌘ every key has its usual action in the browser. */
export function feedMoveOf(press: KeyPress): FeedMove | null {
  return hasModifier(press) ? null : (MOVES.get(press.key) ?? null);
}

/** The command of a key press; null: the key has no command for a message. */
export function messageCommandOf(press: KeyPress): MessageCommand | null {
  if (hasModifier(press)) return null;
  const { key } = press;
  return COMMANDS.get(key.length === 1 ? key.toLowerCase() : key) ?? null;
}

/** Whether Ctrl, ⌘, Alt or Shift was pressed during a key press or a click. */
export function hasModifier({ ctrlKey, metaKey, altKey, shiftKey }: Omit<KeyPress, 'key'>): boolean {
  return ctrlKey || metaKey || altKey || shiftKey;
}
