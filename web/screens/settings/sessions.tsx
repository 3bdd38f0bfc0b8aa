import { useMemo } from 'preact/hooks';
import { AccountApi } from '../../core/account-api.ts';
import { settingsWords } from '../../words/settings-words.ts';
import { ConfirmButton } from '../confirm-button.tsx';
import { useRemote } from '../remote.tsx';
import { SessionItem } from './session-item.tsx';
import type { SettingsPartProps } from './part-props.ts';
import { PartState } from './part-state.tsx';

export function Sessions({ chat }: SettingsPartProps) {
  const api = useMemo(() => new AccountApi(chat.api), [chat]);
  const sessions = useRemote(() => api.sessions(), { chat, rereadsOnReconnect: true });
  const { value, isBusy, change } = sessions;
  const allSessions = value ?? [];
  const shown = allSessions.filter((session) => !session.app_password);
  return (
    <>
      <p class="quiet">{settingsWords.sessionsAre}</p>
      <PartState chat={chat} remote={sessions} />
      <ul class="settings-list">
        {shown.map((session) => (
          <SessionItem
            key={session.id}
            session={session}
            question={settingsWords.endSessionQuestion}
            isBusy={isBusy}
            onEnd={() => void change(() => api.endSession(session.id))}
          />
        ))}
      </ul>
      {allSessions.length < 2 ? null : (
        <ConfirmButton
          label={settingsWords.endOthers}
          question={settingsWords.endOthersQuestion}
          isBusy={isBusy}
          onConfirm={() => void change(() => api.endOtherSessions())}
        />
      )}
    </>
  );
}
