import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Message, Notice } from '../../client/core/shapes.ts';
import { useFeedControl } from '../conversation/feed-control.ts';
import {
  CopyFeedback,
  permissionsOf,
  useMessageActions,
  type MessageActions,
  type WritableSignal,
} from '../conversation/message-actions.tsx';
import { SpokenAnnouncements, useAnnouncements } from '../conversation/spoken.tsx';
import { UnsentMessages } from '../conversation/unsent-messages.tsx';
import type { AppState } from '../core/app-state.ts';
import type { ChatState } from '../core/chat-state.ts';
import { ReadTracker } from '../core/read-tracker.ts';
import type { Timeline } from '../core/timeline.ts';
import { unreadOf, type ConversationEntry } from '../core/unread.ts';
import { MessageRow } from '../timeline/message-row.tsx';
import { TypingLine } from '../timeline/typing-line.tsx';
import { VirtualList, type ListView } from '../timeline/virtual-list.tsx';
import { timelineWords } from '../words/timeline-words.ts';
import { words } from '../words/words.ts';
import { Composer } from './composer.tsx';
import { EmptyConversation } from './empty-conversation.tsx';
import { filesBaseOf, LazyOverlays } from './lazy-overlays.tsx';
import { PaneHead } from './pane-head.tsx';
import { conversationTitle } from './sidebar.tsx';

const NO_NOTICES: readonly Notice[] = [];
/** The number of rows beyond each edge of the view whose messages are fetched too. */
const ROWS_AHEAD = 40;
/** An estimate of the number of rows in view. */
const ROWS_IN_VIEW = 20;
/**
 * Scrolling rests when the view has not changed for this time. A new view draws the whole list again, for the row that
 * the Tab key leads to: in each frame of a scroll that took more time than the scroll itself.
 */
const VIEW_REST_MS = 100;

interface ConversationPaneProps {
  readonly state: AppState;
  readonly chat: ChatState;
  readonly conversation: number;
  /** The message to show; null: the first unread message, or the end if all messages are read. */
  readonly seq: number | null;
}

/** A conversation: its messages and the composer. */
export function ConversationPane(props: ConversationPaneProps) {
  const { state, chat, conversation } = props;
  const entry = chat.entryOf(conversation);
  if (chat.conversations.value === null)
    return (
      <>
        <h1 class="unseen">{state.place.projectName}</h1>
        <p class="quiet centred">{words.loading}</p>
      </>
    );
  return (
    <>
      <PaneHead state={state} chat={chat} entry={entry} />
      {entry === undefined ? (
        <p class="quiet centred">{words.notAMember}</p>
      ) : (
        <OpenConversation {...props} entry={entry} />
      )}
    </>
  );
}

type OpenProps = ConversationPaneProps & { readonly entry: ConversationEntry };

function OpenConversation(props: OpenProps) {
  const { state, chat, conversation, entry } = props;
  const open = useOpenConversation(props);
  const { timeline, list, view, edited, composer, toNewest, announcements, actions, feed } = open;
  return (
    <>
      <div class="timeline">
        {open.count === 0 ? <EmptyConversation state={state} chat={chat} entry={entry} /> : null}
        <VirtualList
          handle={list}
          rowCount={open.count}
          renderRow={open.renderRow}
          isReady={(index) => isRowReady(chat, entry, entry.firstSeq + index)}
          startIndex={open.startIndex}
          label={words.messagesOf(conversationTitle(entry))}
          pinnedIndex={feed.pinnedIndex}
          keepsView={feed.keepsView}
          onView={open.onView}
          onKeyDown={feed.onKeyDown}
          onFocusedRow={feed.onFocusedRow}
          onPointerDown={feed.onPointerDown}
        >
          <UnsentMessages chat={chat} entries={chat.sendQueue.entriesOf(conversation)} />
        </VirtualList>
        {timeline.problem.value === null ? null : (
          <p class="timeline-problem" role="status">
            {timeline.problem.value}. {words.trying}
          </p>
        )}
        <ToNewest view={view} entry={entry} onClick={toNewest} />
        <LazyOverlays place={state.place} chat={chat} conversation={conversation} actions={actions} />
        <CopyFeedback actions={actions} />
        <SpokenAnnouncements announcements={announcements} />
      </div>
      <TypingLine names={() => chat.typing.typistNamesIn(conversation)} />
      <Composer key={conversation} chat={chat} entry={entry} edited={edited} field={composer} onSent={toNewest} />
    </>
  );
}

