import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { copyText } from '../../timeline/copy-text.ts';
import { settingsWords } from '../../words/settings-words.ts';
import { words } from '../../words/words.ts';

interface SecretOnceProps {
  /** The name of the secret. */
  readonly label: string;
  readonly secret: string;
  /** How the secret is used, as a sentence. */
  readonly usage?: string;
  readonly onDone: () => void;
}

/** A secret that the server does not show again. */
export function SecretOnce({ label, secret, usage, onDone }: SecretOnceProps) {
  const field = useRef<HTMLInputElement>(null);
  const copyStatus = useSignal<string | null>(null);
  useEffect(() => field.current?.select(), [secret]);
  const copy = async (): Promise<void> => {
    copyStatus.value = (await copyText(secret)) ? settingsWords.copied : settingsWords.copyByKeys;
    field.current?.select();
  };
  return (
    <div class="secret-once" role="group" aria-label={settingsWords.secretOf(label)}>
      <p>{settingsWords.shownOnce}</p>
      <div class="modal-row">
        <input
          ref={field}
          type="text"
          readOnly
          autocomplete="off"
          aria-label={settingsWords.secretOf(label)}
          value={secret}
        />
        <button type="button" onClick={() => void copy()}>
          {words.copy}
        </button>
      </div>
      {usage === undefined ? null : <p class="quiet">{usage}</p>}
      <p class="quiet" role="status">
        {copyStatus.value ?? ''}
      </p>
      <button type="button" onClick={onDone}>
        {settingsWords.done}
      </button>
    </div>
  );
}
