import { render } from 'preact';
import { Api } from './core/api.ts';
import { AppState } from './core/app-state.ts';
import { placeOf, takeLink } from './core/place.ts';
import { App } from './screens/app.tsx';

const place = placeOf(document, location);
const state = new AppState(place, new Api(place.base), takeLink(place, location, history));
render(<App state={state} />, document.querySelector('#app')!);
document.addEventListener('visibilitychange', () => void state.tellForeground(!document.hidden));
void state.start();
