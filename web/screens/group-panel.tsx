import { useMemo } from 'preact/hooks';
import type { ChatState } from '../core/chat-state.ts';
import { GroupApi } from '../core/group-api.ts';
import type { ConversationEntry } from '../core/unread.ts';
import { words } from '../words/words.ts';
import { useAttempt } from './attempt.ts';
import { ConfirmButton } from './confirm-button.tsx';
import { GroupAbout } from './group-about.tsx';
import { GroupInvites } from './group-invites.tsx';
import { GroupMembers } from './group-members.tsx';
import { Problem } from './modal.tsx';
import { NotificationSettings } from './notification-settings.tsx';
import type { PanelPartProps } from './panel-part.ts';
import { panelPartPropsOf } from './people/member-actions.tsx';
import { PersonCard } from './people/person-card.tsx';
import { PostingHint } from './posting-hint.tsx';

interface GroupPanelProps {
  readonly chat: ChatState;
  readonly entry: ConversationEntry;
  readonly onClose: () => void;
}

/** The details of a conversation: its description, its members, and the settings that the account may change. */
export function GroupPanel({ chat, entry, onClose }: GroupPanelProps) {
  const { id, kind, peer } = entry.info;
  const api = useMemo(() => new GroupApi(chat.api, id), [chat, id]);
  const part = panelPartPropsOf(chat, entry, api);
  return (
    <>
      {kind !== 'private' ? <GroupAbout {...part} /> : null}
      {peer === null ? null : (
        <section>
          <PersonCard
            chat={chat}
            reference={{ user: peer.id, name: peer.name, label: null }}
            entry={entry}
            onOpen={onClose}
          />
        </section>
      )}
      <NotificationSettings {...part} />
      {kind === 'private' ? null : (
        <>
          <GroupMembers {...part} />
          {part.mayManage && !entry.info.archived ? (
            <>
              <GroupInvites {...part} />
              <section>
                <h3>{words.programs}</h3>
                <PostingHint chat={chat} group={id} />
              </section>
            </>
          ) : null}
          <LeaveSection {...part} onClose={onClose} />
        </>
      )}
    </>
  );
}

/** The buttons to leave and to archive the group. */
function LeaveSection({
  chat,
  api,
  entry,
  hasOwnerRights: mayOwn,
  onClose,
}: PanelPartProps & { readonly onClose: () => void }) {
  const { problem, isBusy, run } = useAttempt();
  const { role, archived } = entry.info;
  const isOwner = role === 'owner' && !archived;
  const leave = (): void =>
    void run(() => api.leave()).then((isDone) => {
      if (!isDone) return;
      onClose();
      void chat.reloadConversations();
    });
  const setArchived = (isArchived: boolean): void =>
    void run(async () => {
      await api.setArchived(isArchived);
      await chat.reloadConversations();
    });
  return (
    <section>
      <h3>{words.leaveOrArchive}</h3>
      <Problem sentence={problem} />
      {isOwner ? <p class="quiet">{words.ownerStays}</p> : null}
      <div class="panel-buttons">
        {isOwner ? null : (
          <ConfirmButton label={words.leave} question={words.leaveQuestion} isBusy={isBusy} onConfirm={leave} />
        )}
        {mayOwn && !archived ? (
          <ConfirmButton
            label={words.archive}
            question={words.archiveQuestion}
            isBusy={isBusy}
            onConfirm={() => setArchived(true)}
          />
        ) : null}
        {mayOwn && archived ? (
          <button type="button" disabled={isBusy} onClick={() => setArchived(false)}>
            {words.unarchive}
          </button>
        ) : null}
      </div>
    </section>
  );
}