/** The state of a conversation that is open, and its list of messages. */
function useOpenConversation({ state, chat, conversation, seq, entry }: OpenProps) {
  const timeline = useMemo(() => openTimeline(chat, entry, seq), [conversation]);
  const list = useRef<VirtualList>(null);
  const composer = useRef<HTMLTextAreaElement>(null);
  const view = useSignal<ListView | null>(null);
  const edited = useSignal<Message | null>(null);
  // The first unread message at the opening of the conversation: the divider stays there while the person reads.
  const firstUnreadSeq = useMemo(() => firstUnreadOf(entry), [conversation]);
  const { firstSeq, lastSeq } = entry;
  // Subscribes to new messages and to the send queue: their changes draw the rows again.
  void timeline.version.value;
  void chat.writingVersion.value;
  const count = Math.max(0, lastSeq - firstSeq + 1);
  const indexOf = (each: number): number => Math.min(Math.max(0, each - firstSeq), Math.max(0, count - 1));
  const opensAtSeq = seq ?? firstUnreadSeq;
  const onView = useOnView({ chat, entry, timeline, view });
  const announcements = useAnnouncements(chat, entry);
  const actions = useMessageActions({ chat, conversation, edited, announcements });
  const toNewest = (): void => list.current?.jumpToEnd();
  const toNewestAndRead = (): void => {
    toNewest();
    if (lastSeq > 0) void chat.markRead(conversation, lastSeq);
  };
  const feed = useFeedControl({
    chat,
    entry,
    list,
    view,
    actions,
    composer,
    scrollToNewestAndMarkRead: toNewestAndRead,
  });
  const renderRow = rowRenderer({ state, chat, entry, firstUnread: firstUnreadSeq, tabStop: feed.tabStop, actions });
  const startIndex = opensAtSeq === null ? null : indexOf(opensAtSeq);
  useEffect(() => {
    if (count === 0) timeline.wantNoticesOfEmpty();
  }, [timeline, count === 0]);
  useEffect(() => {
    if (seq === null) return;
    list.current?.jumpTo(indexOf(seq));
    actions.flashedSeq.value = seq;
  }, [seq, chat.jumps.value]);
  return {
    timeline,
    list,
    view,
    edited,
    composer,
    toNewest,
    announcements,
    actions,
    feed,
    count,
    renderRow,
    startIndex,
    onView,
  };
}

function firstUnreadOf(entry: ConversationEntry): number | null {
  return unreadOf(entry) > 0 ? Math.max(entry.readSeq + 1, entry.firstSeq) : null;
}

type ViewSignal = WritableSignal<ListView | null>;

interface ViewSource {
  readonly chat: ChatState;
  readonly entry: ConversationEntry;
  readonly timeline: Timeline;
  readonly view: ViewSignal;
}

/**
 * Opens the timeline, and requests the messages that will be in view. The list of rows tells only after it is drawn
 * which those are; the earlier request saves that time.
 */
function openTimeline(chat: ChatState, entry: ConversationEntry, seq: number | null): Timeline {
  const timeline = chat.open(entry.info.id);
  const { firstSeq, lastSeq } = entry;
  const start = Math.min(seq ?? firstUnreadOf(entry) ?? lastSeq, lastSeq);
  const from = Math.max(firstSeq, start - ROWS_AHEAD - ROWS_IN_VIEW);
  if (lastSeq >= firstSeq)
    timeline.want({ fromSeq: from, toSeq: Math.min(lastSeq, start + ROWS_IN_VIEW + ROWS_AHEAD) });
  return timeline;
}

/** Fetches messages that come into view, and marks those as read that stay in view. */
function useOnView({ chat, entry, timeline, view }: ViewSource): (next: ListView) => void {
  const { firstSeq, lastSeq, info } = entry;
  const tracker = useReadTracker(chat, info.id);
  const showView = useShowView(view);
  return (next) => {
    showView(next);
    if (lastSeq < firstSeq) return;
    const from = Math.max(firstSeq, firstSeq + next.firstRow - ROWS_AHEAD);
    timeline.want({ fromSeq: from, toSeq: Math.min(lastSeq, firstSeq + next.lastRow + ROWS_AHEAD) });
    const lastWhole = firstSeq + next.lastWholeRow;
    // A row without its message cannot have been read.
    if (isRowReady(chat, entry, lastWhole)) tracker.updateSeqInView(lastWhole);
  };
}

