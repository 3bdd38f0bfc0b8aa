import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { sanitize } from '../../client/core/safe-text.ts';
import type { AppState } from '../core/app-state.ts';
import type { ChatState } from '../core/chat-state.ts';
import { pathOf } from '../core/routes.ts';
import { unreadOf, type ConversationEntry } from '../core/unread.ts';
import { briefMomentOf } from '../words/dates.ts';
import { peopleWords } from '../words/people-words.ts';
import { words } from '../words/words.ts';

/**
 * The list shows the number of unread messages of the open conversation only after this time. A message counts as read
 * after a second in view; in the other second the server stores the read position.
 */
const UNREAD_SHOWN_AFTER_MS = 2_000;

interface ConversationListProps {
  readonly state: AppState;
  readonly chat: ChatState;
}

type SidebarProps = ConversationListProps & {
  readonly onSearch: () => void;
  readonly onNewConversation: () => void;
  readonly onSettings: () => void;
  readonly onFiles: () => void;
};

/** The name of the signed-in person, and the list of conversations. */
export function Sidebar({ state, chat, onSearch, onNewConversation: onNew, onSettings, onFiles }: SidebarProps) {
  const { name, nick } = chat.account;
  return (
    <nav class="sidebar" aria-label={words.conversations}>
      <h1 dir="auto">{state.place.projectName}</h1>
      <div class="sidebar-tools">
        <button type="button" onClick={onSearch}>
          {words.search}
        </button>
        <button type="button" onClick={onNew}>
          {words.newConversation}
        </button>
      </div>
      <OtherSignInLink state={state} />
      <ConversationList state={state} chat={chat} />
      <div class="account">
        <p class="quiet" dir="auto" id="account">
          {words.signedInAs(sanitize(name), nick)}
        </p>
        <div class="account-buttons">
          <button type="button" onClick={onSettings}>
            {words.settings}
          </button>
          <button type="button" onClick={onFiles}>
            {peopleWords.myFiles}
          </button>
          <button type="button" disabled={state.isBusy.value} onClick={() => void state.signOut()}>
            {words.signOut}
          </button>
        </div>
      </div>
    </nav>
  );
}

function OtherSignInLink({ state }: { readonly state: AppState }) {
  const token = state.link.value?.token ?? null;
  if (token === null) return null;
  return (
    <p>
      {words.otherLinkOpened}{' '}
      <button type="button" disabled={state.isBusy.value} onClick={() => void state.signIn(token)}>
        {words.useOtherLink}
      </button>
    </p>
  );
}

function ConversationList({ state, chat }: ConversationListProps) {
  const conversations = chat.conversations.value;
  // Subscribes to the drafts, which the list marks.
  void chat.writingVersion.value;
  if (conversations === null) return <p class="quiet">{words.loading}</p>;
  if (conversations.length === 0) return <p>{words.noConversations}</p>;
  return (
    <ul>
      {conversations.map((entry) => (
        <ConversationItem
          key={entry.info.id}
          state={state}
          entry={entry}
          isOnline={entry.info.peer !== null && chat.peers.isOnline(entry.info.peer.id) === true}
          hasDraft={chat.drafts.textOf(entry.info.id) !== ''}
          ownId={chat.account.id}
        />
      ))}
    </ul>
  );
}

interface ConversationItemProps {
  readonly state: AppState;
  readonly entry: ConversationEntry;
  /** Whether the other person of a private conversation is online. */
  readonly isOnline: boolean;
  readonly hasDraft: boolean;
  readonly ownId: number;
}

function ConversationItem({ state, entry, isOnline, hasDraft, ownId }: ConversationItemProps) {
  const { id, archived } = entry.info;
  const current = state.route.value;
  const isOpen = current.screen === 'conversation' && current.conversation === id;
  const route = { screen: 'conversation', conversation: id, seq: null } as const;
  const unread = useShownUnread(unreadOf(entry), isOpen);
  return (
    <li>
      <a
        class={unread > 0 ? 'item has-unread' : 'item'}
        href={pathOf(route, state.place.base.pathname)}
        aria-current={isOpen ? 'page' : undefined}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          state.go(route);
        }}
      >
        <span class="item-line">
          {isOnline ? <span class="dot online" role="img" aria-label={words.online} title={words.online} /> : null}
          <span class="title" dir="auto">
            {conversationTitle(entry)}
          </span>
          {archived ? <span class="quiet">{words.archived}</span> : null}
          {hasDraft && !isOpen ? <span class="quiet">{words.draft}</span> : null}
          <Badge entry={entry} unread={unread} />
        </span>
        <span class="preview" dir="auto">
          {previewOf(entry, ownId)}
        </span>
      </a>
    </li>
  );
}

/**
 * The number of unread messages that the list shows. It does not count messages that are read as soon as they arrive:
 * each of them would make the list flicker.
 */
function useShownUnread(unread: number, isOpen: boolean): number {
  const isUnread = unread > 0;
  const hasStayedUnread = useSignal(isUnread);
  useEffect(() => {
    if (!isOpen || !isUnread) hasStayedUnread.value = isUnread;
    if (hasStayedUnread.peek() === isUnread) return undefined;
    const timer = setTimeout(() => {
      hasStayedUnread.value = true;
    }, UNREAD_SHOWN_AFTER_MS);
    return () => clearTimeout(timer);
  }, [isUnread, isOpen]);
  return isOpen && !hasStayedUnread.value ? 0 : unread;
}

function Badge({ entry, unread }: { readonly entry: ConversationEntry; readonly unread: number }) {
  if (unread === 0) {
    return entry.lastAt === null ? null : (
      <time class="quiet" dateTime={entry.lastAt}>
        {briefMomentOf(entry.lastAt)}
      </time>
    );
  }
  const { unreadMentionCount: mentions } = entry;
  // All messages of a private conversation address this person, as mentions do.
  const isHighlighted = entry.info.kind === 'private';
  return (
    <>
      {mentions === 0 ? null : (
        <span class="badge waiting" role="img" aria-label={words.mentions(mentions)} title={words.mentions(mentions)}>
          @{words.number(mentions)}
        </span>
      )}
      <span
        class={isHighlighted ? 'badge waiting' : 'badge'}
        role="img"
        aria-label={words.unread(unread)}
        title={words.unread(unread)}
      >
        {words.number(unread)}
      </span>
    </>
  );
}

/** The newest message in one line. It names the sender where the title does not. */
function previewOf({ info, lastMessage }: ConversationEntry, ownId: number): string {
  if (lastMessage === null) return words.nothingWritten;
  const { sender, label, text, deleted, attachments } = lastMessage;
  const messageText = sanitize(text.replaceAll(/\s+/g, ' ').trim());
  const previewText =
    deleted === true
      ? words.deletedShort
      : messageText === '' && attachments > 0
        ? words.files(attachments)
        : messageText;
  if (sender.kind === 'user' && sender.id === ownId) return words.saidBy(words.youSaid, previewText);
  return info.kind === 'private' ? previewText : words.saidBy(sanitize(label ?? sender.name), previewText);
}

/** The shown title of a conversation; of a private one the other person's name. */
export function conversationTitle({ info: { title, peer } }: ConversationEntry): string {
  return sanitize(peer?.name ?? title);
}
