import { useSignal } from '@preact/signals';
import type { AppState } from '../../core/app-state.ts';
import { inviteTokenIn } from '../../core/people/directory-api.ts';
import { linkTokenIn } from '../../core/place.ts';
import type { SignInFlow } from '../../core/sign-in/sign-in-flow.ts';
import { signInWords as words } from '../../words/sign-in-words.ts';
import { FormField } from './form-field.tsx';
import { SharedComputer } from './shared-computer.tsx';

const MAX_LINK_LENGTH = 2_048;

interface LinkFormProps {
  readonly state: AppState;
  readonly flow: SignInFlow;
}

/** The button that signs in with the sign-in link that opened the page. */
export function LinkButton({ state, flow, token }: LinkFormProps & { readonly token: string }) {
  const submit = (event: Event): void => {
    event.preventDefault();
    void state.signIn(token, flow.sessionChoice);
  };
  return (
    <form onSubmit={submit}>
      <p>{words.linkOpened}</p>
      <SharedComputer flow={flow} id="opened-link-shared" />
      <button class="primary" type="submit" disabled={state.isBusy.value}>
        {words.signInByLink}
      </button>
    </form>
  );
}

interface LinkFieldProps extends LinkFormProps {
  /** Takes an invitation that creates an account; null: on this server invitations create no accounts. */
  readonly onInvite: ((token: string) => void) | null;
}

/** A field for a link that was sent to the person. */
export function LinkForm({ state, flow, onInvite }: LinkFieldProps) {
  const text = useSignal('');
  const refusal = useSignal<string | null>(null);
  const submit = (event: Event): void => {
    event.preventDefault();
    const invite = onInvite === null ? null : inviteTokenIn(text.value);
    if (invite !== null) return onInvite?.(invite);
    const token = linkTokenIn(text.value);
    refusal.value = token === null ? linkProblemOf(text.value) : null;
    if (token === null) state.forgetSignInProblem();
    else void state.signIn(token, flow.sessionChoice);
  };
  return (
    <form onSubmit={submit}>
      <FormField
        id="link"
        label={onInvite === null ? words.pasteLink : words.pasteLinkOrInvite}
        text={text}
        autocomplete="off"
        maxLength={MAX_LINK_LENGTH}
        help={words.whereLinksComeFrom}
        problem={refusal.value}
      />
      <SharedComputer flow={flow} id="link-shared" />
      <button class="primary" type="submit" disabled={state.isBusy.value}>
        {words.signIn}
      </button>
    </form>
  );
}

/** The sentence about a pasted text that is no sign-in link. People paste invitation links here, too. */
function linkProblemOf(text: string): string {
  return inviteTokenIn(text) === null ? words.notALink : words.inviteIsNoLink;
}
