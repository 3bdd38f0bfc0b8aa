import { useEffect, useMemo } from 'preact/hooks';
import type { MessageActions } from '../conversation/message-actions.tsx';
import type { ChatState } from '../core/chat-state.ts';
import type { Place } from '../core/place.ts';
import { picturesOf, type PictureFile } from '../timeline/pictures.ts';
import { words } from '../words/words.ts';
import { useLoaded } from './loaded.ts';

interface OpenedPictureProps {
  readonly place: Place;
  readonly chat: ChatState;
  readonly conversation: number;
  readonly actions: MessageActions;
}

/** The picture that a person has opened; nothing where none is open. */
export function OpenedPicture(props: OpenedPictureProps) {
  const picture = props.actions.openedPicture.value;
  return picture === null ? null : <LoadedViewer {...props} picture={picture} />;
}

const loadViewer = async () => (await import('./panels.ts')).PictureViewer;

type LoadedViewerProps = OpenedPictureProps & { readonly picture: PictureFile };

function LoadedViewer({ place, chat, conversation, actions, picture }: LoadedViewerProps) {
  // Those of the moment in which it is opened: a message that comes later changes no position.
  const pictures = useMemo(() => {
    const loaded = picturesOf(chat.pages.allOf(conversation));
    return loaded.some(({ id }) => id === picture.id) ? loaded : [picture];
  }, [picture]);
  const close = (): void => {
    actions.openedPicture.value = null;
  };
  const { part: Viewer, hasFailed } = useLoaded(loadViewer);
  useEffect(() => {
    if (!hasFailed) return;
    chat.actionProblem.value = words.cannotLoad;
    close();
  }, [hasFailed]);
  if (Viewer === null) return null;
  return <Viewer pictures={pictures} firstId={picture.id} filesBase={filesBaseOf(place)} onClose={close} />;
}

/** The path of files, with that of the base in front. */
export function filesBaseOf({ base }: Place): string {
  return `${base.pathname}v1/files/`;
}
