import { useSignal } from '@preact/signals';
import type { SignInFlow } from '../../core/sign-in/sign-in-flow.ts';
import type { SignInWays } from '../../core/sign-in/sign-in-ways.ts';
import { signInWords as words } from '../../words/sign-in-words.ts';
import { FlowProblem } from './flow-problem.tsx';
import { FormField } from './form-field.tsx';
import { SharedComputer } from './shared-computer.tsx';

const MAX_ADDRESS_LENGTH = 320;
const MAX_INVITE_LENGTH = 2_048;

/** Asks for the address that a code is sent to. */
export function AddressForm({ flow, ways }: { readonly flow: SignInFlow; readonly ways: SignInWays }) {
  const address = useSignal('');
  const invite = useSignal('');
  const problem = flow.problem.value;
  const isInviteWanted = ways.registration === 'invite' && flow.invite.value === null;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void flow.requestCode(address.value, isInviteWanted ? invite.value : '');
      }}
    >
      <FlowProblem problem={problem} shownFields={isInviteWanted ? ['address', 'invite'] : ['address']} />
      <FormField
        id="address"
        {...fieldAttributesOf(ways)}
        text={address}
        maxLength={MAX_ADDRESS_LENGTH}
        help={
          ways.email
            ? words.addressHelp[ways.registration]
            : `${words.phoneHelp} ${words.addressHelp[ways.registration]}`
        }
        problem={problem?.field === 'address' ? problem.sentence : null}
        takesFocus
      />
      {isInviteWanted ? (
        <details open={invite.value !== ''}>
          <summary>{words.haveInvite}</summary>
          <FormField
            id="invite"
            label={words.inviteLink}
            text={invite}
            autocomplete="off"
            maxLength={MAX_INVITE_LENGTH}
            isRequired={false}
            problem={problem?.field === 'invite' ? problem.sentence : null}
          />
        </details>
      ) : null}
      <SharedComputer flow={flow} id="address-shared" />
      <button class="primary" type="submit" disabled={flow.isBusy.value}>
        {words.sendCode}
      </button>
    </form>
  );
}

/** The attributes of the field, by which browsers fill it in and telephones choose a keyboard. */
function fieldAttributesOf({ email, phone }: SignInWays): {
  readonly label: string;
  readonly type: 'text' | 'email' | 'tel';
  readonly autocomplete: string;
} {
  if (!phone) return { label: words.email, type: 'email', autocomplete: 'email' };
  if (!email) return { label: words.phone, type: 'tel', autocomplete: 'tel' };
  return { label: words.emailOrPhone, type: 'text', autocomplete: 'username' };
}
