import { useComputed, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { sanitize } from '../../client/core/safe-text.ts';
import type { Member } from '../core/group-api.ts';
import { PersonLink } from '../timeline/person-link.tsx';
import { words } from '../words/words.ts';
import { useAttempt } from './attempt.ts';
import { Problem } from './modal.tsx';
import type { PanelPartProps } from './panel-part.ts';
import { FindAccount } from './people/find-account.tsx';

/** The shown members. `next`: the value of `after` in the request for the next page; null: there is none. */
interface MemberList {
  readonly members: readonly Member[];
  readonly next: string | null;
}

/** The members of the group. Each name opens the person's card, in which their role can be changed. */
export function GroupMembers(part: PanelPartProps) {
  const { api, entry, mayManage } = part;
  const { problem, isBusy, run } = useAttempt();
  const { list, load, showMore } = useMembers(part, run);
  const online = useOnline(part, list?.members.length ?? 0);
  const searchText = useSignal('');
  const add = (account: number): void =>
    void run(async () => {
      await api.addMember(account);
      await load();
    });
  return (
    <section>
      <h3>{words.members(entry.info.members)}</h3>
      <Problem sentence={problem} />
      {mayManage && !entry.info.archived ? (
        <FindAccount
          api={part.chat.api}
          label={words.addMember}
          text={searchText}
          excludedIds={new Set(list?.members.map(({ id }) => id))}
          isBusy={isBusy}
          describe={words.addAccount}
          onChoose={({ id }) => add(id)}
        />
      ) : null}
      {list === null ? <p class="quiet">{words.loading}</p> : null}
      <ul class="members">
        {(list?.members ?? []).map((member) => (
          <MemberRow key={member.id} part={part} member={member} online={online} />
        ))}
      </ul>
      {list?.next === null || list === null ? null : (
        <button type="button" disabled={isBusy} onClick={() => void run(showMore)}>
          {words.showMore}
        </button>
      )}
    </section>
  );
}

/** The shown members. They are read again after a change of the members. */
function useMembers({ chat, api, entry }: PanelPartProps, run: (work: () => Promise<void>) => Promise<boolean>) {
  const list = useSignal<MemberList | null>(null);
  const load = async (): Promise<void> => {
    // Reads at least as many members as the list shows now.
    const wantedCount = list.value?.members.length ?? 0;
    let { members, next } = await api.members(null);
    while (next !== null && members.length < wantedCount) {
      const page = await api.members(next);
      members = [...members, ...page.members];
      next = page.next;
    }
    list.value = { members, next };
  };
  const showMore = async (): Promise<void> => {
    const shown = list.value;
    if (shown === null || shown.next === null) return;
    const page = await api.members(shown.next);
    list.value = { members: [...shown.members, ...page.members], next: page.next };
  };
  useEffect(() => void run(load), [api]);
  const groupChange = chat.groupChange.value;
  useEffect(() => {
    if (groupChange === null) return;
    const { conversation } = groupChange;
    // Does not use `run`, which would disable the buttons while a person uses them. After a failure the former list
    // stays.
    if (conversation === null || conversation === entry.info.id) void load().catch(() => {});
  }, [groupChange]);
  return { list: list.value, load, showMore };
}

/** The members who are online. The server reports them only for conversations of at most 200 members. */
function useOnline({ chat, entry }: PanelPartProps, memberCount: number): { readonly value: ReadonlySet<number> } {
  const online = useSignal<ReadonlySet<number>>(new Set());
  useEffect(() => {
    if (memberCount === 0) return;
    // A failure is ignored: the list only lacks the marks of who is online.
    void chat.api.onlineAccounts(entry.info.id).then(
      (accounts) => {
        online.value = new Set(accounts);
      },
      () => {},
    );
    // Fetched again after each change of the members: the server does not report that a new member was already online.
  }, [chat, entry.info.id, memberCount]);
  const latest = chat.presence.value;
  useEffect(() => {
    if (latest === null) return;
    const next = new Set(online.peek());
    if (latest.online) next.add(latest.account);
    else next.delete(latest.account);
    online.value = next;
  }, [latest]);
  return online;
}

interface MemberRowProps {
  readonly part: PanelPartProps;
  readonly member: Member;
  readonly online: { readonly value: ReadonlySet<number> };
}

function MemberRow({ part, member, online }: MemberRowProps) {
  const { id, nick, name, kind, role } = member;
  const isOnline = useComputed(() => online.value.has(id)).value;
  const isOwn = id === part.chat.account.id;
  return (
    <li>
      <span
        class={isOnline ? 'dot online' : 'dot'}
        role="img"
        aria-label={isOnline ? words.online : words.offlineNow}
      />
      <PersonLink class="member-name" person={{ user: id, name, label: null }}>
        <bdi>{sanitize(name)}</bdi> <span class="quiet">@{sanitize(nick)}</span>
        {kind === 'bot' ? <span class="mark">{words.bot}</span> : null}
        {isOwn ? <span class="quiet"> {words.you}</span> : null}
      </PersonLink>
      {role === 'member' ? null : <span class="quiet">{role === 'owner' ? words.owner : words.admin}</span>}
    </li>
  );
}
