import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { words } from '../words/words.ts';

interface ModalProps {
  readonly title: string;
  /** True: the dialog is at the edge of the page and as high as the page. */
  readonly isDrawer?: boolean;
  readonly closeLabel?: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/**
 * A dialog over the page; Esc closes it. When the dialog closes, the focus returns to the element that had it before,
 * unless another element has taken the focus.
 */
export function Modal({ title, isDrawer = false, closeLabel = words.close, onClose, children }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      // Waits for the removal of the dialog: while it is in the document, no element outside of it can get the focus.
      queueMicrotask(() => {
        const isFocusTaken = document.activeElement !== document.body;
        if (!isFocusTaken && before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
      });
    };
  }, []);
  return (
    <dialog class={isDrawer ? 'modal drawer' : 'modal'} ref={dialog} aria-label={title} onClose={onClose}>
      <div class="modal-head">
        <h2>{title}</h2>
        <button type="button" onClick={onClose}>
          {closeLabel}
        </button>
      </div>
      {children}
    </dialog>
  );
}

/** Shows why an action failed; nothing if `sentence` is null. */
export function Problem({ sentence }: { readonly sentence: string | null }) {
  if (sentence === null) return null;
  return (
    <p class="error" role="alert">
      {sentence}
    </p>
  );
}
