import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { sanitize } from '../../../client/core/safe-text.ts';
import type { Api, FoundAccount } from '../../core/api.ts';
import { words } from '../../words/words.ts';
import { TextField } from '../fields.tsx';
import { Problem } from '../modal.tsx';

/** A search begins after this time without typing. */
const SEARCH_AFTER_MS = 200;

interface FindAccountProps {
  readonly api: Api;
  readonly label: string;
  /** A signal with the typed text. */
  readonly text: { value: string };
  /** Accounts that the list does not offer. */
  readonly excludedIds: ReadonlySet<number>;
  /** True: the field gets the focus when it is first shown. */
  readonly takesFocus?: boolean;
  readonly isBusy: boolean;
  /** Returns the label of the button that chooses an account. */
  readonly describe: (name: string, nick: string) => string;
  readonly onChoose: (account: FoundAccount) => void;
}

/** Finds people by nick or name, and chooses one. */
export function FindAccount(props: FindAccountProps) {
  const { api, label, text, excludedIds, takesFocus = false, isBusy, describe, onChoose } = props;
  const { found, problem } = useFoundAccounts(api, text.value.trim().replace(/^@/, ''));
  const offered = (found ?? []).filter(({ id }) => !excludedIds.has(id));
  const choose = (account: FoundAccount): void => {
    text.value = '';
    onChoose(account);
  };
  return (
    <div
      class="find-account"
      onKeyDown={(event) => {
        const [only] = offered;
        if (event.key !== 'Enter' || !(event.target instanceof HTMLInputElement) || isBusy) return;
        if (only === undefined || offered.length > 1) return;
        // Prevents the default action of Enter: it would also submit a form that contains this field.
        event.preventDefault();
        choose(only);
      }}
    >
      <TextField label={label} text={text} maxLength={64} takesFocus={takesFocus} />
      <Problem sentence={problem} />
      <div role="status">
        {found !== null && offered.length === 0 ? <p class="quiet">{words.nobodyFound}</p> : null}
      </div>
      <ul class="found">
        {offered.map((account) => (
          <li key={account.id}>
            <button type="button" disabled={isBusy} onClick={() => choose(account)}>
              <span dir="auto">{describe(sanitize(account.name), sanitize(account.nick))}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Searches 200 ms after the text was changed last, and ignores answers to earlier searches. */
function useFoundAccounts(api: Api, wanted: string) {
  const found = useSignal<readonly FoundAccount[] | null>(null);
  const problem = useSignal<string | null>(null);
  useEffect(() => {
    if (wanted === '') {
      found.value = null;
      problem.value = null;
      return undefined;
    }
    let isLatest = true;
    const timer = setTimeout(() => {
      void api.searchAccounts(wanted, null).then(
        (accounts) => {
          if (!isLatest) return;
          found.value = accounts;
          problem.value = null;
        },
        (error: unknown) => {
          if (isLatest) problem.value = (error as Error).message;
        },
      );
    }, SEARCH_AFTER_MS);
    return () => {
      isLatest = false;
      clearTimeout(timer);
    };
  }, [wanted]);
  return { found: found.value, problem: problem.value };
}
