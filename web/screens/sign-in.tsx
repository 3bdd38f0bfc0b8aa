import { useSignal } from '@preact/signals';
import type { AppState } from '../core/app-state.ts';
import { linkTokenIn } from '../core/place.ts';
import { words } from '../words/words.ts';

/** One button where a link opened the page, else a field for a link. */
export function SignIn({ state, sentence }: { readonly state: AppState; readonly sentence: string | null }) {
  const token = state.link.value?.token ?? null;
  return (
    <main class="box">
      <h1 dir="auto">{state.place.projectName}</h1>
      {sentence === null ? null : (
        <p class="error" role="alert">
          {sentence}
        </p>
      )}
      {token === null ? <LinkForm state={state} /> : <LinkButton state={state} token={token} />}
    </main>
  );
}

function LinkButton({ state, token }: { readonly state: AppState; readonly token: string }) {
  return (
    <>
      <p>{words.linkOpened}</p>
      <button class="primary" type="button" disabled={state.isBusy.value} onClick={() => void state.signIn(token)}>
        {words.signInByLink}
      </button>
    </>
  );
}

function LinkForm({ state }: { readonly state: AppState }) {
  const text = useSignal('');
  const isRefused = useSignal(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    const token = linkTokenIn(text.value);
    isRefused.value = token === null;
    if (token !== null) void state.signIn(token);
  };
  return (
    <form onSubmit={submit}>
      <label for="link">{words.pasteLink}</label>
      <input
        id="link"
        type="text"
        autocomplete="off"
        spellcheck={false}
        value={text}
        aria-invalid={isRefused.value}
        aria-describedby="link-help"
        onInput={(event) => {
          text.value = event.currentTarget.value;
        }}
      />
      <p class={isRefused.value ? 'error' : 'quiet'} id="link-help">
        {isRefused.value ? words.notALink : words.whereLinksComeFrom}
      </p>
      <button class="primary" type="submit" disabled={state.isBusy.value}>
        {words.signIn}
      </button>
    </form>
  );
}
