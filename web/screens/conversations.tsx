import type { Conversation } from '../../client/core/shapes.ts';
import type { SignedInAccount } from '../core/api.ts';
import type { AppState } from '../core/app-state.ts';
import { words } from '../words/words.ts';

/** Who is signed in, and what is unread where. */
export function Conversations({ state, account }: { readonly state: AppState; readonly account: SignedInAccount }) {
  const problem = state.connectionProblem.value;
  return (
    <main>
      <div class="bar">
        <p class="quiet" dir="auto" id="account">
          {words.signedInAs(account.name, account.nick)}
        </p>
        <button type="button" disabled={state.isBusy.value} onClick={() => void state.signOut()}>
          {words.signOut}
        </button>
      </div>
      <h1>{words.conversations}</h1>
      <OtherLink state={state} />
      <p class="quiet" role="status">
        {problem === null ? '' : `${problem}. ${words.trying}`}
      </p>
      <List conversations={state.conversations.value} />
      <p class="quiet">
        {words.whatIsHere} <code>klatch chat</code>
      </p>
    </main>
  );
}

function OtherLink({ state }: { readonly state: AppState }) {
  const token = state.link.value?.token ?? null;
  if (token === null) return null;
  return (
    <p>
      {words.otherLinkOpened}{' '}
      <button type="button" disabled={state.isBusy.value} onClick={() => void state.signIn(token)}>
        {words.useOtherLink}
      </button>
    </p>
  );
}

function List({ conversations }: { readonly conversations: readonly Conversation[] | null }) {
  if (conversations === null) return <p class="quiet">{words.loading}</p>;
  if (conversations.length === 0) return <p>{words.noConversations}</p>;
  return (
    <ul>
      {conversations.map(({ id, title, peer, unread, archived }) => (
        <li key={id}>
          <span class="title" dir="auto">
            {peer === null ? title : peer.name}
            {archived ? <span class="quiet"> {words.archived}</span> : null}
          </span>
          {unread === 0 ? null : <span class="unread">{words.unread(unread)}</span>}
        </li>
      ))}
    </ul>
  );
}
