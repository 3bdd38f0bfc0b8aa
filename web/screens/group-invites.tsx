import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Invite } from '../core/group-api.ts';
import { copyText } from '../timeline/copy-text.ts';
import { momentOf } from '../words/dates.ts';
import { peopleWords } from '../words/people-words.ts';
import { words } from '../words/words.ts';
import { useAttempt } from './attempt.ts';
import { ConfirmButton } from './confirm-button.tsx';
import { CheckField } from './fields.tsx';
import { Problem } from './modal.tsx';
import type { PanelPart } from './panel-part.ts';
import { QrCode } from './people/qr-code.tsx';

const DAY_S = 24 * 60 * 60;
/** Days that an invitation holds; null: without end. */
const VALID_DAYS = [1, 7, 30, null] as const;
const USUAL_VALID = '7';

/** The links by which others join. */
export function GroupInvites({ api }: PanelPart) {
  const { problem, isBusy, run } = useAttempt();
  const invites = useSignal<readonly Invite[] | null>(null);
  const load = async (): Promise<void> => {
    invites.value = await api.invites();
  };
  useEffect(() => void run(load), [api]);
  const change = (work: () => Promise<unknown>): void =>
    void run(async () => {
      await work();
      await load();
    });
  return (
    <section>
      <h3>{words.invitations}</h3>
      <Problem sentence={problem} />
      <CreateInvite isBusy={isBusy} onCreate={(validS, uses) => change(() => api.createInvite(validS, uses))} />
      <ul class="invites">
        {(invites.value ?? []).map((invite) => (
          <InviteRow
            key={invite.id}
            invite={invite}
            isBusy={isBusy}
            onRevoke={() => change(() => api.revokeInvite(invite.id))}
          />
        ))}
      </ul>
    </section>
  );
}

interface CreateInviteProps {
  readonly isBusy: boolean;
  /** Null: without end; as many as come. */
  readonly onCreate: (validS: number | null, maxUses: number | null) => void;
}

function CreateInvite({ isBusy, onCreate }: CreateInviteProps) {
  const valid = useSignal(USUAL_VALID);
  const isSingle = useSignal(false);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onCreate(valid.value === '' ? null : Number(valid.value) * DAY_S, isSingle.value ? 1 : null);
      }}
    >
      <label>
        {words.inviteHolds}
        <select
          value={valid}
          onChange={(event) => {
            valid.value = event.currentTarget.value;
          }}
        >
          {VALID_DAYS.map((days) => (
            <option key={days} value={days === null ? '' : String(days)}>
              {days === null ? words.withoutEnd : words.days(days)}
            </option>
          ))}
        </select>
      </label>
      <CheckField label={words.forOnePerson} checked={isSingle} />
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
  readonly isBusy: boolean;
  readonly onRevoke: () => void;
}

function InviteRow({ invite, isBusy, onRevoke }: InviteRowProps) {
  const { link, expires_at: expiresAt, uses, max_uses: maxUses } = invite;
  const field = useRef<HTMLInputElement>(null);
  const copied = useSignal<string | null>(null);
  const isCodeShown = useSignal(false);
  const copy = async (): Promise<void> => {
    copied.value = (await copyText(link)) ? words.copied : words.copyByKeys;
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
          aria-expanded={isCodeShown.value}
          onClick={() => {
            isCodeShown.value = !isCodeShown.value;
          }}
        >
          {peopleWords.showQrCode}
        </button>
      </div>
      {isCodeShown.value ? <QrCode text={link} label={peopleWords.qrCode} /> : null}
      <p class="quiet" role="status">
        {copied.value ?? ''}
      </p>
      <p class="quiet">
        {words.uses(uses, maxUses)} · {expiresAt === null ? words.withoutEnd : words.holdsUntil(momentOf(expiresAt))}
      </p>
      <ConfirmButton label={words.revoke} question={words.revokeQuestion} isBusy={isBusy} onConfirm={onRevoke} />
    </li>
  );
}
