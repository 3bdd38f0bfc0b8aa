import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { AccountApi, type AppPassword } from '../../core/account-api.ts';
import { settingsWords } from '../../words/settings-words.ts';
import { TextField } from '../fields.tsx';
import { useRemote } from '../remote.tsx';
import { LifetimeField, secondsOf, NO_TIME_LIMIT } from './lifetime-field.tsx';
import { SecretOnce } from './secret-once.tsx';
import { SessionItem } from './session-item.tsx';
import type { SettingsPartProps } from './part-props.ts';
import { PartState } from './part-state.tsx';

/** The app passwords of the account: sessions of programs that act as the person. */
export function AppPasswords({ chat }: SettingsPartProps) {
  const api = useMemo(() => new AccountApi(chat.api), [chat]);
  const created = useSignal<AppPassword | null>(null);
  const appPasswords = useRemote(async () => (await api.sessions()).filter((each) => each.app_password), {
    chat,
    rereadsOnReconnect: true,
  });
  const { value, isBusy, change } = appPasswords;
  return (
    <>
      <p class="quiet">{settingsWords.appPasswordsAre}</p>
      <PartState chat={chat} remote={appPasswords} emptyText={settingsWords.noAppPasswords} />
      <ul class="settings-list">
        {(value ?? []).map((session) => (
          <SessionItem
            key={session.id}
            session={session}
            question={settingsWords.endAppPasswordQuestion}
            isBusy={isBusy}
            onEnd={() => void change(() => api.endSession(session.id))}
          />
        ))}
      </ul>
      {created.value === null ? (
        <CreateAppPassword
          isBusy={isBusy}
          onCreate={(label, expiresInS) =>
            void change(async () => {
              created.value = await api.createAppPassword(label, expiresInS);
            })
          }
        />
      ) : (
        <SecretOnce
          label={created.value.label}
          secret={created.value.token}
          usage={settingsWords.appPasswordUsage}
          onDone={() => {
            created.value = null;
          }}
        />
      )}
    </>
  );
}

interface CreateAppPasswordProps {
  readonly isBusy: boolean;
  /** `expiresInS` null: the app password is valid until it is revoked. */
  readonly onCreate: (label: string, expiresInS: number | null) => void;
}

function CreateAppPassword({ isBusy, onCreate }: CreateAppPasswordProps) {
  const label = useSignal('');
  const days = useSignal(NO_TIME_LIMIT);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onCreate(label.value, secondsOf(days.value));
      }}
    >
      <h4>{settingsWords.createAppPassword}</h4>
      <TextField label={settingsWords.appPasswordLabel} text={label} maxLength={100} isRequired />
      <LifetimeField days={days} />
      <div class="panel-buttons">
        <button class="primary" type="submit" disabled={isBusy || label.value.trim() === ''}>
          {settingsWords.createAppPassword}
        </button>
      </div>
    </form>
  );
}
