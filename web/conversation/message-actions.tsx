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

/** The time for which the page shows the result of copying a text to the clipboard. */
const FEEDBACK_MS = 3_000;

/** The actions that the server allows the account on a message; the page does not offer the others. */
export function permissionsOf(chat: ChatState, { info }: ConversationEntry, message: Message | undefined) {
  const isOwn = message?.sender.kind === 'user' && message.sender.id === chat.account.id;
  const isManager = info.kind === 'group' && info.role !== 'member';
  const mayEdit = !info.archived && (isOwn || isManager);
  return { mayEdit, mayDelete: mayEdit || isManager };
}

/** A signal of Preact whose value may be set. */
export interface WritableSignal<Value> {
  value: Value;
  /** Returns the value without subscribing the calling component to its changes. */
  peek(): Value;
}

export interface OpenMenu {
  readonly seq: number;
  readonly anchor: HTMLElement;
}

/** The actions of people on messages of the open conversation, with their state. */
export interface MessageActions extends RowActions {
  readonly menu: WritableSignal<OpenMenu | null>;
  /** The result of the last copy, as a sentence; null: there was none in the last 3 seconds. */
  readonly feedback: WritableSignal<string | null>;
  /** `copiedSentence`: the sentence that the page shows once the text is in the clipboard. */
  readonly copy: (text: string, copiedSentence: string) => void;
  /** The picture that the viewer shows; null: the viewer is closed. */
  readonly openedPicture: WritableSignal<PictureFile | null>;
  /** The message that flashes because the page has just scrolled to it. */
  readonly flashedSeq: WritableSignal<number | null>;
}

/** The message that the composer edits, as a signal; null: the composer writes a new message. */
export interface EditedMessageSignal {
  value: Message | null;
}

interface ActionsOptions {
  readonly chat: ChatState;
  readonly conversation: number;
  readonly edited: EditedMessageSignal;
  readonly announcements: Announcements;
}

/** Returns the same object as long as the conversation is open: a new object would make Preact draw all rows again. */
export function useMessageActions(options: ActionsOptions): MessageActions {
  const { chat, conversation, edited, announcements } = options;
  const menu = useSignal<OpenMenu | null>(null);
  const feedback = useSignal<string | null>(null);
  const openedPicture = useSignal<PictureFile | null>(null);
  const flashedSeq = useSignal<number | null>(null);
  return useMemo(() => {
    const copy = async (text: string, copiedSentence: string): Promise<void> => {
      const isCopied = await copyText(text);
      feedback.value = isCopied ? copiedSentence : timelineWords.cannotCopy;
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
      copy: (text, copiedSentence) => void copy(text, copiedSentence),
      openMenu: (seq, anchor) => {
        menu.value = menu.peek()?.seq === seq ? null : { seq, anchor };
      },
    };
    return actions;
  }, [conversation]);
}

/** Shows for 3 seconds whether a text was copied. */
export function CopyFeedback({ actions }: { readonly actions: MessageActions }) {
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
