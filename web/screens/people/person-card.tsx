import { useEffect, useMemo } from 'preact/hooks';
import { sanitize } from '../../../client/core/safe-text.ts';
import type { ChatState } from '../../core/chat-state.ts';
import { GroupApi, type Member } from '../../core/group-api.ts';
import { PeopleApi, type PublicProfile } from '../../core/people/people-api.ts';
import type { ConversationEntry } from '../../core/unread.ts';
import type { PersonReference } from '../../timeline/person-link.tsx';
import { dayOf } from '../../words/dates.ts';
import { peopleWords } from '../../words/people-words.ts';
import { words } from '../../words/words.ts';
import { useAttempt } from '../attempt.ts';
import { ConfirmButton } from '../confirm-button.tsx';
import { Problem } from '../modal.tsx';
import { MemberActions, panelPartPropsOf } from './member-actions.tsx';
import { RemoteState, useRemote, type RemoteValue } from '../remote.tsx';

/** The content of a person's card. */
interface PersonCardContent {
  readonly person: PublicProfile;
  readonly isBlocked: boolean;
  /** Null: the person is not in the group, or the conversation is no group. */
  readonly member: Member | null;
  /** Null: the server does not report the presence of this person. */
  readonly isOnline: boolean | null;
}

interface PersonCardProps {
  readonly chat: ChatState;
  readonly reference: PersonReference;
  /** The conversation in which the name was chosen; undefined: none. */
  readonly entry: ConversationEntry | undefined;
  readonly onOpen: (conversation: number) => void;
}

/** A person's profile, with the actions on them: write to them, block them, change their role. */
export function PersonCard({ chat, reference, entry, onOpen }: PersonCardProps) {
  const conversation = entry?.info.id ?? null;
  const people = useMemo(() => new PeopleApi(chat.api), [chat]);
  const group = useMemo(() => new GroupApi(chat.api, conversation ?? 0), [chat, conversation]);
  const remote = useRemote(() => readCard({ people, group, reference, entry }), { chat, key: group });
  const { groupChange, presence } = chat;
  useReadAgain(remote, groupChange.value, ({ conversation: changed }) => changed === null || changed === conversation);
  useReadAgain(remote, presence.value, ({ account }) => account === remote.value?.person.id);
  const cardContent = remote.value;
  return (
    <div class="person-card">
      <RemoteState remote={remote} />
      {cardContent === null ? null : (
        <>
          <Facts content={cardContent} label={reference.label} />
          {cardContent.person.id === chat.account.id ? (
            <p class="quiet">{peopleWords.yourself}</p>
          ) : (
            <PersonActions
              chat={chat}
              people={people}
              remote={remote}
              content={cardContent}
              entry={entry}
              onOpen={onOpen}
            />
          )}
          {cardContent.member === null || entry === undefined ? null : (
            <Membership
              part={panelPartPropsOf(chat, entry, group)}
              member={cardContent.member}
              onChanged={() => void remote.read()}
            />
          )}
        </>
      )}
    </div>
  );
}

interface CardReadInput {
  readonly people: PeopleApi;
  readonly group: GroupApi;
  readonly reference: PersonReference;
  readonly entry: ConversationEntry | undefined;
}

async function readCard({ people, group, reference, entry }: CardReadInput): Promise<PersonCardContent> {
  const person = await people.find(reference.user);
  const [isBlocked, member, isOnline] = await Promise.all([
    people.isBlocked(person.id),
    entry?.info.kind === 'group' ? group.memberByNick(person.nick) : null,
    entry === undefined ? null : people.isOnline(entry.info.id, person.id),
  ]);
  // The server reports only members of the conversation as online, so for other people the value is null.
  const isInConversation = member !== null || entry?.info.peer?.id === person.id;
  return { person, isBlocked, member, isOnline: isInConversation ? isOnline : null };
}

