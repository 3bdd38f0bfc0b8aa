import { useSignal } from '@preact/signals';
import type { HookOptions } from '../../core/webhooks/hook-api.ts';
import { TextField } from '../fields.tsx';
import { hookWords } from '../../words/hook-words.ts';
import { words } from '../../words/words.ts';

const MAX_URL_LENGTH = 8_192;
const MAX_DESCRIPTION_LENGTH = 200;
const MAX_BATCH = 100;

/** The options of a hook for which a person chooses nothing. */
export const NEW_HOOK: HookOptions = {
  description: null,
  order: 'strict',
  batch: 1,
  signature: 'v1',
  events: [],
  skip: [],
};

interface HookFormProps {
  /** Null: the URL is not asked for, since a hook keeps its URL. */
  readonly url: string | null;
  /** True: the hook has the format of another product, which has neither batches nor events. */
  readonly isForeign?: boolean;
  readonly options: HookOptions;
  readonly label: string;
  readonly isBusy: boolean;
  readonly onSubmit: (url: string, options: HookOptions) => Promise<void>;
  readonly onCancel: () => void;
}

/** The fields of a new hook, or of one that is changed. */
export function HookForm({
  url: firstUrl,
  isForeign = false,
  options,
  label,
  isBusy,
  onSubmit,
  onCancel,
}: HookFormProps) {
  const url = useSignal(firstUrl ?? '');
  const description = useSignal(options.description ?? '');
  const order = useSignal(options.order);
  const batch = useSignal(options.batch);
  const signature = useSignal(options.signature);
  const events = useSignal<readonly string[]>(options.events);
  const skip = useSignal<readonly string[]>(options.skip);
  const submit = (): void =>
    void onSubmit(url.value.trim(), {
      description: description.value.trim() || null,
      order: order.value,
      batch: batch.value,
      signature: signature.value,
      events: events.value,
      skip: skip.value,
    });
  return (
    <form
      class="hook-form"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {firstUrl === null ? null : (
        <TextField label={hookWords.url} text={url} maxLength={MAX_URL_LENGTH} isRequired takesFocus />
      )}
      <TextField label={hookWords.description} text={description} maxLength={MAX_DESCRIPTION_LENGTH} />
      <details>
        <summary>{hookWords.moreOptions}</summary>
        <Choice label={hookWords.order} value={order} choices={hookWords.orders} />
        {isForeign ? null : <BatchField batch={batch} />}
        <Choice label={hookWords.signature} value={signature} choices={hookWords.signatures} />
        {isForeign ? null : <Checks label={hookWords.events} values={events} choices={hookWords.eventKinds} />}
        <Checks label={hookWords.skip} values={skip} choices={hookWords.skipped} />
      </details>
      <div class="panel-buttons">
        <button class="primary" type="submit" disabled={isBusy}>
          {label}
        </button>
        <button type="button" onClick={onCancel}>
          {words.cancel}
        </button>
      </div>
    </form>
  );
}

/** `batch`: a signal with the greatest number of messages in a request. */
function BatchField({ batch }: { readonly batch: { value: number } }) {
  return (
    <label>
      {hookWords.batch}
      <input
        type="number"
        min={1}
        max={MAX_BATCH}
        required
        value={batch.value}
        onInput={(event) => {
          batch.value = event.currentTarget.valueAsNumber;
        }}
      />
    </label>
  );
}

interface ChoiceProps {
  readonly label: string;
  /** A signal with the key of the choice. */
  readonly value: { value: string };
  /** The words of the choices by their keys. */
  readonly choices: Readonly<Record<string, string>>;
}

/** One of several values. */
export function Choice({ label, value, choices }: ChoiceProps) {
  return (
    <label>
      {label}
      <select
        value={value.value}
        onChange={(event) => {
          value.value = event.currentTarget.value;
        }}
      >
        {Object.entries(choices).map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

interface ChecksProps {
  readonly label: string;
  /** A signal with the keys of the checked boxes. */
  readonly values: { value: readonly string[] };
  readonly choices: Readonly<Record<string, string>>;
}

function Checks({ label, values, choices }: ChecksProps) {
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      {Object.entries(choices).map(([key, text]) => (
        <label key={key} class="check">
          <input
            type="checkbox"
            checked={values.value.includes(key)}
            onChange={(event) => {
              const isChecked = event.currentTarget.checked;
              values.value = Object.keys(choices).filter((each) =>
                each === key ? isChecked : values.value.includes(each),
              );
            }}
          />
          {text}
        </label>
      ))}
    </fieldset>
  );
}
