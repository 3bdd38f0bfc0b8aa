import type { AppState } from '../core/app-state.ts';
import { words } from '../words/words.ts';
import { ChatScreen } from './chat-screen.tsx';
import { useLoaded } from './loaded.ts';
import { Modal, Problem } from './modal.tsx';
import { PeopleLayer } from './people/people-layer.tsx';
import type { InvitationProps } from './sign-in/invitation.tsx';
import type { SignInProps } from './sign-in/sign-in.tsx';
import { Unavailable } from './sign-in/unavailable.tsx';

const loadSignIn = async () => (await import('./panels.ts')).SignIn;
const loadInvitation = async () => (await import('./panels.ts')).Invitation;

export function App({ state }: { readonly state: AppState }) {
  const phase = state.phase.value;
  const invite = state.invite.value;
  if (phase.name === 'loading') return <Starting state={state} />;
  if (phase.name === 'elsewhere') return <WrongAddressHint state={state} />;
  if (phase.name === 'signed-out') return <LoadedSignIn state={state} problem={phase.problem} end={phase.end} />;
  const { chat } = phase;
  if (invite !== null) return <LoadedInvitation state={state} chat={chat} invite={invite} />;
  return (
    <PeopleLayer state={state} chat={chat}>
      <ChatScreen state={state} chat={chat} />
      <SignOutQuestion state={state} />
    </PeopleLayer>
  );
}

function SignOutQuestion({ state }: { readonly state: AppState }) {
  const risks = state.signOutRisks.value;
  if (risks === null) return null;
  return (
    <Modal
      title={words.signOutQuestion}
      closeLabel={words.staySignedIn}
      onClose={() => {
        state.signOutRisks.value = null;
      }}
    >
      {risks.losesTexts ? <p>{words.signOutLosesTexts}</p> : null}
      {risks.losesAccess ? <p>{words.signOutLosesAccess}</p> : null}
      <button class="danger" type="button" onClick={() => void state.signOut({ isConfirmed: true })}>
        {words.signOut}
      </button>
    </Modal>
  );
}

function LoadedSignIn(props: SignInProps) {
  const { part: Screen, hasFailed } = useLoaded(loadSignIn);
  return Screen === null ? <NotLoaded hasFailed={hasFailed} /> : <Screen {...props} />;
}

function LoadedInvitation(props: InvitationProps) {
  const { part: Screen, hasFailed } = useLoaded(loadInvitation);
  return Screen === null ? <NotLoaded hasFailed={hasFailed} /> : <Screen {...props} />;
}

function NotLoaded({ hasFailed }: { readonly hasFailed: boolean }) {
  return (
    <main class="box" aria-busy={!hasFailed}>
      {hasFailed ? <Problem sentence={words.cannotLoad} /> : <p class="quiet">{words.loading}</p>}
    </main>
  );
}

function Starting({ state }: { readonly state: AppState }) {
  return (
    <main class="box" aria-busy="true">
      <h1 dir="auto">{state.place.projectName}</h1>
      <Unavailable read={state.sessionRead} />
    </main>
  );
}

/**
 * A hint with a link to `http.base-uri`, shown if the page was opened at another address. The link contains the token
 * of the sign-in link or invitation that opened the page.
 */
function WrongAddressHint({ state }: { readonly state: AppState }) {
  const { base, pageOrigin } = state.place;
  const { link, invite } = state;
  return (
    <main class="box">
      <h1>{words.elsewhere}</h1>
      <p>
        {words.elsewhereReason(pageOrigin)}{' '}
        <a href={`${base.href}${openedTokenSuffix(link.value?.token ?? null, invite.value)}`}>{base.href}</a>
      </p>
    </main>
  );
}

/** The part of a link after `http.base-uri`: with it the sign-in link or invitation also works at that address. */
function openedTokenSuffix(link: string | null, inviteToken: string | null): string {
  if (link !== null) return `#${link}`;
  return inviteToken === null ? '' : `join#${inviteToken}`;
}