/** Reads the card again when the value changes to one that concerns the card. */
function useReadAgain<Value>(
  { read }: Pick<RemoteValue<unknown>, 'read'>,
  watchedValue: Value | null,
  concerns: (value: Value) => boolean,
): void {
  const initialValue = useMemo(() => watchedValue, []);
  useEffect(() => {
    if (watchedValue !== null && watchedValue !== initialValue && concerns(watchedValue)) void read();
  }, [watchedValue]);
}

function Facts({ content, label }: { readonly content: PersonCardContent; readonly label: string | null }) {
  const { person, member, isOnline } = content;
  const { name, nick, kind, role, about, created_at: createdAt } = person;
  return (
    <>
      <p>
        <strong dir="auto">{sanitize(name)}</strong> <span class="quiet">@{sanitize(nick)}</span>{' '}
        {kind === 'bot' ? <span class="mark">{words.bot}</span> : null}
      </p>
      {label === null ? null : (
        <p class="quiet" dir="auto">
          {peopleWords.signsAs(sanitize(label))}
        </p>
      )}
      {isOnline === null ? null : (
        <p class="presence">
          <span class={isOnline ? 'dot online' : 'dot'} aria-hidden="true" />{' '}
          {isOnline ? words.online : words.offlineNow}
        </p>
      )}
      {about === null || about === '' ? null : (
        <p class="about-text" dir="auto">
          {about}
        </p>
      )}
      <p class="quiet">
        {[
          member === null ? null : peopleWords.roleInGroup(member.role),
          role === 'admin' ? peopleWords.administrator : null,
          peopleWords.accountSince(dayOf(createdAt)),
        ]
          .filter((each) => each !== null)
          .join(' · ')}
      </p>
    </>
  );
}

interface PersonActionsProps {
  readonly chat: ChatState;
  readonly people: PeopleApi;
  readonly remote: RemoteValue<PersonCardContent>;
  readonly content: PersonCardContent;
  readonly entry: ConversationEntry | undefined;
  readonly onOpen: (conversation: number) => void;
}

/** The buttons to write to a person and to block them. */
function PersonActions({ chat, people, remote, content, entry, onOpen }: PersonActionsProps) {
  const { problem, isBusy, run } = useAttempt();
  const { person, isBlocked } = content;
  const nick = sanitize(person.nick);
  const setBlocked = (next: boolean): void =>
    void run(async () => {
      await people.setBlocked(person.id, next);
      await remote.read();
    });
  const openPrivateConversation = (): void =>
    void run(async () => {
      const conversation = await chat.api.openPrivateConversation(person.id);
      await chat.reloadConversations();
      onOpen(conversation);
    });
  return (
    <>
      <Problem sentence={problem} />
      {isBlocked ? <p class="quiet">{peopleWords.isBlocked(nick)}</p> : null}
      <div class="panel-buttons">
        {isBlocked || entry?.info.peer?.id === person.id ? null : (
          <button class="primary" type="button" disabled={isBusy} onClick={openPrivateConversation}>
            {peopleWords.writePrivately}
          </button>
        )}
        {isBlocked ? (
          <button type="button" disabled={isBusy} onClick={() => setBlocked(false)}>
            {peopleWords.unblock}
          </button>
        ) : (
          <ConfirmButton
            label={peopleWords.block}
            question={peopleWords.blockQuestion(nick)}
            isBusy={isBusy}
            onConfirm={() => setBlocked(true)}
          />
        )}
      </div>
    </>
  );
}

interface MembershipProps {
  readonly part: ReturnType<typeof panelPartPropsOf>;
  readonly member: Member;
  readonly onChanged: () => void;
}

function Membership({ part, member, onChanged }: MembershipProps) {
  const { problem, isBusy, run } = useAttempt();
  const change = (work: () => Promise<void>): void =>
    void run(work).then((isDone) => {
      if (isDone) onChanged();
    });
  return (
    <>
      <Problem sentence={problem} />
      <MemberActions part={part} member={member} isBusy={isBusy} runChange={change} />
    </>
  );
}
