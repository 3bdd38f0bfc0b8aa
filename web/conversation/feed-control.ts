import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ChatState } from '../core/chat-state.ts';
import type { ConversationEntry } from '../core/unread.ts';
import { feedMoveOf, hasModifier, messageCommandOf, type FeedMove } from '../timeline/feed-keys.ts';
import type { ListView, VirtualList } from '../timeline/virtual-list.tsx';
import { timelineWords } from '../words/timeline-words.ts';
import { permissionsOf, type MessageActions, type Writable } from './message-actions.tsx';

/**
 * Browsers round heights: a text field whose `scrollHeight` exceeds its `clientHeight` by less than this shows all of
 * its text.
 */
const ROUNDING_PX = 3;

/** A reference to a part of the page. */
interface Ref<Part> {
  readonly current: Part | null;
}

interface FeedOptions {
  readonly chat: ChatState;
  readonly entry: ConversationEntry;
  readonly list: Ref<VirtualList>;
  readonly view: Writable<ListView | null>;
  readonly actions: MessageActions;
  readonly composer: Ref<HTMLTextAreaElement>;
  /** Scrolls to the newest message, and marks all messages as read. */
  readonly toNewestAndRead: () => void;
}

/** Handles the keys in the list of messages, and determines the message that the Tab key leads to. */
export function useFeedControl(options: FeedOptions) {
  const { view, actions, list } = options;
  const focused = useSignal<number | null>(null);
  /** Whether a pointer was pressed in the list after the last key that moved the focus. */
  const wasPressed = useRef(false);
  const tabStop = focused.value ?? view.value?.last ?? null;
  const move = (to: FeedMove): void => {
    wasPressed.current = false;
    const count = Math.max(0, options.entry.lastSeq - options.entry.firstSeq + 1);
    if (count === 0) return;
    const index = indexAfter(to, { at: focused.peek(), tabStop, view: list.current?.view ?? null, count, list });
    list.current?.focusRow(Math.min(Math.max(0, index), count - 1));
  };
  const leave = (): void => {
    options.toNewestAndRead();
    options.composer.current?.focus({ preventScroll: true });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const to = feedMoveOf(event);
    if (to !== null) move(to);
    else if (event.key === 'Escape' && !hasModifier(event)) leave();
    else if (wasPressed.current) {
      // After a click on a message the person does not see that the message has the focus. So a key is no command for
      // the message: the browser enters its character into the composer.
      if (isText(event)) options.composer.current?.focus({ preventScroll: true });
      return;
    } else if (!runOnMessage(options, event, focused.peek())) return;
    event.preventDefault();
  };
  usePageKeys({ list, composer: options.composer, move, leave });
  return {
    pinnedIndex: focused.value,
    tabStop,
    onKeyDown,
    // While a menu or a picture is open, the list must not scroll: on closing, the focus returns to its message, which
    // must still be drawn.
    keepsView: () => actions.menu.peek() !== null || actions.openedPicture.peek() !== null,
    onFocusedRow: (index: number | null) => {
      focused.value = index;
      if (index === null) wasPressed.current = false;
    },
    onPointerDown: () => {
      wasPressed.current = true;
    },
  };
}

interface Position {
  /** The index of the row that has the focus; null: no row has the focus. */
  readonly at: number | null;
  readonly tabStop: number | null;
  readonly view: ListView | null;
  readonly count: number;
  readonly list: Ref<VirtualList>;
}

function indexAfter(to: FeedMove, { at, tabStop, view, count, list }: Position): number {
  if (to === 'first') return 0;
  if (to === 'last') return count - 1;
  // If the focus was outside the rows, the first key leads to a message in view.
  if (at === null && (to === 'previous' || to === 'next')) return (to === 'next' ? view?.first : tabStop) ?? count - 1;
  const from = at ?? tabStop ?? count - 1;
  if (to === 'previous') return from - 1;
  if (to === 'next') return from + 1;
  return list.current?.rowAPageFrom(from, to === 'page-up' ? -1 : 1) ?? from;
}

/** Runs the command of a key on the message that has the focus; false: the list did not handle the key. */
function runOnMessage({ chat, entry, actions }: FeedOptions, event: KeyboardEvent, index: number | null): boolean {
  const command = messageCommandOf(event);
  const article = event.target as HTMLElement;
  if (command === null || index === null || !article.matches('article')) return false;
  const seq = entry.firstSeq + index;
  const message = chat.pages.get(entry.info.id, seq);
  if (message === undefined) return false;
  if (command === 'menu') {
    actions.openMenu(seq, article.querySelector<HTMLElement>('[aria-haspopup=menu]') ?? article);
    return true;
  }
  if (message.deleted === true || chat.deletions.stateOf(entry.info.id, seq) !== null) return false;
  const { mayEdit, mayDelete } = permissionsOf(chat, entry, message);
  if (command === 'copy') actions.copy(message.text, timelineWords.textCopied);
  else if (command === 'edit' && mayEdit) actions.edit(message);
  else if (command === 'remove' && mayDelete) actions.remove(seq);
  else return false;
  return true;
}

interface PageKeyOptions {
  readonly list: Ref<VirtualList>;
  readonly composer: Ref<HTMLTextAreaElement>;
  readonly move: (to: FeedMove) => void;
  readonly leave: () => void;
}

/** Keys of one character that do not enter text: the space key scrolls the list, and `?` shows the shortcuts. */
const KEYS_WITHOUT_TEXT = [' ', '?'];

/** Whether a key enters text, also with Shift. */
const isText = ({ key, ctrlKey, altKey, metaKey }: KeyboardEvent): boolean =>
  key.length === 1 && !KEYS_WITHOUT_TEXT.includes(key) && !ctrlKey && !altKey && !metaKey;

/** Handles the keys of the list while the composer or nothing has the focus. */
function usePageKeys({ list, composer, move, leave }: PageKeyOptions): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || document.querySelector('dialog[open]') !== null) return;
      const { target, key } = event;
      const field = composer.current;
      const isNowhere = target === document.body;
      if (isText(event) && isNowhere) field?.focus({ preventScroll: true });
      if (hasModifier(event) || isText(event)) return;
      const to = feedMoveOf(event);
      const isInShortText = target === field && field !== null && field.scrollHeight - field.clientHeight < ROUNDING_PX;
      if (key === 'Escape') leave();
      else if (to !== null && isNowhere) move(to);
      else if ((key === 'PageUp' || key === 'PageDown') && isInShortText)
        list.current?.scrollByPage(key === 'PageUp' ? -1 : 1);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });
}
