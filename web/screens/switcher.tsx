import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ChatState } from '../core/chat-state.ts';
import { words } from '../words/words.ts';
import { conversationTitle } from './sidebar.tsx';

const MAX_SHOWN_CONVERSATIONS = 12;

interface SwitcherProps {
  readonly chat: ChatState;
  /** Called with the chosen conversation; null: the person closed the dialog. */
  readonly onChoose: (conversation: number | null) => void;
}

/** Finds a conversation by a part of its title. */
export function Switcher({ chat, onChoose }: SwitcherProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const text = useSignal('');
  const chosenIndex = useSignal(0);
  useEffect(() => dialog.current?.showModal(), []);
  const wanted = text.value.trim().toLowerCase();
  const found = (chat.conversations.value ?? [])
    .filter((entry) => conversationTitle(entry).toLowerCase().includes(wanted))
    .slice(0, MAX_SHOWN_CONVERSATIONS);
  const activeIndex = Math.min(chosenIndex.value, found.length - 1);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') chosenIndex.value = Math.min(activeIndex + 1, found.length - 1);
    else if (event.key === 'ArrowUp') chosenIndex.value = Math.max(activeIndex - 1, 0);
    else if (event.key === 'Enter' && !event.isComposing) onChoose(found[activeIndex]?.info.id ?? null);
    else return;
    event.preventDefault();
  };
  return (
    <dialog class="switcher" ref={dialog} aria-label={words.switchTo} onClose={() => onChoose(null)}>
      <input
        type="text"
        autocomplete="off"
        aria-label={words.switchTo}
        placeholder={words.switchTo}
        role="combobox"
        aria-expanded={found.length > 0}
        aria-controls={found.length === 0 ? undefined : 'switcher-list'}
        aria-activedescendant={found[activeIndex] === undefined ? undefined : `switch-${found[activeIndex].info.id}`}
        value={text}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          chosenIndex.value = 0;
        }}
        onKeyDown={onKeyDown}
      />
      {found.length === 0 ? null : (
        <ul role="listbox" id="switcher-list" aria-label={words.conversations}>
          {found.map((entry, index) => (
            <li
              key={entry.info.id}
              id={`switch-${entry.info.id}`}
              role="option"
              aria-selected={index === activeIndex}
              dir="auto"
              onClick={() => onChoose(entry.info.id)}
            >
              {conversationTitle(entry)}
            </li>
          ))}
        </ul>
      )}
      <div role="status">{found.length === 0 ? <p class="quiet">{words.nothingFound}</p> : null}</div>
    </dialog>
  );
}
