import { useMemo } from 'preact/hooks';
import type { ChatState } from '../core/chat-state.ts';
import type { PagePlace } from '../core/place.ts';
import { pathOf } from '../core/routes.ts';
import { MessageMenu, type MenuItem } from '../timeline/message-menu.tsx';
import { menuWords } from '../words/menu-words.ts';
import { timelineWords } from '../words/timeline-words.ts';
import { words } from '../words/words.ts';
import { permissionsOf, type MessageActions, type OpenMenu } from './message-actions.tsx';

interface OpenedMenuProps {
  readonly place: PagePlace;
  readonly chat: ChatState;
  readonly conversation: number;
  readonly actions: MessageActions;
  readonly menu: OpenMenu;
}

/** The menu of a message. The page loads this code when a person first opens a menu. */
export function OpenedMenu(props: OpenedMenuProps) {
  const { actions, menu } = props;
  const close = useMemo(
    () => () => {
      actions.menu.value = null;
    },
    [actions],
  );
  return (
    <MessageMenu
      key={menu.seq}
      label={menuWords.menuOf(menu.seq)}
      items={itemsOf(props)}
      anchor={menu.anchor}
      returnFocusTo={menu.anchor.closest('article') ?? menu.anchor}
      onClose={close}
    />
  );
}

/** The menu items for the actions that the account may perform on the message. */
function itemsOf({ place, chat, conversation, actions, menu: { seq } }: OpenedMenuProps): MenuItem[] {
  const entry = chat.entryOf(conversation);
  const message = chat.pages.get(conversation, seq);
  if (entry === undefined || message === undefined) return [];
  const { mayEdit, mayDelete } = permissionsOf(chat, entry, message);
  const isThere = message.deleted !== true && chat.deletions.stateOf(conversation, seq) === null;
  const path = pathOf({ screen: 'conversation', conversation, seq }, place.base.pathname);
  const link = new URL(path, place.base).href;
  const item = (label: string, keyName: string | null, run: () => void): MenuItem => ({ label, keyName, run });
  return [
    ...(isThere && message.text !== ''
      ? [item(menuWords.copyText, 'C', () => actions.copy(message.text, timelineWords.textCopied))]
      : []),
    item(menuWords.copyLink, null, () => actions.copy(link, menuWords.linkCopied)),
    ...(isThere && mayEdit ? [item(words.edit, 'E', () => actions.edit(message))] : []),
    ...(isThere && mayDelete ? [item(words.delete, 'Delete', () => actions.remove(seq))] : []),
  ];
}
