import { settingsWords } from '../../words/settings-words.ts';

const DAY_S = 24 * 60 * 60;
/** Null: until somebody ends it. */
const LIFETIME_DAYS = [30, 90, 365, null] as const;

/** Without end, as the field has it. */
export const WITHOUT_END = '';

/** The chosen lifetime in seconds; null: without end. */
export function secondsOf(days: string): number | null {
  return days === WITHOUT_END ? null : Number(days) * DAY_S;
}

/** After how many days a secret ends. `days` is a signal. */
export function LifetimeField({ days }: { readonly days: { value: string } }) {
  return (
    <label>
      {settingsWords.holdsFor}
      <select
        value={days.value}
        onChange={(event) => {
          days.value = event.currentTarget.value;
        }}
      >
        {LIFETIME_DAYS.map((each) => (
          <option key={each} value={each === null ? WITHOUT_END : String(each)}>
            {each === null ? settingsWords.withoutEnd : settingsWords.days(each)}
          </option>
        ))}
      </select>
    </label>
  );
}
