import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { asSentence } from '../../words/sign-in-words.ts';

interface FormFieldProps {
  readonly id: string;
  readonly label: string;
  /** A signal with the text of the field. */
  readonly text: { value: string };
  readonly type?: 'text' | 'email' | 'tel';
  readonly inputMode?: 'numeric';
  readonly autocomplete: string;
  readonly maxLength: number;
  readonly isRequired?: boolean;
  readonly help?: string;
  /** Why the text was refused, or null. */
  readonly problem: string | null;
  /** True: the field gets the focus when it is first shown. */
  readonly takesFocus?: boolean;
}

/** One line of text with its label and its help. A field with a problem gets the focus and shows the problem. */
export function FormField(props: FormFieldProps) {
  const { id, label, text, problem, help, takesFocus = false, isRequired = true } = props;
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (takesFocus) field.current?.focus();
  }, []);
  useEffect(() => {
    if (problem === null) return;
    field.current?.focus();
    field.current?.select();
  }, [problem]);
  const helpId = `${id}-help`;
  const problemId = `${id}-problem`;
  const describedByIds = [...(problem === null ? [] : [problemId]), ...(help === undefined ? [] : [helpId])];
  return (
    <div class="form-field">
      <label for={id}>{label}</label>
      <input
        id={id}
        ref={field}
        // Preact's types have one set of attributes for each `type`, and none for a union of them.
        {...({ type: props.type ?? 'text' } as { readonly type: 'text' })}
        inputMode={props.inputMode}
        autocomplete={props.autocomplete}
        autocapitalize="none"
        spellcheck={false}
        maxLength={props.maxLength}
        required={isRequired}
        value={text.value}
        aria-invalid={problem !== null}
        aria-describedby={describedByIds.length === 0 ? undefined : describedByIds.join(' ')}
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
      />
      {problem === null ? null : (
        <p class="error" id={problemId} role="alert">
          {asSentence(problem)}
        </p>
      )}
      {help === undefined ? null : (
        <p class="quiet" id={helpId}>
          {help}
        </p>
      )}
    </div>
  );
}
