import { useSignal } from '@preact/signals';
import type { ProvenAddress, SignInFlow } from '../../core/sign-in/sign-in-flow.ts';
import { signInWords as words } from '../../words/sign-in-words.ts';
import { FlowProblem } from './flow-problem.tsx';
import { FormField } from './form-field.tsx';
import { SharedComputer } from './shared-computer.tsx';

const MAX_NICK_LENGTH = 32;
const MAX_NAME_LENGTH = 200;

interface AccountFormProps {
  readonly flow: SignInFlow;
  /** Null: the person signs up by an invitation alone, without an address. */
  readonly proven: ProvenAddress | null;
}

/** Asks for the nick and the name of a new account. */
export function AccountForm({ flow, proven }: AccountFormProps) {
  const nick = useSignal('');
  const name = useSignal('');
  const problem = flow.problem.value;
  const problemOf = (field: string): string | null => (problem?.field === field ? problem.sentence : null);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void flow.signUp(nick.value, name.value);
      }}
    >
      <p>{proven === null ? words.newAccountByInvite : words.newAccount(proven.address)}</p>
      <FlowProblem problem={problem} shownFields={['nick', 'name']} />
      <FormField
        id="nick"
        label={words.nick}
        text={nick}
        autocomplete="nickname"
        maxLength={MAX_NICK_LENGTH}
        help={words.nickHelp}
        problem={problemOf('nick')}
        takesFocus
      />
      <FormField
        id="name"
        label={words.name}
        text={name}
        autocomplete="name"
        maxLength={MAX_NAME_LENGTH}
        isRequired={false}
        problem={problemOf('name')}
      />
      {proven === null ? <SharedComputer flow={flow} id="account-shared" /> : null}
      <div class="form-row">
        <button class="primary" type="submit" disabled={flow.isBusy.value}>
          {words.createAccount}
        </button>
        {proven === null ? null : (
          <button type="button" onClick={() => flow.startAgain()}>
            {words.otherAddress}
          </button>
        )}
      </div>
    </form>
  );
}
