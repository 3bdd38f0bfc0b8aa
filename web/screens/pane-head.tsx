import type { AppState } from '../core/app-state.ts';
import type { ChatState } from '../core/chat-state.ts';
import { titleCountOfAll, type ConversationEntry } from '../core/unread.ts';
import { words } from '../words/words.ts';
import { useLoaded } from './loaded.ts';
import { Modal, Problem } from './modal.tsx';
import { conversationTitle } from './sidebar.tsx';

interface PaneHeadProps {
  readonly state: AppState;
  readonly chat: ChatState;
  /** Undefined: the account has no conversation with the number in the page's address. */
  readonly entry: ConversationEntry | undefined;
}

/** The title of a conversation, with the button for its details. */
export function PaneHead({ state, chat, entry }: PaneHeadProps) {
  const route = state.route.value;
  const panel = route.screen === 'conversation' ? route.panel : undefined;
  const showDetails = (conversation: number): void => {
    const seq = route.screen === 'conversation' ? route.seq : null;
    state.go({ screen: 'conversation', conversation, seq, panel: 'about' });
  };
  return (
    <>
      <header class="pane-head">
        <BackButton state={state} chat={chat} />
        <h1 dir="auto">{entry === undefined ? words.noSuchConversation : conversationTitle(entry)}</h1>
        {entry?.info.peer ? <PeerOnline chat={chat} account={entry.info.peer.id} /> : null}
        {entry?.info.kind === 'group' ? <span class="quiet">{words.members(entry.info.members)}</span> : null}
        {entry === undefined ? null : (
          <button class="details" type="button" onClick={() => showDetails(entry.info.id)}>
            {words.details}
          </button>
        )}
      </header>
      {panel !== undefined && entry !== undefined ? (
        <Details state={state} chat={chat} entry={entry} onClose={() => state.navigation.leavePanel()} />
      ) : null}
    </>
  );
}

/** Returns to the list on a narrow screen, and shows how many messages wait in all conversations. */
function BackButton({ state, chat }: Pick<PaneHeadProps, 'state' | 'chat'>) {
  const waiting = titleCountOfAll(chat.conversations.value ?? []);
  return (
    <button
      class="back"
      type="button"
      aria-label={waiting === 0 ? words.back : `${words.back}, ${words.unread(waiting)}`}
      onClick={() => state.go({ screen: 'list' })}
    >
      ← {waiting === 0 ? null : <span class="badge">{words.number(waiting)}</span>}
    </button>
  );
}

/** Whether the other person is online; shows nothing while the page does not know it. */
function PeerOnline({ chat, account }: { readonly chat: ChatState; readonly account: number }) {
  const isOnline = chat.peers.isOnline(account);
  if (isOnline === null) return null;
  return (
    <span class="presence">
      <span class={isOnline ? 'dot online' : 'dot'} aria-hidden="true" />
      {isOnline ? words.online : words.offlineNow}
    </span>
  );
}

const loadPanel = async () => (await import('./panels.ts')).GroupPanel;

interface DetailsProps {
  readonly state: AppState;
  readonly chat: ChatState;
  readonly entry: ConversationEntry;
  readonly onClose: () => void;
}

function Details({ state, chat, entry, onClose }: DetailsProps) {
  const { part: Panel, hasFailed } = useLoaded(loadPanel);
  return (
    <Modal title={conversationTitle(entry)} isDrawer onClose={onClose}>
      {Panel === null ? null : <Panel state={state} chat={chat} entry={entry} onClose={onClose} />}
      <Problem sentence={hasFailed ? words.cannotLoad : null} />
    </Modal>
  );
}
