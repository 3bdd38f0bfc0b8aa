import { useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { formatBytes } from '../../client/core/format-bytes.ts';
import { sanitize } from '../../client/core/safe-text.ts';
import { pictureWords } from '../words/picture-words.ts';
import { words } from '../words/words.ts';
import { addressOfFile, type PictureFile } from './pictures.ts';

/** Zoom factors; at 1 the whole picture fits into the window. */
const ZOOMS = [1, 2, 4, 8] as const;
/** The distance by which an arrow key moves an enlarged picture. */
const PAN_PX = 80;

interface PictureViewerProps {
  /** The pictures that the viewer can show, in order; at least one. */
  readonly pictures: readonly PictureFile[];
  /** The file that the viewer shows first. */
  readonly firstPictureId: string;
  readonly filesBase: string;
  readonly onClose: () => void;
}

/**
 * Shows a picture in the whole window; keys and buttons lead to the other pictures. Esc closes the viewer, and the
 * browser restores the focus.
 */
export function PictureViewer({ pictures, firstPictureId: firstId, filesBase, onClose }: PictureViewerProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const canvas = useRef<HTMLDivElement>(null);
  const viewed = useViewed(pictures, firstId);
  const { at, zoom, show, enlarge } = viewed;
  useEffect(() => {
    dialog.current!.showModal();
    canvas.current!.focus();
  }, []);
  const picture = pictures[at]!;
  const name = sanitize(picture.name);
  const position = pictureWords.position(at + 1, pictures.length);
  const href = addressOfFile(filesBase, picture);
  return (
    <dialog
      class="viewer"
      ref={dialog}
      aria-label={name}
      onClose={onClose}
      onKeyDown={(event) => onKey(event, viewed, canvas)}
    >
      <div class="viewer-head">
        <h2 dir="auto">{name}</h2>
        {pictures.length === 1 ? null : (
          <>
            <span class="quiet">{position}</span>
            <ViewerButton label={pictureWords.previous} symbol="←" isOff={at === 0} run={() => show(at - 1)} />
            <ViewerButton
              label={pictureWords.next}
              symbol="→"
              isOff={at === pictures.length - 1}
              run={() => show(at + 1)}
            />
          </>
        )}
        <ViewerButton label={pictureWords.smaller} symbol="−" isOff={zoom === 0} run={() => enlarge(-1)} />
        <ViewerButton label={pictureWords.larger} symbol="+" isOff={zoom === ZOOMS.length - 1} run={() => enlarge(1)} />
        <a href={href} download={name}>
          {words.download} ({formatBytes(picture.size)})
        </a>
        <button type="button" onClick={() => dialog.current!.close()}>
          {words.close}
        </button>
      </div>
      <div class="viewer-canvas" ref={canvas} tabIndex={0} role="group" aria-label={position}>
        <ShownPicture
          key={picture.id}
          picture={picture}
          href={href}
          zoomIndex={zoom}
          canvas={canvas}
          enlarge={enlarge}
        />
      </div>
    </dialog>
  );
}

/** The index of the shown picture, and the index of its zoom in `ZOOMS`. */
function useViewed(pictures: readonly PictureFile[], firstPictureId: string) {
  const first = pictures.findIndex(({ id }) => id === firstPictureId);
  const shownIndex = useSignal(Math.max(0, first));
  const zoomIndex = useSignal(0);
  const show = (index: number): void => {
    if (index < 0 || index >= pictures.length) return;
    shownIndex.value = index;
    zoomIndex.value = 0;
  };
  const enlarge = (steps: number): void => {
    zoomIndex.value = Math.min(Math.max(0, zoomIndex.value + steps), ZOOMS.length - 1);
  };
  return { at: shownIndex.value, zoom: zoomIndex.value, show, enlarge };
}

function onKey(
  event: KeyboardEvent,
  { at, zoom, show, enlarge }: ReturnType<typeof useViewed>,
  canvas: RefObject<HTMLDivElement | null>,
): void {
  const { key, ctrlKey, metaKey, altKey } = event;
  if (ctrlKey || metaKey || altKey) return;
  const direction = key === 'ArrowLeft' ? -1 : 1;
  if (key === '+' || key === '=') enlarge(1);
  else if (key === '-') enlarge(-1);
  else if (key === '0') enlarge(-zoom);
  else if (key !== 'ArrowLeft' && key !== 'ArrowRight') return;
  else if (zoom > 0) canvas.current!.scrollBy(direction * PAN_PX, 0);
  else show(at + direction);
  event.preventDefault();
}

interface ViewerButtonProps {
  readonly label: string;
  readonly symbol: string;
  readonly isOff: boolean;
  readonly run: () => void;
}

/**
 * A button that is not `disabled` while it has no effect. The browser would take the focus from a disabled button, so
 * that the viewer would get no key presses.
 */
function ViewerButton({ label, symbol: sign, isOff, run }: ViewerButtonProps) {
  return (
    <button type="button" aria-label={label} title={label} aria-disabled={isOff} onClick={run}>
      {sign}
    </button>
  );
}

interface ShownPictureProps {
  readonly picture: PictureFile;
  readonly href: string;
  readonly zoomIndex: number;
  readonly canvas: RefObject<HTMLDivElement | null>;
  readonly enlarge: (steps: number) => void;
}

function ShownPicture({ picture, href, zoomIndex: zoom, canvas, enlarge }: ShownPictureProps) {
  const isBroken = useSignal(false);
  useLayoutEffect(() => {
    const { scrollWidth, scrollHeight, clientWidth, clientHeight } = canvas.current!;
    canvas.current!.scrollTo((scrollWidth - clientWidth) / 2, (scrollHeight - clientHeight) / 2);
  }, [zoom]);
  if (isBroken.value)
    return (
      <p class="error" role="alert">
        {pictureWords.broken}
      </p>
    );
  return (
    <img
      src={href}
      alt={sanitize(picture.name)}
      style={zoom === 0 ? {} : { width: `${enlargedWidth(picture, zoom, canvas.current!)}px` }}
      class={zoom === 0 ? '' : 'enlarged'}
      onDblClick={() => enlarge(zoom === 0 ? 1 : -zoom)}
      onError={() => {
        isBroken.value = true;
      }}
    />
  );
}

function enlargedWidth({ width, height }: PictureFile, zoomIndex: number, canvas: HTMLElement): number {
  const fitScale = Math.min(1, canvas.clientWidth / width, canvas.clientHeight / height);
  return Math.round(width * fitScale * ZOOMS[zoomIndex]!);
}
