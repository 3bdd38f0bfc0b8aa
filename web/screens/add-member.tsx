import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { sanitize } from '../../client/core/safe-text.ts';
import type { Api, FoundAccount } from '../core/api.ts';
import type { Member } from '../core/group-api.ts';
import { words } from '../words/words.ts';
import { TextField } from './fields.tsx';
import { Problem } from './modal.tsx';

/** A search begins when nothing was typed for so long. */
const SEARCH_AFTER_MS = 200;

interface AddMemberProps {
  readonly api: Api;
  /** Those that are known; they are not offered. */
  readonly members: readonly Member[];
  readonly isBusy: boolean;
  readonly onAdd: (account: number) => void;
}

/** Finds people by nick or name, and adds them. */
export function AddMember({ api, members, isBusy, onAdd }: AddMemberProps) {
  const text = useSignal('');
  const { found, problem } = useFoundAccounts(api, text.value.trim().replace(/^@/, ''));
  const memberIds = new Set(members.map(({ id }) => id));
  const offered = (found ?? []).filter(({ id }) => !memberIds.has(id));
  return (
    <div class="add-member">
      <TextField label={words.addMember} text={text} maxLength={64} />
      <Problem sentence={problem} />
      <div role="status">
        {found !== null && offered.length === 0 ? <p class="quiet">{words.nobodyFound}</p> : null}
      </div>
      <ul class="found">
        {offered.map(({ id, nick, name }) => (
          <li key={id}>
            <button
              type="button"
              disabled={isBusy}
              onClick={() => {
                text.value = '';
                onAdd(id);
              }}
            >
              <span dir="auto">{words.addAccount(sanitize(name), sanitize(nick))}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Searches a moment after the last key, and takes the answer of the last search alone. */
function useFoundAccounts(api: Api, wanted: string) {
  const found = useSignal<readonly FoundAccount[] | null>(null);
  const problem = useSignal<string | null>(null);
  useEffect(() => {
    if (wanted === '') {
      found.value = null;
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
