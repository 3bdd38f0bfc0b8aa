import { settingsWords } from '../../words/settings-words.ts';

const DAY_S = 24 * 60 * 60;
/** The lifetimes of a secret to choose from; null: it is valid until it is revoked. */
const LIFETIME_DAYS = [30, 90, 365, null] as const;

/** The value of the field for no time limit. */
export const NO_TIME_LIMIT = '';

/** The chosen lifetime in seconds; null: no time limit. */
export function secondsOf(days: string): number | null {
  return days === NO_TIME_LIMIT ? null : Number(days) * DAY_S;
}

/** A field for the days after which a secret expires. `days` is a signal. */
export function LifetimeField({ days }: { readonly days: { value: string } }) {
  return (
    <label>
      {settingsWords.validFor}
      <select
        value={days.value}
        onChange={(event) => {
          days.value = event.currentTarget.value;
        }}
      >
        {LIFETIME_DAYS.map((each) => (
          <option key={each} value={each === null ? NO_TIME_LIMIT : String(each)}>
            {each === null ? settingsWords.noTimeLimit : settingsWords.days(each)}
          </option>
        ))}
      </select>
    </label>
  );
}
