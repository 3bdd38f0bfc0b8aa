import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ChatState } from '../core/chat-state.ts';
import type { ConversationEntry } from '../core/unread.ts';
import { feedMoveOf, hasModifier, messageCommandOf, type FeedMove } from '../timeline/feed-keys.ts';
import type { ListView, VirtualList } from '../timeline/virtual-list.tsx';
import { timelineWords } from '../words/timeline-words.ts';
import { permissionsOf, type MessageActions, type WritableSignal } from './message-actions.tsx';

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
  readonly view: WritableSignal<ListView | null>;
  readonly actions: MessageActions;
  readonly composer: Ref<HTMLTextAreaElement>;
  /** Scrolls to the newest message, and marks all messages as read. */
  readonly scrollToNewestAndMarkRead: () => void;
}

/** Handles the keys in the list of messages, and determines the message that the Tab key leads to. */
export function useFeedControl(options: FeedOptions) {
  const { view, actions, list } = options;
  const focusedIndex = useSignal<number | null>(null);
  /** Whether a pointer was pressed in the list after the last key that moved the focus. */
  const wasPointerPressed = useRef(false);
  const tabStop = focusedIndex.value ?? view.value?.lastRow ?? null;
  const move = (to: FeedMove): void => {
    wasPointerPressed.current = false;
    const rowCount = Math.max(0, options.entry.lastSeq - options.entry.firstSeq + 1);
    if (rowCount === 0) return;
    const index = indexAfter(to, {
      focusedIndex: focusedIndex.peek(),
      tabStop,
      view: list.current?.view ?? null,
      rowCount,
      list,
    });
    list.current?.focusRow(Math.min(Math.max(0, index), rowCount - 1));
  };
  const leaveList = (): void => {
    options.scrollToNewestAndMarkRead();
    options.composer.current?.focus({ preventScroll: true });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const to = feedMoveOf(event);
    if (to !== null) move(to);
    else if (event.key === 'Escape' && !hasModifier(event)) leaveList();
    else if (wasPointerPressed.current) {
      // After a click on a message the person does not see that the message has the focus. So a key is no command for
      // the message: the browser enters its character into the composer.
      if (entersText(event)) options.composer.current?.focus({ preventScroll: true });
      return;
    } else if (!runMessageCommand(options, event, focusedIndex.peek())) return;
    event.preventDefault();
  };
  usePageKeys({ list, composer: options.composer, move, leaveList });
  return {
    pinnedIndex: focusedIndex.value,
    tabStop,
    onKeyDown,
    // While a menu or a picture is open, the list must not scroll: on closing, the focus returns to its message, which
    // must still be drawn.
    keepsView: () => actions.menu.peek() !== null || actions.openedPicture.peek() !== null,
    onFocusedRow: (index: number | null) => {
      focusedIndex.value = index;
      if (index === null) wasPointerPressed.current = false;
    },
    onPointerDown: () => {
      wasPointerPressed.current = true;
    },
  };
}

interface FocusContext {
  /** The index of the row that has the focus; null: no row has the focus. */
  readonly focusedIndex: number | null;
  readonly tabStop: number | null;
  readonly view: ListView | null;
  readonly rowCount: number;
  readonly list: Ref<VirtualList>;
}

function indexAfter(to: FeedMove, { focusedIndex: at, tabStop, view, rowCount: count, list }: FocusContext): number {
  if (to === 'first') return 0;
  if (to === 'last') return count - 1;
  // If the focus was outside the rows, the first key leads to a message in view.
  if (at === null && (to === 'previous' || to === 'next'))
    return (to === 'next' ? view?.firstRow : tabStop) ?? count - 1;
  const from = at ?? tabStop ?? count - 1;
  if (to === 'previous') return from - 1;
  if (to === 'next') return from + 1;
  return list.current?.rowAPageFrom(from, to === 'page-up' ? -1 : 1) ?? from;
}

/** Runs the command of a key on the message that has the focus; false: the list did not handle the key. */
function runMessageCommand({ chat, entry, actions }: FeedOptions, event: KeyboardEvent, index: number | null): boolean {
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
  readonly leaveList: () => void;
}

/** Keys of one character that do not enter text: the space key scrolls the list, and `?` shows the shortcuts. */
const KEYS_WITHOUT_TEXT = [' ', '?'];

/** Whether a key enters text, also with Shift. */
const entersText = ({ key, ctrlKey, altKey, metaKey }: KeyboardEvent): boolean =>
  key.length === 1 && !KEYS_WITHOUT_TEXT.includes(key) && !ctrlKey && !altKey && !metaKey;

/** Handles the keys of the list while the composer or nothing has the focus. */
function usePageKeys({ list, composer, move, leaveList: leave }: PageKeyOptions): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || document.querySelector('dialog[open]') !== null) return;
      const { target, key } = event;
      const field = composer.current;
      const isNothingFocused = target === document.body;
      if (entersText(event) && isNothingFocused) field?.focus({ preventScroll: true });
      if (hasModifier(event) || entersText(event)) return;
      const to = feedMoveOf(event);
      const isInShortText = target === field && field !== null && field.scrollHeight - field.clientHeight < ROUNDING_PX;
      if (key === 'Escape') leave();
      else if (to !== null && isNothingFocused) move(to);
      else if ((key === 'PageUp' || key === 'PageDown') && isInShortText)
        list.current?.scrollByPage(key === 'PageUp' ? -1 : 1);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });
}
