import type { AppState } from '../core/app-state.ts';
import { words } from '../words/words.ts';
import { ChatScreen } from './chat-screen.tsx';
import { PeopleLayer } from './people/people-layer.tsx';
import { SignIn } from './sign-in.tsx';

/** The whole page. */
export function App({ state }: { readonly state: AppState }) {
  const phase = state.phase.value;
  if (phase.name === 'loading') return <Loading />;
  if (phase.name === 'unavailable') return <Unavailable sentence={phase.sentence} />;
  if (phase.name === 'elsewhere') return <Elsewhere state={state} />;
  if (phase.name === 'signed-out') return <SignIn state={state} sentence={phase.sentence} />;
  return (
    <PeopleLayer state={state} chat={phase.chat}>
      <ChatScreen state={state} chat={phase.chat} />
    </PeopleLayer>
  );
}

function Loading() {
  return (
    <main class="box" aria-busy="true">
      <p class="quiet">{words.loading}</p>
    </main>
  );
}

function Unavailable({ sentence }: { readonly sentence: string }) {
  return (
    <main class="box">
      <h1>{words.unavailable}</h1>
      <p role="status">
        {sentence}. {words.trying}
      </p>
    </main>
  );
}

/** A link that opened the page goes on to the right address. */
function Elsewhere({ state }: { readonly state: AppState }) {
  const { base, pageOrigin } = state.place;
  const token = state.link.value?.token ?? null;
  return (
    <main class="box">
      <h1>{words.elsewhere}</h1>
      <p>
        {words.elsewhereReason(pageOrigin)} <a href={`${base.href}${token === null ? '' : `#${token}`}`}>{base.href}</a>
      </p>
    </main>
  );
}
