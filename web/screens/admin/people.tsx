import { useSignal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import { sanitize } from '../../../client/core/safe-text.ts';
import { AdminApi, type ListedAccount, type SignInLink } from '../../core/admin/admin-api.ts';
import { adminWords } from '../../words/admin-words.ts';
import { momentOf } from '../../words/dates.ts';
import { words } from '../../words/words.ts';
import { useAttempt } from '../attempt.ts';
import { ConfirmButton } from '../confirm-button.tsx';
import { CheckField, TextField } from '../fields.tsx';
import { Problem } from '../modal.tsx';
import { QrCode } from '../people/qr-code.tsx';
import { useRemote } from '../remote.tsx';
import type { SettingsPartProps } from '../settings/part-props.ts';
import { PartState } from '../settings/part-state.tsx';
import { SecretOnce } from '../settings/secret-once.tsx';

const MAX_NICK_LENGTH = 32;
const MAX_NAME_LENGTH = 200;

/** The accounts of the installation: create them, let people in by a link, deactivate them. */
export function People({ chat }: SettingsPartProps) {
  const api = useMemo(() => new AdminApi(chat.api), [chat]);
  const shownCount = useRef(0);
  const people = useRemote(() => api.firstAccounts(shownCount.current), { chat, rereadsOnReconnect: true });
  shownCount.current = people.value?.accounts.length ?? 0;
  const link = useSignal<{ nick: string; link: SignInLink } | null>(null);
  const { problem, isBusy, run } = useAttempt();
  const next = people.value?.next ?? null;
  const showMore = (): void =>
    void people.extend(async (shown) => {
      const page = await api.accounts(shown.next ?? '');
      return { accounts: [...shown.accounts, ...page.accounts], next: page.next };
    });
  const makeLink = (nick: string): void =>
    void run(async () => {
      link.value = { nick, link: await api.createSignInLink(nick) };
    });
  return (
    <>
      <p class="quiet">{adminWords.peopleAre}</p>
      <PartState chat={chat} remote={people} />
      <Problem sentence={problem} />
      {link.value === null ? null : (
        <ShownLink
          key={link.value.link.link}
          {...link.value}
          onDone={() => {
            link.value = null;
          }}
        />
      )}
      <CreateAccount
        isBusy={people.isBusy}
        onCreate={(nick, name, isAdmin) => people.change(() => api.createAccount(nick, name, isAdmin))}
      />
      <ul class="settings-list">
        {(people.value?.accounts ?? []).map((account) => (
          <AccountItem
            key={account.id}
            account={account}
            isOwn={account.id === chat.account.id}
            isBusy={people.isBusy || isBusy}
            onLink={() => makeLink(account.nick)}
            onActivate={(isActive) => void people.change(() => api.setActive(account.nick, isActive))}
          />
        ))}
      </ul>
      {next === null ? null : (
        <button type="button" disabled={people.isBusy} onClick={showMore}>
          {words.showMore}
        </button>
      )}
    </>
  );
}

interface ShownLinkProps {
  readonly nick: string;
  readonly link: SignInLink;
  readonly onDone: () => void;
}

function ShownLink({ nick, link, onDone }: ShownLinkProps) {
  const label = adminWords.signInLinkFor(nick);
  return (
    <>
      <SecretOnce
        label={label}
        secret={link.link}
        usage={adminWords.linkIs(momentOf(link.expires_at))}
        onDone={onDone}
      />
      <QrCode text={link.link} label={label} />
    </>
  );
}

interface AccountItemProps {
  readonly account: ListedAccount;
  /** True: the account of the administrator, who cannot deactivate it. */
  readonly isOwn: boolean;
  readonly isBusy: boolean;
  readonly onLink: () => void;
  readonly onActivate: (isActive: boolean) => void;
}

function AccountItem({ account, isOwn, isBusy, onLink, onActivate }: AccountItemProps) {
  const { nick, name, role, groups, deactivated, signed_in: isSignedIn } = account;
  const marks = [
    ...(role === 'admin' ? [adminWords.admin] : role === 'bot' ? [adminWords.bot] : []),
    ...(deactivated ? [adminWords.deactivated] : isSignedIn ? [] : [adminWords.notSignedIn]),
    adminWords.groups(groups),
  ];
  return (
    <li>
      <div class="settings-item">
        <span dir="auto">
          {sanitize(name)} (@{nick})
        </span>
        <span class="quiet">{marks.join(' · ')}</span>
      </div>
      {role === 'bot' || deactivated ? null : (
        <button type="button" disabled={isBusy} aria-label={adminWords.signInLinkFor(nick)} onClick={onLink}>
          {adminWords.link}
        </button>
      )}
      {isOwn || role === 'bot' ? null : deactivated ? (
        <button type="button" disabled={isBusy} onClick={() => onActivate(true)}>
          {adminWords.activate}
        </button>
      ) : (
        <ConfirmButton
          label={adminWords.deactivate}
          question={adminWords.deactivateQuestion(nick)}
          isBusy={isBusy}
          onConfirm={() => onActivate(false)}
        />
      )}
    </li>
  );
}

interface CreateAccountProps {
  readonly isBusy: boolean;
  /** Resolves to whether the account was created. */
  readonly onCreate: (nick: string, name: string, isAdmin: boolean) => Promise<boolean>;
}

function CreateAccount({ isBusy, onCreate }: CreateAccountProps) {
  const nick = useSignal('');
  const name = useSignal('');
  const isAdmin = useSignal(false);
  const create = async (): Promise<void> => {
    if (!(await onCreate(nick.value.trim(), name.value.trim(), isAdmin.value))) return;
    [nick.value, name.value, isAdmin.value] = ['', '', false];
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void create();
      }}
    >
      <h4>{adminWords.create}</h4>
      <TextField label={adminWords.nick} text={nick} maxLength={MAX_NICK_LENGTH} isRequired />
      <TextField label={adminWords.name} text={name} maxLength={MAX_NAME_LENGTH} />
      <CheckField label={adminWords.makeAdmin} checked={isAdmin} />
      <div class="panel-buttons">
        <button class="primary" type="submit" disabled={isBusy || nick.value.trim() === ''}>
          {adminWords.create}
        </button>
      </div>
    </form>
  );
}
