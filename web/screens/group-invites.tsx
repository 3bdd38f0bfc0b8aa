import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Api } from '../core/api.ts';
import type { Invite } from '../core/group-api.ts';
import { canSignUp, readSignInWays } from '../core/sign-in/sign-in-ways.ts';
import { copyText } from '../timeline/copy-text.ts';
import { momentOf } from '../words/dates.ts';
import { peopleWords } from '../words/people-words.ts';
import { words } from '../words/words.ts';
import { useAttempt } from './attempt.ts';
import { ConfirmButton } from './confirm-button.tsx';
import { CheckField } from './fields.tsx';
import { Problem } from './modal.tsx';
import type { PanelPartProps } from './panel-part.ts';
import { QrCode } from './people/qr-code.tsx';

const DAY_S = 24 * 60 * 60;
/** The choices for the days that an invitation is valid; null: no time limit. */
const VALID_DAYS = [1, 7, 30, null] as const;
const DEFAULT_VALID_DAYS = '7';

/** The invitations of the group. */
export function GroupInvites({ chat, api, entry }: PanelPartProps) {
  const { problem, isBusy, run } = useAttempt();
  const invites = useSignal<readonly Invite[] | null>(null);
  const newestInviteId = useSignal<number | null>(null);
  const needsAccount = useNeedsAccount(chat.api);
  const load = async (): Promise<void> => {
    invites.value = await api.invites();
  };
  useEffect(() => void run(load), [api]);
  const groupChange = chat.groupChange.value;
  useEffect(() => {
    // Reads the list again, since a new member may have used an invitation. Does not use `run`, which would disable the
    // buttons while a person uses them.
    if (groupChange?.conversation === entry.info.id) void load().catch(() => {});
  }, [groupChange]);
  const change = (work: () => Promise<unknown>): void =>
    void run(async () => {
      await work();
      await load();
    });
  const create = (validS: number | null, maxUses: number | null): void =>
    change(async () => {
      newestInviteId.value = (await api.createInvite(validS, maxUses)).id;
    });
  return (
    <section>
      <h3>{words.invitations}</h3>
      <Problem sentence={problem} />
      {needsAccount ? <p class="quiet">{words.inviteNeedsAccount}</p> : null}
      <CreateInvite isBusy={isBusy} onCreate={create} />
      <ul class="invites">
        {(invites.value ?? []).map((invite) => (
          <InviteRow
            key={invite.id}
            invite={invite}
            isNewest={invite.id === newestInviteId.value}
            isBusy={isBusy}
            onRevoke={() => change(() => api.revokeInvite(invite.id))}
          />
        ))}
      </ul>
    </section>
  );
}

/** Whether an invitation cannot create an account on this server. False until the server has answered. */
function useNeedsAccount(api: Api): boolean {
  const needsAccount = useSignal(false);
  useEffect(() => {
    // A failure is ignored: the person can create invitations without this hint.
    void readSignInWays(api).then(
      (ways) => {
        needsAccount.value = !canSignUp(ways);
      },
      () => {},
    );
  }, [api]);
  return needsAccount.value;
}

interface CreateInviteProps {
  readonly isBusy: boolean;
  /** `validS` null: no time limit. `maxUses` null: no limit of uses. */
  readonly onCreate: (validS: number | null, maxUses: number | null) => void;
}

function CreateInvite({ isBusy, onCreate }: CreateInviteProps) {
  const validDays = useSignal(DEFAULT_VALID_DAYS);
  const isSingleUse = useSignal(false);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onCreate(validDays.value === '' ? null : Number(validDays.value) * DAY_S, isSingleUse.value ? 1 : null);
      }}
    >
      <label>
        {words.inviteValidFor}
        <select
          value={validDays}
          onChange={(event) => {
            validDays.value = event.currentTarget.value;
          }}
        >
          {VALID_DAYS.map((days) => (
            <option key={days} value={days === null ? '' : String(days)}>
              {days === null ? words.noTimeLimit : words.days(days)}
            </option>
          ))}
        </select>
      </label>
      <CheckField label={words.forOnePerson} checked={isSingleUse} />
      <div class="panel-buttons">
        <button type="submit" disabled={isBusy}>
          {words.createInvite}
        </button>
      </div>
    </form>
  );
}

interface InviteRowProps {
  readonly invite: Invite;
  /** Whether the person has just created the invitation. */
  readonly isNewest: boolean;
  readonly isBusy: boolean;
  readonly onRevoke: () => void;
}

function InviteRow({ invite, isNewest, isBusy, onRevoke }: InviteRowProps) {
  const { link, expires_at: expiresAt, uses, max_uses: maxUses } = invite;
  const field = useRef<HTMLInputElement>(null);
  const copyStatus = useSignal<string | null>(null);
  const isQrCodeShown = useSignal(false);
  useEffect(() => {
    if (!isNewest) return;
    // Moves the focus to the new link: it may be below the view, and the button that had the focus was disabled.
    field.current?.focus();
    field.current?.select();
  }, []);
  const copy = async (): Promise<void> => {
    copyStatus.value = (await copyText(link)) ? words.copied : words.copyByKeys;
    field.current?.select();
  };
  return (
    <li>
      <div class="modal-row">
        <input ref={field} type="text" readOnly aria-label={words.inviteLink} value={link} />
        <button type="button" onClick={() => void copy()}>
          {words.copy}
        </button>
        <button
          type="button"
          aria-expanded={isQrCodeShown.value}
          onClick={() => {
            isQrCodeShown.value = !isQrCodeShown.value;
          }}
        >
          {peopleWords.showQrCode}
        </button>
      </div>
      {isQrCodeShown.value ? <QrCode text={link} label={peopleWords.qrCode} /> : null}
      <p class="quiet">
        {words.uses(uses, maxUses)} · {expiresAt === null ? words.noTimeLimit : words.validUntil(momentOf(expiresAt))}{' '}
        <span role="status">{copyStatus.value ?? ''}</span>
      </p>
      <ConfirmButton label={words.revoke} question={words.revokeQuestion} isBusy={isBusy} onConfirm={onRevoke} />
    </li>
  );
}
