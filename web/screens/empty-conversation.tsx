import type { AppState } from '../core/app-state.ts';
import type { ChatState } from '../core/chat-state.ts';
import type { ConversationEntry } from '../core/unread.ts';
import { Notices } from '../timeline/message-row.tsx';
import { words } from '../words/words.ts';
import { useLoaded } from './loaded.ts';

interface EmptyConversationProps {
  readonly state: AppState;
  readonly chat: ChatState;
  readonly entry: ConversationEntry;
}

const loadHint = () => import('./posting-hint.tsx');

/**
 * Shows that the conversation has no messages yet; owners and admins of a group also see how a program posts into it.
 */
export function EmptyConversation({ state, chat, entry }: EmptyConversationProps) {
  const { id, kind, role, archived } = entry.info;
  const isManager = kind === 'group' && role !== 'member' && !archived;
  return (
    <div class="centred quiet">
      <Notices notices={chat.pages.noticesAfter(id, 0)} />
      <p>{words.emptyConversation}</p>
      {isManager ? (
        <>
          <button
            type="button"
            onClick={() => state.go({ screen: 'conversation', conversation: id, seq: null, panel: 'about' })}
          >
            {words.invitePeople}
          </button>
          <LoadedHint key={id} chat={chat} group={id} />
        </>
      ) : null}
    </div>
  );
}

function LoadedHint(props: { readonly chat: ChatState; readonly group: number }) {
  const { part } = useLoaded(loadHint);
  return part === null ? null : <part.PostingHint {...props} />;
}
