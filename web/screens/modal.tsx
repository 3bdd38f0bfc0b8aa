import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { words } from '../words/words.ts';

interface ModalProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** A dialog over the page; Esc closes it. */
export function Modal({ title, onClose, children }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog class="modal" ref={dialog} aria-label={title} onClose={onClose}>
      <div class="modal-head">
        <h2>{title}</h2>
        <button type="button" onClick={onClose}>
          {words.close}
        </button>
      </div>
      {children}
    </dialog>
  );
}

/** Why something failed, or nothing. */
export function Problem({ sentence }: { readonly sentence: string | null }) {
  if (sentence === null) return null;
  return (
    <p class="error" role="alert">
      {sentence}
    </p>
  );
}
