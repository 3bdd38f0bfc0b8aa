import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { sanitize } from '../../../client/core/safe-text.ts';
import type { AppState, SessionEnd } from '../../core/app-state.ts';
import { SignInFlow } from '../../core/sign-in/sign-in-flow.ts';
import { sendsCodes } from '../../core/sign-in/sign-in-ways.ts';
import { asSentence, signInWords as words } from '../../words/sign-in-words.ts';
import { AccountForm } from './account-form.tsx';
import { AddressForm } from './address-form.tsx';
import { CodeForm } from './code-form.tsx';
import { FlowProblem } from './flow-problem.tsx';
import { InviteSummary } from './invitation.tsx';
import { LinkButton, LinkForm } from './link-forms.tsx';
import { Unavailable } from './unavailable.tsx';

export interface SignInProps {
  readonly state: AppState;
  /** Why a sign-in by a link or the connection failed, or null. */
  readonly problem: string | null;
  readonly end: SessionEnd | null;
}

/** The ways to sign in that the server offers. If a link or an invitation opened the page, its form comes first. */
export function SignIn({ state, problem, end }: SignInProps) {
  const flow = useMemo(() => createFlow(state), [state]);
  useEffect(() => void flow.readWays(), [flow]);
  // This copy of the token stays after `state.invite` is reset, so that the screen still shows why an invitation is
  // invalid.
  const openedInvite = useSignal(state.invite.value);
  const openInvite = (token: string): void => {
    flow.invite.value = token;
    state.invite.value = token;
    openedInvite.value = token;
  };
  return (
    <main class="box sign-in">
      <h1 dir="auto">{state.place.projectName}</h1>
      {end === null ? null : <EndedNotice state={state} end={end} />}
      {problem === null ? null : (
        <p class="error" role="alert">
          {asSentence(problem)}
        </p>
      )}
      {openedInvite.value === null ? null : (
        <InviteSummary
          key={openedInvite.value}
          api={state.api}
          invite={openedInvite.value}
          hint={flow.signsUpByInvite ? '' : words.signInToJoin}
          onInvalid={() => {
            flow.invite.value = null;
            state.invite.value = null;
          }}
        />
      )}
      <Ways state={state} flow={flow} onInvite={openInvite} />
    </main>
  );
}

function createFlow(state: AppState): SignInFlow {
  return new SignInFlow({
    api: state.api,
    invite: state.invite.value,
    onSignedIn: (session, pendingInvite) => {
      state.invite.value = pendingInvite;
      return state.enter(session);
    },
  });
}

interface WaysProps {
  readonly state: AppState;
  readonly flow: SignInFlow;
  /** Takes an invitation that the person pasted. */
  readonly onInvite: (token: string) => void;
}

function Ways({ state, flow, onInvite }: WaysProps) {
  const ways = flow.ways.value;
  const step = flow.step.value;
  const link = state.link.value;
  if (link !== null) return <LinkButton state={state} flow={flow} token={link.token} />;
  if (ways === null) return <Unavailable read={flow.waysRead} />;
  if (step.name === 'code') return <CodeForm key={step.address} flow={flow} ways={ways} step={step} />;
  if (step.name === 'account') return <AccountForm flow={flow} proven={step} />;
  if (!sendsCodes(ways) && !flow.signsUpByInvite)
    return (
      <>
        <FlowProblem problem={flow.problem.value} shownFields={[]} />
        <LinkForm state={state} flow={flow} onInvite={flow.allowsSignUpByInvite ? onInvite : null} />
      </>
    );
  return (
    <>
      {sendsCodes(ways) ? <AddressForm flow={flow} ways={ways} /> : <AccountForm flow={flow} proven={null} />}
      <details>
        <summary>{words.haveLink}</summary>
        <LinkForm state={state} flow={flow} onInvite={null} />
      </details>
    </>
  );
}

function EndedNotice({ state, end }: { readonly state: AppState; readonly end: SessionEnd }) {
  const { reason, nick, hasUnsentTexts, successor } = end;
  return (
    <div class="notice">
      <p role="alert">{words.ended[reason](nick)}</p>
      {hasUnsentTexts ? <p>{words.textsKept(nick)}</p> : null}
      {successor === null ? null : (
        <p>
          {words.replaced(sanitize(successor.account.name), successor.account.nick)}{' '}
          <button type="button" onClick={() => void state.enter(successor)}>
            {words.continueAs(successor.account.nick)}
          </button>
        </p>
      )}
    </div>
  );
}
