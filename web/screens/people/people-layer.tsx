import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useCallback } from 'preact/hooks';
import { sanitize } from '../../../client/core/safe-text.ts';
import type { AppState } from '../../core/app-state.ts';
import type { ChatState } from '../../core/chat-state.ts';
import { ShowPerson, type PersonReference } from '../../timeline/person-link.tsx';
import { PanelDialog } from './panel-dialog.tsx';

interface PeopleLayerProps {
  readonly state: AppState;
  readonly chat: ChatState;
  readonly children: ComponentChildren;
}

/** Opens a person's card when a name in `children` is chosen. */
export function PeopleLayer({ state, chat, children }: PeopleLayerProps) {
  const shown = useSignal<PersonReference | null>(null);
  const show = useCallback((person: PersonReference) => {
    shown.value = person;
  }, []);
  const person = shown.value;
  const route = state.route.value;
  const entry = route.screen === 'conversation' ? chat.entryOf(route.conversation) : undefined;
  const close = (): void => {
    shown.value = null;
  };
  const open = (conversation: number): void => {
    close();
    state.go({ screen: 'conversation', conversation, seq: null });
  };
  return (
    <ShowPerson.Provider value={show}>
      {children}
      {person === null ? null : (
        <PanelDialog key={person.user} title={sanitize(person.name)} onClose={close}>
          {({ PersonCard }) => <PersonCard chat={chat} reference={person} entry={entry} onOpen={open} />}
        </PanelDialog>
      )}
    </ShowPerson.Provider>
  );
}
