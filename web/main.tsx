import { effect } from '@preact/signals';
import { render } from 'preact';
import { Api } from './core/api.ts';
import { AppState } from './core/app-state.ts';
import { applyAppearance, readAppearance } from './core/appearance.ts';
import { placeOf, takeTokens } from './core/place.ts';
import { titleCountOfAll } from './core/unread.ts';
import { App } from './screens/app.tsx';
import { words } from './words/words.ts';

/** The longest time for which the page shows nothing while it waits for the server's answer about the session. */
const MAX_BLANK_MS = 50;

const place = placeOf(document, location);
const showAppearance = (): void => applyAppearance(document.documentElement, readAppearance(place.base.pathname));
showAppearance();
// The browser sends this event when another tab has changed the stored appearance.
addEventListener('storage', showAppearance);
const state = new AppState(place, new Api(place.base), takeTokens(place, location, history));
document.addEventListener('visibilitychange', () => {
  void state.chat?.tellForeground(!document.hidden);
  if (document.hidden) state.chat?.drafts.storeNow();
});
addEventListener('pagehide', () => {
  state.chat?.drafts.storeNow();
  void state.chat?.deletions.sendNow({ outlivesPage: true });
});
addEventListener('popstate', () => state.navigation.followAddress());
addEventListener('hashchange', () => void state.openTokens(takeTokens(place, location, history)));
addEventListener('online', () => {
  state.sessionRead.tryNow();
  state.chat?.live.reconnectNow();
});
effect(() => {
  document.title = words.title(place.projectName, titleCountOfAll(state.chat?.conversations.value ?? []));
});
const started = state.start();
// The shell has requested the session already. If it is here, the page connects before it draws.
await Promise.race([started, new Promise((resolve) => setTimeout(resolve, MAX_BLANK_MS))]);
render(<App state={state} />, document.querySelector('#app')!);
