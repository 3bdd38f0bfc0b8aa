import { sanitize } from '../../../client/core/safe-text.ts';
import type { ChatState } from '../../core/chat-state.ts';
import type { GroupApi, Member } from '../../core/group-api.ts';
import type { ConversationEntry } from '../../core/unread.ts';
import { words } from '../../words/words.ts';
import { ConfirmButton } from '../confirm-button.tsx';
import type { PanelPartProps } from '../panel-part.ts';

/** The props of the panel's parts, with the rights of the account in the conversation. */
export function panelPartPropsOf(chat: ChatState, entry: ConversationEntry, api: GroupApi): PanelPartProps {
  const { role } = entry.info;
  const isAdministrator = chat.account.role === 'admin';
  return {
    chat,
    api,
    entry,
    mayManage: role !== 'member' || isAdministrator,
    hasOwnerRights: role === 'owner' || isAdministrator,
  };
}

type Action = 'promote' | 'demote' | 'transfer' | 'remove';

/** The actions that the server allows the account on a member. */
function actionsFor(
  { chat, entry, mayManage, hasOwnerRights: mayOwn }: PanelPartProps,
  { id, role, kind }: Member,
): Action[] {
  if (id === chat.account.id || entry.info.archived) return [];
  const isOwner = role === 'owner';
  return [
    ...(mayOwn && role === 'member' ? (['promote'] as const) : []),
    ...(mayOwn && role === 'admin' ? (['demote'] as const) : []),
    ...(mayOwn && !isOwner && kind !== 'bot' ? (['transfer'] as const) : []),
    ...((mayManage && role === 'member') || (mayOwn && role === 'admin') ? (['remove'] as const) : []),
  ];
}

interface MemberActionsProps {
  readonly part: PanelPartProps;
  readonly member: Member;
  readonly isBusy: boolean;
  readonly runChange: (work: () => Promise<void>) => void;
}

/** The buttons to change a member's role and to remove the member, as far as the account's role allows. */
export function MemberActions({ part, member, isBusy, runChange: onChange }: MemberActionsProps) {
  const { api } = part;
  const { id } = member;
  const nick = sanitize(member.nick);
  const actions = actionsFor(part, member);
  if (actions.length === 0) return null;
  return (
    <div class="panel-buttons">
      {actions.includes('promote') ? (
        <button type="button" disabled={isBusy} onClick={() => onChange(() => api.setRole(id, 'admin'))}>
          {words.makeAdmin}
        </button>
      ) : null}
      {actions.includes('demote') ? (
        <button type="button" disabled={isBusy} onClick={() => onChange(() => api.setRole(id, 'member'))}>
          {words.makeMember}
        </button>
      ) : null}
      {actions.includes('transfer') ? (
        <ConfirmButton
          label={words.handOver}
          question={words.handOverQuestion(nick)}
          isBusy={isBusy}
          onConfirm={() => onChange(() => api.transferOwnership(id))}
        />
      ) : null}
      {actions.includes('remove') ? (
        <ConfirmButton
          label={words.removeMember}
          question={words.removeQuestion(nick)}
          isBusy={isBusy}
          onConfirm={() => onChange(() => api.removeMember(id))}
        />
      ) : null}
    </div>
  );
}
