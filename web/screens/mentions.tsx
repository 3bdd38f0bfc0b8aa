import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { sanitize } from '../../client/core/safe-text.ts';
import type { FoundAccount } from '../core/api.ts';
import type { ChatState } from '../core/chat-state.ts';
import { mentionAt, matchesMention, type BegunMention } from '../text/begun-mention.ts';
import { words } from '../words/words.ts';

/** The search begins after this time without typing. */
const SEARCH_AFTER_MS = 80;
const LIST_ID = 'mention-list';

interface MentionOptions {
  readonly chat: ChatState;
  readonly conversation: number;
  readonly field: { readonly current: HTMLTextAreaElement | null };
  readonly setText: (text: string) => void;
}

/** Completes the nick of a member after the person has typed `@` and at least one character of it. */
export function useMentions({ chat, conversation, field, setText }: MentionOptions) {
  const begun = useSignal<BegunMention | null>(null);
  const dismissed = useSignal<BegunMention | null>(null);
  const chosenIndex = useSignal(0);
  const wanted = begun.value?.text ?? null;
  const found = useFoundMembers(chat, conversation, wanted);
  const isDismissed = begun.value?.atSignIndex === dismissed.value?.atSignIndex && wanted === dismissed.value?.text;
  const suggestedPeople =
    wanted === null || isDismissed
      ? []
      : found.filter((each) => each.id !== chat.account.id && matchesMention(each, wanted));
  const activeIndex = Math.min(chosenIndex.value, suggestedPeople.length - 1);
  const accept = (account: FoundAccount | undefined): void => {
    const { current } = field;
    if (current === null || begun.value === null || account === undefined) return;
    const before = `${current.value.slice(0, begun.value.atSignIndex)}@${account.nick} `;
    const text = before + current.value.slice(current.selectionEnd);
    // Sets the text first, and then the caret. When Preact later draws the field with the same text, the caret stays.
    current.value = text;
    current.setSelectionRange(before.length, before.length);
    begun.value = null;
    setText(text);
  };
  /** Returns whether the list handled the key. */
  const onKeyDown = (event: KeyboardEvent): boolean => {
    if (suggestedPeople.length === 0 || event.isComposing) return false;
    if (event.key === 'ArrowDown') chosenIndex.value = (activeIndex + 1) % suggestedPeople.length;
    else if (event.key === 'ArrowUp')
      chosenIndex.value = (activeIndex + suggestedPeople.length - 1) % suggestedPeople.length;
    else if ((event.key === 'Enter' && !event.shiftKey) || (event.key === 'Tab' && !event.shiftKey))
      accept(suggestedPeople[activeIndex]);
    else if (event.key === 'Escape') dismissed.value = begun.value;
    else return false;
    event.preventDefault();
    return true;
  };
  /** Called after each move of the caret. */
  const onCaret = (): void => {
    const { current } = field;
    const next = current === null ? null : mentionAt(current.value, current.selectionStart, current.selectionEnd);
    if (next?.atSignIndex === begun.value?.atSignIndex && next?.text === begun.value?.text) return;
    begun.value = next;
    chosenIndex.value = 0;
  };
  const close = (): void => {
    begun.value = null;
  };
  return { people: suggestedPeople, at: activeIndex, accept, onKeyDown, onCaret, close };
}

/**
 * Members whose nick or a word of their name begins with the text. The previous result stays until the server answers.
 */
function useFoundMembers(chat: ChatState, conversation: number, wanted: string | null): readonly FoundAccount[] {
  const found = useSignal<readonly FoundAccount[]>([]);
  useEffect(() => {
    if (wanted === null) {
      found.value = [];
      return undefined;
    }
    let isLatest = true;
    const timer = setTimeout(() => {
      // A failure is ignored: the person can type the whole nick.
      void chat.api.searchAccounts(wanted, conversation).then(
        (accounts) => {
          if (isLatest) found.value = accounts;
        },
        () => {},
      );
    }, SEARCH_AFTER_MS);
    return () => {
      isLatest = false;
      clearTimeout(timer);
    };
  }, [wanted]);
  return found.value;
}

/**
 * The ARIA attributes of the field. A field with several lines must not have the role `combobox`, so it has only the
 * other attributes.
 */
export function mentionAttributes({ people, at }: Pick<ReturnType<typeof useMentions>, 'people' | 'at'>) {
  const account = people[at];
  return {
    'aria-autocomplete': 'list',
    'aria-haspopup': 'listbox',
    ...(account === undefined ? {} : { 'aria-controls': LIST_ID, 'aria-activedescendant': `mention-${account.id}` }),
  } as const;
}

interface MentionListProps {
  readonly people: readonly FoundAccount[];
  readonly activeIndex: number;
  readonly onChoose: (account: FoundAccount) => void;
}

/** The list lies above the field and over the messages, so that nothing moves when it appears or disappears. */
export function MentionList({ people, activeIndex: at, onChoose }: MentionListProps) {
  return (
    <>
      <div class="unseen" role="status">
        {people.length === 0 ? '' : words.mentionsFound(people.length)}
      </div>
      {people.length === 0 ? null : (
        <ul class="mention-list" role="listbox" id={LIST_ID} aria-label={words.members(people.length)}>
          {people.map((account, index) => (
            <li
              key={account.id}
              id={`mention-${account.id}`}
              role="option"
              aria-selected={index === at}
              dir="auto"
              // Prevents the default action, which would take the focus from the text field.
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => onChoose(account)}
            >
              {sanitize(account.name)} <span class="quiet">@{sanitize(account.nick)}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
