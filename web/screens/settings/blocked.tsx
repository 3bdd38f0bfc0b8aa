import { useMemo } from 'preact/hooks';
import { sanitize } from '../../../client/core/safe-text.ts';
import { AccountApi } from '../../core/account-api.ts';
import { dateOf } from '../../words/dates.ts';
import { settingsWords } from '../../words/settings-words.ts';
import { useRemote } from '../remote.tsx';
import type { SettingsPartProps } from './part-props.ts';
import { PartState } from './part-state.tsx';

/** The blocked people, who cannot send private messages to the account. */
export function BlockedPeople({ chat }: SettingsPartProps) {
  const api = useMemo(() => new AccountApi(chat.api), [chat]);
  const blocked = useRemote(() => api.blocked(), { chat, rereadsOnReconnect: true });
  return (
    <>
      <p class="quiet">{settingsWords.blockedAre}</p>
      <PartState chat={chat} remote={blocked} emptyText={settingsWords.noBlocked} />
      <ul class="settings-list">
        {(blocked.value ?? []).map(({ id, nick, name, at }) => (
          <li key={id}>
            <div class="settings-item">
              <span dir="auto">
                {sanitize(name)} (@{nick})
              </span>
              <span class="quiet">{settingsWords.blockedAt(dateOf(at))}</span>
            </div>
            <button type="button" disabled={blocked.isBusy} onClick={() => void blocked.change(() => api.unblock(id))}>
              {settingsWords.unblock}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
