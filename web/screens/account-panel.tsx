import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { sanitize } from '../../client/core/safe-text.ts';
import { AccountApi, type AccountSession, type Profile } from '../core/account-api.ts';
import type { ChatState } from '../core/chat-state.ts';
import { briefMomentOf } from '../words/dates.ts';
import { words } from '../words/words.ts';
import { useAttempt } from './attempt.ts';
import { ConfirmButton } from './confirm-button.tsx';
import { LongTextField, TextField } from './fields.tsx';
import { Problem } from './modal.tsx';

/** What others see of the account, and where it is signed in. */
export function AccountPanel({ chat }: { readonly chat: ChatState }) {
  const api = useMemo(() => new AccountApi(chat.api), [chat]);
  const { problem, run } = useAttempt();
  const profile = useSignal<Profile | null>(null);
  useEffect(
    () =>
      void run(async () => {
        profile.value = await api.profile();
      }),
    [api],
  );
  return (
    <>
      <Problem sentence={problem} />
      {profile.value === null ? (
        <p class="quiet">{words.loading}</p>
      ) : (
        <ProfileForm chat={chat} api={api} profile={profile.value} />
      )}
      <Sessions api={api} />
    </>
  );
}

interface ProfileFormProps {
  readonly chat: ChatState;
  readonly api: AccountApi;
  readonly profile: Profile;
}

function ProfileForm({ chat, api, profile }: ProfileFormProps) {
  const { problem, isBusy, run } = useAttempt();
  const name = useSignal(profile.name);
  const nick = useSignal(profile.nick);
  const about = useSignal(profile.about ?? '');
  /** What was saved last, to say so until something else is typed. */
  const saved = useSignal<string | null>(null);
  const current = JSON.stringify([name.value, nick.value, about.value]);
  const save = (): void =>
    void run(async () => {
      const text = about.value.trim();
      const input = { name: name.value, nick: nick.value, about: text === '' ? null : text };
      chat.rename(await api.updateProfile(input));
      saved.value = current;
    });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <h3>{words.profile}</h3>
      <Problem sentence={problem} />
      <TextField label={words.ownName} text={name} maxLength={200} isRequired autocomplete="name" />
      <TextField label={words.ownNick} text={nick} maxLength={32} isRequired />
      <LongTextField label={words.ownAbout} text={about} maxLength={2_000} />
      <div class="panel-buttons">
        <button class="primary" type="submit" disabled={isBusy}>
          {words.save}
        </button>
        <span class="quiet" role="status">
          {saved.value === current ? words.saved : ''}
        </span>
      </div>
    </form>
  );
}

function Sessions({ api }: { readonly api: AccountApi }) {
  const { problem, isBusy, run } = useAttempt();
  const sessions = useSignal<readonly AccountSession[] | null>(null);
  const load = async (): Promise<void> => {
    sessions.value = await api.sessions();
  };
  useEffect(() => void run(load), [api]);
  const change = (work: () => Promise<void>): void =>
    void run(async () => {
      await work();
      await load();
    });
  const shown = sessions.value ?? [];
  return (
    <section>
      <h3>{words.sessions}</h3>
      <Problem sentence={problem} />
      <ul class="sessions">
        {shown.map(({ id, label, used_at: lastUsedAt, current }) => (
          <li key={id}>
            <span dir="auto">{label === '' ? words.sessionNumber(id) : sanitize(label)}</span>
            <span class="quiet">{current ? words.thisSession : words.lastUsedAt(briefMomentOf(lastUsedAt))}</span>
            {current ? null : (
              <ConfirmButton
                label={words.endSession}
                question={words.endSessionQuestion}
                isBusy={isBusy}
                onConfirm={() => change(() => api.endSession(id))}
              />
            )}
          </li>
        ))}
      </ul>
      {shown.length < 2 ? null : (
        <ConfirmButton
          label={words.endOthers}
          question={words.endOthersQuestion}
          isBusy={isBusy}
          onConfirm={() => change(() => api.endOtherSessions())}
        />
      )}
    </section>
  );
}
