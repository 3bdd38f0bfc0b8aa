import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { Message } from '../../client/core/shapes.ts';
import type { AppState } from '../core/app-state.ts';
import type { ChatState } from '../core/chat-state.ts';
import { pathOf } from '../core/routes.ts';
import type { ConversationEntry } from '../core/unread.ts';
import type { Announcements } from '../timeline/announcements.ts';
import { copyText } from '../timeline/copy-text.ts';
import { MessageMenu, type MenuItem } from '../timeline/message-menu.tsx';
import type { RowActions } from '../timeline/message-row.tsx';
import type { PictureFile } from '../timeline/pictures.ts';
import { timelineWords } from '../words/timeline-words.ts';
import { words } from '../words/words.ts';

/** How long the page shows that something was copied. */
const FEEDBACK_MS = 3_000;

/** What the account may do with a message; the page does not offer what the server would refuse. */
export function permissionsOf(chat: ChatState, { info }: ConversationEntry, message: Message | undefined) {
  const isOwn = message?.sender.kind === 'user' && message.sender.id === chat.account.id;
  const isManager = info.kind === 'group' && info.role !== 'member';
  const mayEdit = !info.archived && (isOwn || isManager);
  return { mayEdit, mayDelete: mayEdit || isManager };
}

interface OpenMenu {
  readonly seq: number;
  readonly anchor: HTMLElement;
}

/** What people do with the messages of the open conversation. */
export interface MessageActions extends RowActions {
  readonly menu: Signal<OpenMenu | null>;
  /** Whether something was copied; null: nothing was a moment ago. */
  readonly feedback: Signal<string | null>;
  readonly copyText: (message: Message) => void;
  /** The picture that fills the window; null: none does. */
  readonly openedPicture: Signal<PictureFile | null>;
  /** The message that was jumped to a moment ago. */
  readonly flashedSeq: Signal<number | null>;
  /** In the order of the menu: those that the account may do. */
  readonly itemsOf: (seq: number) => readonly MenuItem[];
}

/** The message that the composer edits, as a signal; null: it writes a new one. */
export interface EditedMessage {
  value: Message | null;
}

interface ActionsOptions {
  readonly state: AppState;
  readonly chat: ChatState;
  readonly conversation: number;
  readonly edited: EditedMessage;
  readonly announcements: Announcements;
}

/** The same object as long as the conversation is open: else each action would draw all rows again. */
export function useMessageActions(options: ActionsOptions): MessageActions {
  const { state, chat, conversation, edited, announcements } = options;
  const menu = useSignal<OpenMenu | null>(null);
  const feedback = useSignal<string | null>(null);
  const openedPicture = useSignal<PictureFile | null>(null);
  const flashedSeq = useSignal<number | null>(null);
  return useMemo(() => {
    const copy = async (text: string, copied: string): Promise<void> => {
      const isCopied = await copyText(text);
      feedback.value = isCopied ? copied : timelineWords.cannotCopy;
    };
    const linkOf = (seq: number): string =>
      new URL(pathOf({ screen: 'conversation', conversation, seq }, state.place.base.pathname), state.place.base).href;
    const actions: MessageActions = {
      menu,
      feedback,
      openedPicture,
      flashedSeq,
      endFlash: () => {
        flashedSeq.value = null;
      },
      openPicture: (picture) => {
        openedPicture.value = picture;
      },
      edit: (message) => {
        edited.value = message;
      },
      remove: (seq) => {
        chat.deletions.add(conversation, seq);
        announcements.say(timelineWords.deletedBriefly);
      },
      undoRemove: (seq) => {
        if (chat.deletions.undo(conversation, seq)) announcements.say(timelineWords.deletionUndone);
      },
      copyText: (message) => void copy(message.text, timelineWords.textCopied),
      openMenu: (seq, anchor) => {
        menu.value = menu.peek()?.seq === seq ? null : { seq, anchor };
      },
      itemsOf: (seq) => {
        const entry = chat.entryOf(conversation);
        const message = chat.pages.get(conversation, seq);
        if (entry === undefined || message === undefined) return [];
        const { mayEdit, mayDelete } = permissionsOf(chat, entry, message);
        const isThere = message.deleted !== true && chat.deletions.stateOf(conversation, seq) === null;
        const item = (label: string, keyName: string | null, run: () => void): MenuItem => ({ label, keyName, run });
        return [
          ...(isThere && message.text !== ''
            ? [item(timelineWords.copyText, 'C', () => actions.copyText(message))]
            : []),
          item(timelineWords.copyLink, null, () => void copy(linkOf(seq), timelineWords.linkCopied)),
          ...(isThere && mayEdit ? [item(words.edit, 'E', () => actions.edit(message))] : []),
          ...(isThere && mayDelete ? [item(words.delete, 'Delete', () => actions.remove(seq))] : []),
        ];
      },
    };
    return actions;
  }, [conversation]);
}

/** The menu that is open, and what the page says about the last action. */
export function ActionOverlays({ actions }: { readonly actions: MessageActions }) {
  const open = actions.menu.value;
  const feedback = actions.feedback.value;
  useEffect(() => {
    if (feedback === null) return undefined;
    const timer = setTimeout(() => {
      actions.feedback.value = null;
    }, FEEDBACK_MS);
    return () => clearTimeout(timer);
  }, [feedback]);
  const close = useMemo(
    () => () => {
      actions.menu.value = null;
    },
    [actions],
  );
  return (
    <>
      <p class={feedback === null ? 'unseen' : 'toast'} role="status">
        {feedback ?? ''}
      </p>
      {open === null ? null : (
        <MessageMenu
          key={open.seq}
          label={timelineWords.menuOf(open.seq)}
          items={actions.itemsOf(open.seq)}
          anchor={open.anchor}
          returnFocusTo={open.anchor.closest('article') ?? open.anchor}
          onClose={close}
        />
      )}
    </>
  );
}
