import { useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect } from 'preact/hooks';
import { sanitize } from '../../client/core/safe-text.ts';
import type { Message } from '../../client/core/shapes.ts';
import type { EditedMessageSignal } from '../conversation/message-actions.tsx';
import type { ChatState } from '../core/chat-state.ts';
import type { ConversationEntry } from '../core/unread.ts';
import { hasModifier } from '../timeline/feed-keys.ts';
import { timelineWords } from '../words/timeline-words.ts';
import { words } from '../words/words.ts';
import { AttachButton, AttachedFiles, DropTarget, useAttaching } from './attach-files.tsx';
import { MentionList, mentionAttributes, useMentions } from './mentions.tsx';
import { conversationTitle } from './sidebar.tsx';

/**
 * The maximum number of characters of a text: the default of `limits.text-length`. A server with a lower limit refuses
 * longer texts.
 */
const MAX_TEXT_CHARACTERS = 40_000;
const COUNTER_FROM_CHARACTERS = 38_000;
/** The number of newest messages in which ↑ searches the person's last message. */
const SEARCHED_LAST_MESSAGES = 200;

interface ComposerProps {
  readonly chat: ChatState;
  readonly entry: ConversationEntry;
  readonly edited: EditedMessageSignal;
  readonly field: RefObject<HTMLTextAreaElement | null>;
  readonly onSent: () => void;
}

/** The form in which a person writes messages. */
export function Composer(props: ComposerProps) {
  const { chat, entry, edited, field } = props;
  const { text, left, canSend, problem, setText, submit, attach, onKeyDown, onPaste } = useWriting(props);
  const mentions = useMentions({ chat, conversation: entry.info.id, field, setText });
  const isEditing = edited.value !== null;
  const title = conversationTitle(entry);
  const label = words.writeTo(title);
  if (entry.info.archived) return <p class="quiet composer">{words.archivedHere}</p>;
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {isEditing ? <EditingLine edited={edited} ownId={chat.account.id} /> : null}
      {problem === null ? null : (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      {isEditing ? null : (
        <AttachedFiles
          chat={chat}
          files={chat.attachments.filesOf(entry.info.id)}
          onRemoved={() => field.current?.focus()}
        />
      )}
      {isEditing ? null : <DropTarget title={title} onFiles={attach} />}
      <MentionList people={mentions.people} activeIndex={mentions.at} onChoose={mentions.accept} />
      <div class="composer-row">
        {isEditing ? null : <AttachButton onFiles={attach} />}
        <textarea
          ref={field}
          rows={1}
          dir="auto"
          aria-label={label}
          placeholder={label}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            mentions.onCaret();
          }}
          onKeyDown={(event) => mentions.onKeyDown(event) || onKeyDown(event)}
          onKeyUp={mentions.onCaret}
          onClick={mentions.onCaret}
          onBlur={mentions.close}
          {...mentionAttributes(mentions)}
          onPaste={onPaste}
        />
        <button class="primary" type="submit" disabled={!canSend}>
          {isEditing ? words.save : words.send}
        </button>
      </div>
      <CharactersLeft left={left} />
    </form>
  );
}

/** The number of characters that a text may still have; shown only near the limit. */
function CharactersLeft({ left }: { readonly left: number }) {
  if (left > MAX_TEXT_CHARACTERS - COUNTER_FROM_CHARACTERS) return null;
  return (
    <p class={left < 0 ? 'error' : 'quiet'} role="status">
      {words.charactersLeft(left)}
    </p>
  );
}

function EditingLine({ edited, ownId }: Pick<ComposerProps, 'edited'> & { readonly ownId: number }) {
  const { sender, label, cards = [] } = edited.value!;
  const isOwn = sender.kind === 'user' && sender.id === ownId;
  return (
    <p class="quiet editing">
      {isOwn ? words.editing : timelineWords.editingOf(sanitize(label ?? sender.name), cards.length > 0)}{' '}
      <button
        class="link"
        type="button"
        onClick={() => {
          edited.value = null;
        }}
      >
        {words.cancel}
      </button>
    </p>
  );
}

/** The state of the text field. Texts always go to the conversation that was open when the field was created. */
function useWriting({ chat, entry, edited, field, onSent }: ComposerProps) {
  const conversation = entry.info.id;
  const editedText = useSignal('');
  const problem = useSignal<string | null>(null);
  const version = useSignal(0);
  // Subscribes to changes of the text here. Drafts are no signals, so that typing draws only this field again.
  void version.value;
  const message = edited.value;
  const text = message === null ? chat.drafts.textOf(conversation) : editedText.value;
  const left = MAX_TEXT_CHARACTERS - countCharacters(text);

  useEffect(() => {
    if (message !== null) editedText.value = message.text;
    field.current?.focus({ preventScroll: true });
  }, [message]);
  useLayoutEffect(() => fitHeight(field.current), [text]);
  const setText = (next: string): void => {
    if (message === null) {
      chat.drafts.set(conversation, next);
      if (next.trim() !== '') chat.typing.onTyped(conversation);
    } else editedText.value = next;
    version.value += 1;
  };
  const files = chat.attachments.filesOf(conversation);
  const hasContent = text.trim() !== '' || (message === null ? files : (message.attachments ?? [])).length > 0;
  const canSend = hasContent && left >= 0 && (message !== null || files.every(({ stored }) => stored !== null));
  const submit = (): void => {
    if (!canSend) return;
    // If the person clicked the button to send, the button has the focus: the text field gets the focus back.
    field.current?.focus({ preventScroll: true });
    if (message !== null) {
      const save = text === message.text ? Promise.resolve(true) : chat.edit(conversation, message.seq, text);
      // If the edit fails, the text stays in the field.
      void save.then((isDone) => {
        if (isDone && edited.value === message) edited.value = null;
      });
      return;
    }
    problem.value = chat.sendMessage(conversation, text) ? null : words.tooManyWait;
    if (problem.value !== null) return;
    setText('');
    chat.drafts.storeNow();
    onSent();
  };
  const { attach, onPaste } = useAttaching({ chat, conversation, field, problem, isEditing: message !== null });
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit();
    else if (event.key === 'Escape' && message !== null) edited.value = null;
    else if (event.key === 'ArrowUp' && !hasModifier(event) && text === '' && message === null)
      edited.value = lastOwnMessage(chat, entry);
    else return;
    event.preventDefault();
  };
  return { text, left, canSend, problem: problem.value, setText, submit, attach, onKeyDown, onPaste };
}

/** Counts as the server does: a character that takes two UTF-16 units counts once. */
function countCharacters(text: string): number {
  if (text.length <= COUNTER_FROM_CHARACTERS) return text.length;
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

function fitHeight(field: HTMLTextAreaElement | null): void {
  if (field === null) return;
  field.style.height = 'auto';
  field.style.height = `${field.scrollHeight + 2}px`;
}

function lastOwnMessage(chat: ChatState, { info, lastSeq, firstSeq }: ConversationEntry): Message | null {
  for (let seq = lastSeq; seq >= Math.max(firstSeq, lastSeq - SEARCHED_LAST_MESSAGES); seq -= 1) {
    const message = chat.pages.get(info.id, seq);
    const isOwn = message?.sender.kind === 'user' && message.sender.id === chat.account.id;
    if (message !== undefined && isOwn && message.deleted !== true && chat.deletions.stateOf(info.id, seq) === null)
      return message;
  }
  return null;
}
