import { momentOf } from '../words/dates.ts';
import { words } from '../words/words.ts';
import { useAttempt } from './attempt.ts';
import type { NotificationSetting } from '../core/group-api.ts';
import { Problem } from './modal.tsx';
import type { PanelPartProps } from './panel-part.ts';

const HOUR_MS = 60 * 60 * 1_000;
const MUTE_HOURS = [1, 8, 24, 24 * 7] as const;
const LEVELS = ['all', 'mentions', 'nothing'] as const;

/** The messages of this conversation that the account is notified of, on all devices. */
export function NotificationSettings({ chat, api, entry }: PanelPartProps) {
  const { problem, isBusy, run } = useAttempt();
  const { level = 'all', muted_until: mutedUntil = null } = entry.info.notifications ?? {};
  const isMuted = mutedUntil !== null && Date.parse(mutedUntil) > Date.now();
  const set = (setting: NotificationSetting): void =>
    void run(async () => {
      await api.setNotifications(setting);
      await chat.reloadConversations();
    });
  return (
    <section>
      <h3>{words.notifications}</h3>
      <Problem sentence={problem} />
      <label>
        {words.notifyOf}
        <select
          value={level}
          disabled={isBusy}
          onChange={({ currentTarget: { value } }) => set({ level: LEVELS.find((each) => each === value) ?? 'all' })}
        >
          {LEVELS.map((each) => (
            <option key={each} value={each}>
              {words.notificationLevel[each]}
            </option>
          ))}
        </select>
      </label>
      {isMuted ? (
        <p>
          {words.mutedUntil(momentOf(mutedUntil))}{' '}
          <button class="link" type="button" disabled={isBusy} onClick={() => set({ muted_until: null })}>
            {words.unmute}
          </button>
        </p>
      ) : (
        <div class="panel-buttons" role="group" aria-label={words.mute}>
          <span class="panel-label">{words.mute}</span>
          {MUTE_HOURS.map((hours) => (
            <button
              key={hours}
              type="button"
              disabled={isBusy}
              onClick={() => set({ muted_until: new Date(Date.now() + hours * HOUR_MS).toISOString() })}
            >
              {words.hours(hours)}
            </button>
          ))}
        </div>
      )}
    </section>
  );
}
