import { useSignal } from '@preact/signals';
import { copyText } from '../timeline/copy-text.ts';
import { words } from '../words/words.ts';

interface CopyButtonProps {
  readonly text: string;
  /** What the button copies, if several such buttons are on the screen. */
  readonly label?: string;
}

/** A button that copies a text, and says whether the browser has let it. */
export function CopyButton({ text, label }: CopyButtonProps) {
  const status = useSignal('');
  const copy = async (): Promise<void> => {
    status.value = (await copyText(text)) ? words.copied : words.copyRefused;
  };
  return (
    <div class="form-row">
      <button
        type="button"
        aria-label={label === undefined ? undefined : `${words.copy}: ${label}`}
        onClick={() => void copy()}
      >
        {words.copy}
      </button>
      <span role="status">{status}</span>
    </div>
  );
}
