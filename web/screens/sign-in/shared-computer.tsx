import { SHARED_COMPUTER_SESSION_S, type SignInFlow } from '../../core/sign-in/sign-in-flow.ts';
import { signInWords as words } from '../../words/sign-in-words.ts';

/** A checkbox for shared computers: the session then ends after 12 hours, and the browser stores no texts. */
export function SharedComputer({ flow, id }: { readonly flow: SignInFlow; readonly id: string }) {
  const isShared = flow.isSharedComputer;
  return (
    <div class="form-field">
      <label class="check">
        <input
          type="checkbox"
          checked={isShared.value}
          aria-describedby={id}
          onChange={(event) => {
            isShared.value = event.currentTarget.checked;
          }}
        />
        {words.sharedComputer}
      </label>
      <p class="quiet" id={id}>
        {words.sharedComputerHelp(SHARED_COMPUTER_SESSION_S / 3_600)}
      </p>
    </div>
  );
}
