import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { Message } from '../../client/core/shapes.ts';
import type { ChatState } from '../core/chat-state.ts';
import type { ConversationEntry } from '../core/unread.ts';
import type { Announcements } from '../timeline/announcements.ts';
import { copyText } from '../timeline/copy-text.ts';
import type { RowActions } from '../timeline/message-row.tsx';
import type { PictureFile } from '../timeline/pictures.ts';
import { timelineWords } from '../words/timeline-words.ts';

/** How long the page shows that something was copied. */
const FEEDBACK_MS = 3_000;

/** What the account may do with a message; the page does not offer what the server would refuse. */
export function permissionsOf(chat: ChatState, { info }: ConversationEntry, message: Message | undefined) {
  const isOwn = message?.sender.kind === 'user' && message.sender.id === chat.account.id;
  const isManager = info.kind === 'group' && info.role !== 'member';
  const mayEdit = !info.archived && (isOwn || isManager);
  return { mayEdit, mayDelete: mayEdit || isManager };
}

/** A signal. */
export interface Writable<Value> {
  value: Value;
  /** The value, without a subscription. */
  peek(): Value;
}

export interface OpenMenu {
  readonly seq: number;
  readonly anchor: HTMLElement;
}

/** What people do with the messages of the open conversation. */
export interface MessageActions extends RowActions {
  readonly menu: Writable<OpenMenu | null>;
  /** Whether something was copied; null: nothing was a moment ago. */
  readonly feedback: Writable<string | null>;
  /** `copied`: what the page says once the browser has the text. */
  readonly copy: (text: string, copied: string) => void;
  /** The picture that fills the window; null: none does. */
  readonly openedPicture: Writable<PictureFile | null>;
  /** The message that was jumped to a moment ago. */
  readonly flashedSeq: Writable<number | null>;
}

/** The message that the composer edits, as a signal; null: it writes a new one. */
export interface EditedMessage {
  value: Message | null;
}

interface ActionsOptions {
  readonly chat: ChatState;
  readonly conversation: number;
  readonly edited: EditedMessage;
  readonly announcements: Announcements;
}

/** The same object as long as the conversation is open: else each action would draw all rows again. */
export function useMessageActions(options: ActionsOptions): MessageActions {
  const { chat, conversation, edited, announcements } = options;
  const menu = useSignal<OpenMenu | null>(null);
  const feedback = useSignal<string | null>(null);
  const openedPicture = useSignal<PictureFile | null>(null);
  const flashedSeq = useSignal<number | null>(null);
  return useMemo(() => {
    const copy = async (text: string, copied: string): Promise<void> => {
      const isCopied = await copyText(text);
      feedback.value = isCopied ? copied : timelineWords.cannotCopy;
    };
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
      copy: (text, copied) => void copy(text, copied),
      openMenu: (seq, anchor) => {
        menu.value = menu.peek()?.seq === seq ? null : { seq, anchor };
      },
    };
    return actions;
  }, [conversation]);
}

/** What the page says about the last action. */
export function Feedback({ actions }: { readonly actions: MessageActions }) {
  const feedback = actions.feedback.value;
  useEffect(() => {
    if (feedback === null) return undefined;
    const timer = setTimeout(() => {
      actions.feedback.value = null;
    }, FEEDBACK_MS);
    return () => clearTimeout(timer);
  }, [feedback]);
  return (
    <p class={feedback === null ? 'unseen' : 'toast'} role="status">
      {feedback ?? ''}
    </p>
  );
}
