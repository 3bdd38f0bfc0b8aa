import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { words } from '../words/words.ts';

interface ConfirmButtonProps {
  readonly label: string;
  /** The consequence of the action, as a sentence. */
  readonly question: string;
  readonly isBusy: boolean;
  readonly onConfirm: () => void;
}

/** A button that asks for confirmation before an action that cannot be undone. */
export function ConfirmButton({ label, question, isBusy, onConfirm }: ConfirmButtonProps) {
  const isConfirming = useSignal(false);
  const button = useRef<HTMLButtonElement>(null);
  const cancel = useRef<HTMLButtonElement>(null);
  const wasConfirming = useRef(false);
  useEffect(() => {
    if (isConfirming.value) cancel.current?.focus();
    else if (wasConfirming.current) button.current?.focus();
    wasConfirming.current = isConfirming.value;
  }, [isConfirming.value]);
  const setConfirming = (next: boolean) => (): void => {
    isConfirming.value = next;
  };
  if (!isConfirming.value)
    return (
      <button ref={button} type="button" disabled={isBusy} onClick={setConfirming(true)}>
        {label}
      </button>
    );
  return (
    <div class="confirm" role="group" aria-label={label}>
      <p>{question}</p>
      <button
        class="danger"
        type="button"
        disabled={isBusy}
        onClick={() => {
          isConfirming.value = false;
          onConfirm();
        }}
      >
        {label}
      </button>
      <button ref={cancel} type="button" onClick={setConfirming(false)}>
        {words.cancel}
      </button>
    </div>
  );
}
