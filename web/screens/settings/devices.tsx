import { useMemo } from 'preact/hooks';
import { sanitize } from '../../../client/core/safe-text.ts';
import { AccountApi } from '../../core/account-api.ts';
import { dateOf } from '../../words/dates.ts';
import { settingsWords } from '../../words/settings-words.ts';
import { ConfirmButton } from '../confirm-button.tsx';
import { useRemote } from '../remote.tsx';
import type { SettingsPartProps } from './part-props.ts';
import { PartState } from './part-state.tsx';

/** The devices that the server notifies. */
export function Devices({ chat }: SettingsPartProps) {
  const api = useMemo(() => new AccountApi(chat.api), [chat]);
  const devices = useRemote(() => api.devices(), { chat, rereadsOnReconnect: true });
  return (
    <>
      <p class="quiet">{settingsWords.devicesAre}</p>
      <PartState chat={chat} remote={devices} emptyText={settingsWords.noDevices} />
      <ul class="settings-list">
        {(devices.value ?? []).map(({ id, kind, label, seen_at: lastSeenAt, current }) => (
          <li key={id}>
            <div class="settings-item">
              <span dir="auto">{label === null ? settingsWords.deviceKind(kind) : sanitize(label)}</span>
              {current ? <span class="mark">{settingsWords.thisDevice}</span> : null}
              <span class="quiet">
                {label === null ? null : `${settingsWords.deviceKind(kind)} · `}
                {settingsWords.registeredAt(dateOf(lastSeenAt))}
              </span>
            </div>
            <ConfirmButton
              label={settingsWords.removeDevice}
              question={settingsWords.removeDeviceQuestion}
              isBusy={devices.isBusy}
              onConfirm={() => void devices.change(() => api.removeDevice(id))}
            />
          </li>
        ))}
      </ul>
    </>
  );
}
