import { useSignal } from '@preact/signals';
import type { RedeliveryRequest } from '../../core/webhooks/hook-api.ts';
import { useAttempt } from '../attempt.ts';
import { Problem } from '../modal.tsx';
import { hookWords } from '../../words/hook-words.ts';
import { words } from '../../words/words.ts';
import { Choice } from './hook-form.tsx';
import type { HookPageProps } from './part-props.ts';

const HOUR_MS = 3_600_000;
const MAX_MESSAGE_DIGITS = 15;

interface RedeliverFormProps {
  readonly part: HookPageProps;
  readonly isBusy: boolean;
  readonly act: (work: () => Promise<string | null>) => void;
}

/** Sends messages again from a time or a message on. It shows their number before it sends them. */
export function RedeliverForm({ part, isBusy, act }: RedeliverFormProps) {
  const { api, hook, entry } = part;
  const attempt = useAttempt();
  const hours = useSignal('1');
  const seq = useSignal('');
  const preview = useSignal<{ request: RedeliveryRequest; sentence: string; count: number } | null>(null);
  const ask = (): void =>
    void attempt.run(async () => {
      const from = seq.value === '' ? sinceHours(hours.value) : `${entry.info.id}:${seq.value}`;
      const { messages, from: first } = await api.previewRedelivery(hook, { from });
      preview.value = { request: { from }, sentence: hookWords.redeliverPreview(messages, first), count: messages };
    });
  const close = (): void => {
    preview.value = null;
  };
  const send = (request: RedeliveryRequest): void => {
    close();
    act(async () => hookWords.redelivered((await api.redeliver(hook, request)).pending));
  };
  const shown = preview.value;
  return (
    <form
      class="redeliver"
      onSubmit={(event) => {
        event.preventDefault();
        ask();
      }}
    >
      <Choice label={hookWords.redeliverFrom} value={hours} choices={hookWords.redeliverRanges} />
      <label>
        {hookWords.redeliverFromMessage}
        <input
          type="text"
          inputMode="numeric"
          pattern="[1-9][0-9]*"
          maxLength={MAX_MESSAGE_DIGITS}
          autocomplete="off"
          value={seq.value}
          onInput={(event) => {
            seq.value = event.currentTarget.value.trim();
          }}
        />
      </label>
      <Problem sentence={attempt.problem} />
      {shown === null ? (
        <button type="submit" disabled={isBusy || attempt.isBusy}>
          {hookWords.redeliver}
        </button>
      ) : (
        <Preview
          sentence={shown.sentence}
          isEmpty={shown.count === 0}
          isBusy={isBusy}
          onSend={() => send(shown.request)}
          onCancel={close}
        />
      )}
    </form>
  );
}

function sinceHours(hours: string): string {
  return new Date(Date.now() - Number(hours) * HOUR_MS).toISOString();
}

interface PreviewProps {
  readonly sentence: string;
  readonly isEmpty: boolean;
  readonly isBusy: boolean;
  readonly onSend: () => void;
  readonly onCancel: () => void;
}

/** What a redelivery would send, with the button that sends it. */
function Preview({ sentence, isEmpty, isBusy, onSend, onCancel }: PreviewProps) {
  return (
    <div class="confirm" role="group" aria-label={hookWords.redeliver}>
      <p>{sentence}</p>
      {isEmpty ? null : (
        <button type="button" disabled={isBusy} onClick={onSend}>
          {hookWords.redeliver}
        </button>
      )}
      <button type="button" onClick={onCancel}>
        {words.cancel}
      </button>
    </div>
  );
}