/** Sets the signal of the rows in view: at once at the end of the list, elsewhere when scrolling rests. */
function useShowView(view: ViewSignal): (next: ListView) => void {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (next) => {
    clearTimeout(timer.current);
    const before = view.peek();
    if (before?.firstRow === next.firstRow && before.lastRow === next.lastRow && before.isAtEnd === next.isAtEnd)
      return;
    const show = (): void => {
      view.value = next;
    };
    if (before === null || before.isAtEnd || next.isAtEnd) show();
    else timer.current = setTimeout(show, VIEW_REST_MS);
  };
}

interface ToNewestProps {
  readonly view: ViewSignal;
  readonly entry: ConversationEntry;
  readonly onClick: () => void;
}

/** A button to the newest message; not shown while the end is in view. */
function ToNewest({ view: { value: view }, entry, onClick }: ToNewestProps) {
  if (view === null || view.isAtEnd) return null;
  const below = Math.min(entry.lastSeq - entry.firstSeq - view.lastRow, unreadOf(entry));
  return (
    <button
      class="to-newest"
      type="button"
      onClick={onClick}
      aria-label={below > 0 ? timelineWords.toNewestOf(below) : words.newestMessages}
    >
      {below > 0 ? words.newBelow(below) : ''} ↓
    </button>
  );
}

interface RowSource {
  readonly state: AppState;
  readonly chat: ChatState;
  readonly entry: ConversationEntry;
  readonly firstUnread: number | null;
  readonly tabStop: number | null;
  readonly actions: MessageActions;
}

/** Whether a row can show its message. */
function isRowReady({ pages }: ChatState, { firstSeq, info }: ConversationEntry, seq: number): boolean {
  return pages.canShow(info.id, seq, firstSeq);
}

function rowRenderer({ state, chat, entry, firstUnread, tabStop, actions }: RowSource) {
  const { firstSeq, info } = entry;
  const { nick: ownNick } = chat.account;
  const flashedSeq = actions.flashedSeq.value;
  const filesBase = filesBaseOf(state.place);
  return (index: number) => {
    const seq = firstSeq + index;
    const message = isRowReady(chat, entry, seq) ? chat.pages.get(info.id, seq) : undefined;
    return (
      <MessageRow
        key={seq}
        index={index}
        seq={seq}
        message={message}
        previous={seq === firstSeq ? null : (chat.pages.get(info.id, seq - 1) ?? null)}
        noticesBefore={seq === firstSeq ? chat.pages.noticesAfter(info.id, seq - 1) : NO_NOTICES}
        notices={chat.pages.noticesAfter(info.id, seq)}
        isFirstUnread={seq === firstUnread}
        isJumpedTo={seq === flashedSeq}
        deletion={chat.deletions.stateOf(info.id, seq)}
        isTabStop={index === tabStop}
        {...permissionsOf(chat, entry, message)}
        ownNick={ownNick}
        filesBase={filesBase}
        actions={actions}
      />
    );
  };
}

/** Moves the read position while the page is visible and has the focus. */
function useReadTracker(chat: ChatState, conversation: number): ReadTracker {
  const tracker = useMemo(
    () =>
      new ReadTracker({
        // An open dialog covers the messages, so that they do not count as read.
        isLookedAt: () => !document.hidden && document.hasFocus() && document.querySelector('dialog[open]') === null,
        onRead: (seq) => void chat.markRead(conversation, seq),
      }),
    [conversation],
  );
  useEffect(() => {
    const check = (): void => tracker.startOrStopTimer();
    const events = [
      [window, 'focus'],
      [window, 'blur'],
      [document, 'visibilitychange'],
      [document, 'focusin'],
    ] as const;
    for (const [target, name] of events) target.addEventListener(name, check);
    return () => {
      tracker.stop();
      for (const [target, name] of events) target.removeEventListener(name, check);
    };
  }, [tracker]);
  return tracker;
}
