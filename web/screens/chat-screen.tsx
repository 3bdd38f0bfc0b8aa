import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { AppState } from '../core/app-state.ts';
import type { ChatState } from '../core/chat-state.ts';
import { unreadOf } from '../core/unread.ts';
import { peopleWords } from '../words/people-words.ts';
import { words } from '../words/words.ts';
import { ConnectionBar } from './connection-bar.tsx';
import { ConversationPane } from './conversation-pane.tsx';
import { PanelDialog } from './people/panel-dialog.tsx';
import { Search } from './search.tsx';
import { SettingsDialog } from './settings/settings-dialog.tsx';
import { Sidebar } from './sidebar.tsx';
import { Switcher } from './switcher.tsx';

/** Matches if the list and the conversation fit beside each other. styles/layout.css has the opposite query. */
const WIDE = '(min-width: 50rem)';

interface ChatScreenProps {
  readonly state: AppState;
  readonly chat: ChatState;
}

type OpenDialog = 'switcher' | 'search' | 'new' | 'files' | null;

/** The list of conversations and the open conversation; a narrow screen shows only one of the two. */
export function ChatScreen({ state, chat }: ChatScreenProps) {
  const dialog = useSignal<OpenDialog>(null);
  const route = state.route.value;
  const below = state.navigation.screenBelow;
  const show = (which: OpenDialog) => () => {
    dialog.value = which;
  };
  useOpenFirst(state, chat);
  useShortcuts(state, chat, show('switcher'));
  const closeDialogAndGo = (conversation: number | null, seq: number | null = null): void => {
    dialog.value = null;
    if (seq !== null) chat.jumps.value += 1;
    if (conversation !== null) state.go({ screen: 'conversation', conversation, seq });
  };
  return (
    <main class={`chat on-${below.screen}`}>
      <ConnectionBar chat={chat} />
      <Sidebar
        state={state}
        chat={chat}
        onSearch={show('search')}
        onNewConversation={show('new')}
        onFiles={show('files')}
        onSettings={() => state.go({ screen: 'settings', part: null })}
      />
      <div class="pane">
        {below.screen === 'list' ? (
          <p class="quiet centred">{words.chooseConversation}</p>
        ) : (
          <ConversationPane
            key={below.conversation}
            state={state}
            chat={chat}
            conversation={below.conversation}
            seq={below.seq}
          />
        )}
      </div>
      {dialog.value === 'switcher' ? <Switcher chat={chat} onChoose={closeDialogAndGo} /> : null}
      {dialog.value === 'search' ? <Search chat={chat} onChoose={closeDialogAndGo} /> : null}
      {route.screen === 'settings' ? <SettingsDialog state={state} chat={chat} part={route.part} /> : null}
      {dialog.value === 'new' ? (
        <PanelDialog title={words.newConversationTitle} onClose={() => closeDialogAndGo(null)}>
          {({ NewConversation }) => <NewConversation chat={chat} onOpen={closeDialogAndGo} />}
        </PanelDialog>
      ) : null}
      {dialog.value === 'files' ? (
        <PanelDialog title={peopleWords.myFiles} onClose={() => closeDialogAndGo(null)}>
          {({ OwnFiles }) => (
            <OwnFiles chat={chat} filesBase={`${state.place.base.pathname}v1/files/`} onOpen={closeDialogAndGo} />
          )}
        </PanelDialog>
      ) : null}
    </main>
  );
}

/**
 * On a wide screen, opens the conversation with the newest message. On a narrow one, opens the only conversation of an
 * account once, as after a sign-up with an invitation.
 */
function useOpenFirst(state: AppState, chat: ChatState): void {
  const conversations = chat.conversations.value;
  const first = conversations?.[0]?.info.id ?? null;
  const isList = state.route.value.screen === 'list';
  const isFirstRun = useRef(true);
  useEffect(() => {
    if (first === null) return;
    const isOnly = isFirstRun.current && conversations?.length === 1;
    isFirstRun.current = false;
    const isWide = matchMedia(WIDE).matches;
    if (!isList || !(isOnly || isWide)) return;
    // On a narrow screen the browser's Back leads to the list.
    state.go({ screen: 'conversation', conversation: first, seq: null }, { replaces: isWide });
  }, [first, isList]);
}

function useShortcuts(state: AppState, chat: ChatState, openSwitcher: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'k') openSwitcher();
      else if (document.querySelector('dialog[open]') !== null) return;
      else if (event.altKey && (event.key === 'ArrowUp' || event.key === 'ArrowDown'))
        goToNeighbour(state, chat, event.key === 'ArrowUp' ? -1 : 1, event.shiftKey);
      else if (event.key === '?' && !isNoShortcut(event)) state.go({ screen: 'settings', part: 'shortcuts' });
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [state, chat]);
}

/** Whether a key is no shortcut: with Ctrl, ⌘ or Alt, in a form field, or while a dialog is open. */
function isNoShortcut({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey || document.querySelector('dialog[open]') !== null) return true;
  return target instanceof Element && target.closest('input, textarea, select') !== null;
}

/**
 * Opens the conversation below (`step` 1) or above (-1) the open one in the list. `isUnreadOnly` skips those without
 * unread messages.
 */
function goToNeighbour(state: AppState, chat: ChatState, step: 1 | -1, isUnreadOnly: boolean): void {
  const all = chat.conversations.value ?? [];
  const below = state.navigation.screenBelow;
  const openConversation = below.screen === 'conversation' ? below.conversation : null;
  const ids = all
    .filter((entry) => !isUnreadOnly || unreadOf(entry) > 0 || entry.info.id === openConversation)
    .map(({ info }) => info.id);
  if (ids.length === 0) return;
  const openIndex = openConversation === null ? -1 : ids.indexOf(openConversation);
  const conversation = ids[(openIndex + step + ids.length) % ids.length]!;
  state.go({ screen: 'conversation', conversation, seq: null });
}
