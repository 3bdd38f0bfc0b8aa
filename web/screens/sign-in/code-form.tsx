import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { SignInFlow, SignInStep } from '../../core/sign-in/sign-in-flow.ts';
import type { SignInWays } from '../../core/sign-in/sign-in-ways.ts';
import { signInWords as words } from '../../words/sign-in-words.ts';
import { useSecondsUntil } from '../connection-bar.tsx';
import { FlowProblem } from './flow-problem.tsx';
import { FormField } from './form-field.tsx';

/** Enough for six digits and the characters that people paste around them. */
const MAX_CODE_LENGTH = 20;

interface CodeFormProps {
  readonly flow: SignInFlow;
  readonly ways: SignInWays;
  readonly step: SignInStep & { readonly name: 'code' };
}

/** Asks for the code. If the code can no longer be used, the form only offers to send another one. */
export function CodeForm({ flow, ways, step }: CodeFormProps) {
  const code = useSignal('');
  const problem = flow.problem.value;
  const isBusy = flow.isBusy.value;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void flow.enterCode(code.value);
      }}
    >
      <p>
        {words.codeSent[step.channel === 'email' ? 'email' : 'phone'](step.address)} {whoGetsCodes(flow, ways)}
      </p>
      <p class="quiet" role="status">
        {flow.requestedCodeCount.value > 1 ? words.anotherWasSent : ''}
      </p>
      <FlowProblem problem={problem} shownFields={step.acceptsCode ? ['code'] : []} />
      {step.acceptsCode ? (
        <>
          <FormField
            key={flow.requestedCodeCount.value}
            id="code"
            label={words.code}
            text={code}
            inputMode="numeric"
            autocomplete="one-time-code"
            maxLength={MAX_CODE_LENGTH}
            help={words.codeHelp}
            problem={problem?.field === 'code' ? problem.sentence : null}
            takesFocus
          />
          <button class="primary" type="submit" disabled={isBusy}>
            {words.signIn}
          </button>
        </>
      ) : null}
      <div class="form-row">
        <ResendButton
          step={step}
          isBusy={isBusy}
          onResend={() => {
            code.value = '';
            void flow.requestCode(step.address);
          }}
        />
        <button type="button" onClick={() => flow.startAgain()}>
          {words.otherAddress}
        </button>
      </div>
    </form>
  );
}

interface ResendButtonProps {
  readonly step: CodeFormProps['step'];
  readonly isBusy: boolean;
  readonly onResend: () => void;
}

/**
 * The button to send another code. While it cannot be used, it is not `disabled`: a disabled button would lose the
 * focus.
 */
function ResendButton({ step, isBusy, onResend }: ResendButtonProps) {
  const seconds = useSecondsUntil(step.resendAt);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    // The field for the code, which had the focus, was removed: the button gets the focus.
    if (!step.acceptsCode) button.current?.focus();
  }, [step.acceptsCode]);
  const isWaiting = seconds > 0 || isBusy;
  return (
    <button
      ref={button}
      type="button"
      aria-disabled={isWaiting}
      onClick={() => {
        if (!isWaiting) onResend();
      }}
    >
      {seconds > 0 ? words.sendAnotherIn(seconds) : words.sendAnother}
    </button>
  );
}

/** The server gives the same answer for every address. So the page itself tells which addresses get no code. */
function whoGetsCodes(flow: SignInFlow, { registration }: SignInWays): string {
  if (registration === 'closed') return words.onlyAccounts;
  return registration === 'invite' && flow.invite.value === null ? words.onlyInvited : '';
}
