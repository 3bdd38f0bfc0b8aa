import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { AccountApi, type Profile } from '../../core/account-api.ts';
import type { ChatState } from '../../core/chat-state.ts';
import { settingsWords } from '../../words/settings-words.ts';
import { words } from '../../words/words.ts';
import { useAttempt } from '../attempt.ts';
import { LongTextField, TextField } from '../fields.tsx';
import { Problem } from '../modal.tsx';
import { useRemote } from '../remote.tsx';
import type { SettingsPartProps } from './part-props.ts';
import { PartState } from './part-state.tsx';

/** The form for the fields of the account that others see. */
export function ProfileSettings({ chat }: SettingsPartProps) {
  const api = useMemo(() => new AccountApi(chat.api), [chat]);
  const profile = useRemote(() => api.profile(), { chat, rereadsOnReconnect: true });
  return (
    <>
      <PartState chat={chat} remote={profile} />
      {profile.value === null ? null : <ProfileForm chat={chat} api={api} profile={profile.value} />}
    </>
  );
}

interface ProfileFormProps {
  readonly chat: ChatState;
  readonly api: AccountApi;
  /** The profile at the opening of the form. */
  readonly profile: Profile;
}

function ProfileForm({ chat, api, profile }: ProfileFormProps) {
  const { problem, isBusy, run } = useAttempt();
  const name = useSignal(profile.name);
  const nick = useSignal(profile.nick);
  const about = useSignal(profile.about ?? '');
  /** The fields that were saved last, as JSON. The form says "saved" until the person changes a field. */
  const savedFieldsJson = useSignal<string | null>(null);
  const current = JSON.stringify([name.value, nick.value, about.value]);
  const save = (): void =>
    void run(async () => {
      const text = about.value.trim();
      const input = { name: name.value, nick: nick.value, about: text === '' ? null : text };
      chat.rename(await api.updateProfile(input));
      savedFieldsJson.value = current;
    });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <Problem sentence={problem} />
      <TextField label={settingsWords.ownName} text={name} maxLength={200} isRequired autocomplete="name" />
      <TextField label={settingsWords.ownNick} text={nick} maxLength={32} isRequired />
      <LongTextField label={settingsWords.ownAbout} text={about} maxLength={2_000} />
      <div class="panel-buttons">
        <button class="primary" type="submit" disabled={isBusy}>
          {words.save}
        </button>
        <span class="quiet" role="status">
          {savedFieldsJson.value === current ? settingsWords.saved : ''}
        </span>
      </div>
    </form>
  );
}
