import { useLayoutEffect, useRef } from 'preact/hooks';

interface TextFieldProps {
  readonly label: string;
  /** A signal with the text of the field. */
  readonly text: { value: string };
  readonly maxLength: number;
  readonly isRequired?: boolean;
  /** The data that the browser may fill in. */
  readonly autocomplete?: 'name' | 'off';
  /** True: the field gets the focus when it is first shown. */
  readonly takesFocus?: boolean;
}

/** One line of text with its label. */
export function TextField(props: TextFieldProps) {
  const { label, text, maxLength, isRequired = false, autocomplete = 'off', takesFocus = false } = props;
  const field = useRef<HTMLInputElement>(null);
  // An effect after the next paint could take the focus from a field that the person has chosen meanwhile.
  useLayoutEffect(() => {
    if (takesFocus) field.current?.focus();
  }, []);
  return (
    <label>
      {label}
      <input
        ref={field}
        type="text"
        dir="auto"
        required={isRequired}
        maxLength={maxLength}
        autocomplete={autocomplete}
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
      />
    </label>
  );
}

/** Several lines of text with their label. */
export function LongTextField({ label, text, maxLength }: Pick<TextFieldProps, 'label' | 'text' | 'maxLength'>) {
  return (
    <label>
      {label}
      <textarea
        rows={3}
        dir="auto"
        maxLength={maxLength}
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
      />
    </label>
  );
}

interface CheckFieldProps {
  readonly label: string;
  /** A signal: whether the box is checked. */
  readonly checked: { value: boolean };
}

/** A box to check with its label. */
export function CheckField({ label, checked }: CheckFieldProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={checked.value}
        onChange={(event) => {
          checked.value = event.currentTarget.checked;
        }}
      />
      {label}
    </label>
  );
}
