import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { sanitize } from '../../client/core/safe-text.ts';
import type { FoundMessage } from '../core/api.ts';
import type { ChatState } from '../core/chat-state.ts';
import { briefMomentOf } from '../words/dates.ts';
import { words } from '../words/words.ts';
import { Modal, Problem } from './modal.tsx';
import { conversationTitle } from './sidebar.tsx';

/** The maximum number of characters of a found text that the page shows. */
const SHOWN_CHARACTERS = 200;

interface SearchProps {
  readonly chat: ChatState;
  /** Called with the place of the chosen message; null: the person closed the search. */
  readonly onChoose: (conversation: number | null, seq: number | null) => void;
}

/** Finds messages by their words, and opens the chosen one in its conversation. */
export function Search({ chat, onChoose }: SearchProps) {
  const { text, found, problem, isBusy, search, forget } = useSearch(chat);
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  return (
    <Modal title={words.search} onClose={() => onChoose(null, null)}>
      <form
        class="modal-row"
        onSubmit={(event) => {
          event.preventDefault();
          void search();
        }}
      >
        <input
          ref={field}
          type="search"
          maxLength={200}
          aria-label={words.searchMessages}
          placeholder={words.searchMessages}
          value={text}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            if (text.value === '') forget();
          }}
        />
        <button class="primary" type="submit" disabled={isBusy.value}>
          {words.search}
        </button>
      </form>
      <Problem sentence={problem.value} />
      <div role="status">{found.value?.length === 0 ? <p class="quiet">{words.noMessageFound}</p> : null}</div>
      <ul class="found">
        {(found.value ?? []).map((message) => (
          <li key={`${message.conversation}:${message.seq}`}>
            <button type="button" onClick={() => onChoose(message.conversation, message.seq)}>
              <Found chat={chat} message={message} />
            </button>
          </li>
        ))}
      </ul>
    </Modal>
  );
}

function useSearch(chat: ChatState) {
  const text = useSignal('');
  const found = useSignal<readonly FoundMessage[] | null>(null);
  const problem = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  /** The number of the last search, by which answers to earlier searches are recognized and ignored. */
  const latestRequestNumber = useRef(0);
  const search = async (): Promise<void> => {
    const wanted = text.value.trim();
    if (wanted === '') return;
    latestRequestNumber.current += 1;
    const requestNumber = latestRequestNumber.current;
    isBusy.value = true;
    try {
      const messages = await chat.api.search(wanted);
      if (requestNumber !== latestRequestNumber.current) return;
      found.value = messages;
      problem.value = null;
    } catch (error) {
      if (requestNumber === latestRequestNumber.current) problem.value = (error as Error).message;
    } finally {
      if (requestNumber === latestRequestNumber.current) isBusy.value = false;
    }
  };
  const forgetResults = (): void => {
    latestRequestNumber.current += 1;
    found.value = null;
    problem.value = null;
    isBusy.value = false;
  };
  return { text, found, problem, isBusy, search, forget: forgetResults };
}

function Found({ chat, message }: { readonly chat: ChatState; readonly message: FoundMessage }) {
  const entry = chat.entryOf(message.conversation);
  return (
    <>
      <span class="quiet" dir="auto">
        {entry === undefined ? '' : `${conversationTitle(entry)} · `}
        {sanitize(message.sender.name)} · {briefMomentOf(message.sent_at)}
      </span>
      <span dir="auto">{message.text.slice(0, SHOWN_CHARACTERS)}</span>
    </>
  );
}
