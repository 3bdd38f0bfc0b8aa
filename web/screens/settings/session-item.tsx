import { sanitize } from '../../../client/core/safe-text.ts';
import type { AccountSession } from '../../core/account-api.ts';
import { briefMomentOf, dateOf } from '../../words/dates.ts';
import { settingsWords } from '../../words/settings-words.ts';
import { ConfirmButton } from '../confirm-button.tsx';

interface SessionItemProps {
  readonly session: AccountSession;
  /** The consequence of ending the session, as a question. */
  readonly question: string;
  readonly isBusy: boolean;
  readonly onEnd: () => void;
}

/** A session or an app password, with the button that ends it; the session of this page has no such button. */
export function SessionItem({ session, question, isBusy, onEnd }: SessionItemProps) {
  const { id, label, created_at: createdAt, used_at: lastUsedAt, expires_at: expiresAt, current } = session;
  return (
    <li>
      <div class="settings-item">
        <span dir="auto">{label === '' ? settingsWords.sessionNumber(id) : sanitize(label)}</span>
        {current ? <span class="mark">{settingsWords.thisSession}</span> : null}
        <span class="quiet">
          {settingsWords.createdAt(dateOf(createdAt))} · {settingsWords.lastUsedAt(briefMomentOf(lastUsedAt))}
          {expiresAt === null ? null : ` · ${settingsWords.expiresAt(dateOf(expiresAt))}`}
        </span>
      </div>
      {current ? null : (
        <ConfirmButton label={settingsWords.endSession} question={question} isBusy={isBusy} onConfirm={onEnd} />
      )}
    </li>
  );
}
