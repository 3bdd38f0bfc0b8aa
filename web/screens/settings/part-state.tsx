import type { ChatState } from '../../core/chat-state.ts';
import { settingsWords } from '../../words/settings-words.ts';
import { RemoteState, type RemoteStateProps } from '../remote.tsx';

interface PartStateProps extends RemoteStateProps {
  readonly chat: ChatState;
}

/**
 * Shows the state of the data of a part of the settings. Without a connection, also shows that the data may be out of
 * date.
 */
export function PartState({ chat, ...state }: PartStateProps) {
  return (
    <>
      {chat.connectionProblem.value === null ? null : (
        <p class="settings-note" role="status">
          {settingsWords.noConnection}
        </p>
      )}
      <RemoteState {...state} />
    </>
  );
}
