import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { sanitize } from '../../../client/core/safe-text.ts';
import type { ChatState } from '../../core/chat-state.ts';
import type { DirectoryApi, PublicGroup } from '../../core/people/directory-api.ts';
import { peopleWords } from '../../words/people-words.ts';
import { words } from '../../words/words.ts';
import { TextField } from '../fields.tsx';
import { RemoteState, useRemote } from '../remote.tsx';

/** A search begins after this time without typing. */
const SEARCH_AFTER_MS = 200;

interface PublicGroupsProps {
  readonly chat: ChatState;
  readonly directory: DirectoryApi;
  readonly isBusy: boolean;
  /** Shows a group that the account is in. */
  readonly onOpen: (group: number) => void;
  readonly onJoin: (group: number) => void;
}

/** The groups that everybody may join, all or those with a text in their title. */
export function PublicGroups({ chat, directory, isBusy, onOpen, onJoin }: PublicGroupsProps) {
  const text = useSignal('');
  const wanted = useDelayed(text.value.trim());
  const remote = useRemote(() => directory.findGroups(wanted, 0), { chat, key: wanted });
  const found = remote.value;
  const showMore = (): void =>
    void remote.extend(async ({ groups, next }) => {
      if (next === null) return { groups, next };
      const page = await directory.findGroups(wanted, next);
      return { ...page, groups: [...groups, ...page.groups] };
    });
  return (
    <section>
      <h3>{peopleWords.publicGroups}</h3>
      <TextField label={peopleWords.filterGroups} text={text} maxLength={200} />
      <RemoteState remote={remote} />
      <div role="status">
        {found?.groups.length === 0 ? (
          <p class="quiet">{wanted === '' ? peopleWords.noGroupAtAll : words.noPublicGroup}</p>
        ) : null}
      </div>
      <ul class="found">
        {(found?.groups ?? []).map((group) => (
          <GroupRow
            key={group.id}
            group={group}
            isBusy={isBusy}
            onChoose={() => (group.joined ? onOpen(group.id) : onJoin(group.id))}
          />
        ))}
      </ul>
      {found === null || found.next === null ? null : (
        <button type="button" disabled={remote.isBusy} onClick={showMore}>
          {words.showMore}
        </button>
      )}
    </section>
  );
}

interface GroupRowProps {
  readonly group: PublicGroup;
  readonly isBusy: boolean;
  readonly onChoose: () => void;
}

function GroupRow({ group, isBusy, onChoose }: GroupRowProps) {
  const { title, about, members, joined: isMember } = group;
  return (
    <li>
      <button type="button" disabled={isBusy} onClick={onChoose}>
        <span dir="auto">{sanitize(title)}</span>
        {about === null ? null : (
          <span class="quiet" dir="auto">
            {sanitize(about)}
          </span>
        )}
        <span class="quiet">
          {words.members(members)} · {isMember ? words.open : words.join}
        </span>
      </button>
    </li>
  );
}

/** The text at the last pause in typing, so that not every key starts a search. */
function useDelayed(text: string): string {
  const delayed = useSignal(text);
  useEffect(() => {
    const timer = setTimeout(() => {
      delayed.value = text;
    }, SEARCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return delayed.value;
}
