import { useSignal } from '@preact/signals';
import { hookWords } from '../../words/hook-words.ts';
import { CopyButton } from '../copy-button.tsx';
import { SecretOnce } from '../settings/secret-once.tsx';
import { Choice } from './hook-form.tsx';
import { VERIFY_CODE } from './verify-code.ts';

interface HookSecretProps {
  readonly hook: number;
  readonly secret: string;
  readonly onDone: () => void;
}

/** A new secret of a hook, which the server does not show again, and the code with which a receiver uses it. */
export function HookSecret({ hook, secret, onDone }: HookSecretProps) {
  return (
    <>
      <SecretOnce label={hookWords.secretOf(hook)} secret={secret} usage={hookWords.secretUsage} onDone={onDone} />
      <VerifyCode />
    </>
  );
}

/** The lines with which a receiver verifies a delivery, in several languages. */
export function VerifyCode() {
  const language = useSignal(Object.keys(VERIFY_CODE)[0]!);
  const code = VERIFY_CODE[language.value] ?? '';
  const languages = Object.fromEntries(Object.keys(VERIFY_CODE).map((name) => [name, name]));
  return (
    <details class="verify-code">
      <summary>{hookWords.verifyCode}</summary>
      <Choice label={hookWords.language} value={language} choices={languages} />
      <pre>
        <code>{code}</code>
      </pre>
      <CopyButton text={code} label={language.value} />
    </details>
  );
}
