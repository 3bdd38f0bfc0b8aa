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
  readonly firstId: string;
  readonly filesBase: string;
  readonly onClose: () => void;
}

/**
 * Shows a picture in the whole window; keys and buttons lead to the other pictures. Esc closes the viewer, and the
 * browser restores the focus.
 */
export function PictureViewer({ pictures, firstId, filesBase, onClose }: PictureViewerProps) {
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
            <Tool label={pictureWords.previous} sign="←" isOff={at === 0} run={() => show(at - 1)} />
            <Tool label={pictureWords.next} sign="→" isOff={at === pictures.length - 1} run={() => show(at + 1)} />
          </>
        )}
        <Tool label={pictureWords.smaller} sign="−" isOff={zoom === 0} run={() => enlarge(-1)} />
        <Tool label={pictureWords.larger} sign="+" isOff={zoom === ZOOMS.length - 1} run={() => enlarge(1)} />
        <a href={href} download={name}>
          {words.download} ({formatBytes(picture.size)})
        </a>
        <button type="button" onClick={() => dialog.current!.close()}>
          {words.close}
        </button>
      </div>
      <div class="viewer-canvas" ref={canvas} tabIndex={0} role="group" aria-label={position}>
        <Shown key={picture.id} picture={picture} href={href} zoom={zoom} canvas={canvas} enlarge={enlarge} />
      </div>
    </dialog>
  );
}

/** The index of the shown picture, and the index of its zoom in `ZOOMS`. */
function useViewed(pictures: readonly PictureFile[], firstId: string) {
  const first = pictures.findIndex(({ id }) => id === firstId);
  const at = useSignal(Math.max(0, first));
  const zoom = useSignal(0);
  const show = (index: number): void => {
    if (index < 0 || index >= pictures.length) return;
    at.value = index;
    zoom.value = 0;
  };
  const enlarge = (steps: number): void => {
    zoom.value = Math.min(Math.max(0, zoom.value + steps), ZOOMS.length - 1);
  };
  return { at: at.value, zoom: zoom.value, show, enlarge };
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

interface ToolProps {
  readonly label: string;
  readonly sign: string;
  readonly isOff: boolean;
  readonly run: () => void;
}

/**
 * A button that is not `disabled` while it has no effect. The browser would take the focus from a disabled button, so
 * that the viewer would get no key presses.
 */
function Tool({ label, sign, isOff, run }: ToolProps) {
  return (
    <button type="button" aria-label={label} title={label} aria-disabled={isOff} onClick={run}>
      {sign}
    </button>
  );
}

interface ShownProps {
  readonly picture: PictureFile;
  readonly href: string;
  readonly zoom: number;
  readonly canvas: RefObject<HTMLDivElement | null>;
  readonly enlarge: (steps: number) => void;
}

function Shown({ picture, href, zoom, canvas, enlarge }: ShownProps) {
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

function enlargedWidth({ width, height }: PictureFile, zoom: number, canvas: HTMLElement): number {
  const whole = Math.min(1, canvas.clientWidth / width, canvas.clientHeight / height);
  return Math.round(width * whole * ZOOMS[zoom]!);
}
