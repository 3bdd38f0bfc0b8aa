import { useEffect, useMemo } from 'preact/hooks';
import type { MessageActions } from '../conversation/message-actions.tsx';
import type { ChatState } from '../core/chat-state.ts';
import type { PagePlace } from '../core/place.ts';
import { picturesOf, type PictureFile } from '../timeline/pictures.ts';
import { words } from '../words/words.ts';
import { useLoaded } from './loaded.ts';

interface OverlayProps {
  readonly place: PagePlace;
  readonly chat: ChatState;
  readonly conversation: number;
  readonly actions: MessageActions;
}

const loadPanels = () => import('./panels.ts');

/** The overlays over the messages: the menu of a message, or the picture viewer. */
export function LazyOverlays(props: OverlayProps) {
  const { actions } = props;
  const isOpen = actions.menu.value !== null || actions.openedPicture.value !== null;
  return isOpen ? <LoadedOverlay {...props} /> : null;
}

function LoadedOverlay({ place, chat, conversation, actions }: OverlayProps) {
  const { part: panels, hasFailed } = useLoaded(loadPanels);
  const menu = actions.menu.value;
  const picture = actions.openedPicture.value;
  useEffect(() => {
    if (!hasFailed) return;
    chat.actionProblem.value = words.cannotLoad;
    actions.menu.value = null;
    actions.openedPicture.value = null;
  }, [hasFailed]);
  // The pictures at the moment of opening: later messages do not change the positions of pictures in the viewer.
  const pictures = useMemo(() => picturesAround(chat, conversation, picture), [picture]);
  if (panels === null) return null;
  const { OpenedMenu, PictureViewer } = panels;
  return (
    <>
      {menu === null ? null : (
        <OpenedMenu place={place} chat={chat} conversation={conversation} actions={actions} menu={menu} />
      )}
      {picture === null ? null : (
        <PictureViewer
          pictures={pictures}
          firstPictureId={picture.id}
          filesBase={filesBaseOf(place)}
          onClose={() => {
            actions.openedPicture.value = null;
          }}
        />
      )}
    </>
  );
}

/** The pictures of all loaded messages of the conversation, or only the opened one if it is not among them. */
function picturesAround(chat: ChatState, conversation: number, opened: PictureFile | null): PictureFile[] {
  if (opened === null) return [];
  const loaded = picturesOf(chat.pages.allOf(conversation));
  return loaded.some(({ id }) => id === opened.id) ? loaded : [opened];
}

/** The path of `/v1/files/`, which begins with the path of the base. */
export function filesBaseOf({ base }: PagePlace): string {
  return `${base.pathname}v1/files/`;
}
