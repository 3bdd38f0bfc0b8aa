import { signal } from '@preact/signals';
import { isPanel, parseRoute, pathOf, type Route, type ScreenBelow } from './routes.ts';

/** Moves the page between its screens, with an entry of the browser's history for each. */
export class Navigation {
  readonly route = signal<Route>({ screen: 'list' });
  readonly #basePathname: string;
  #screenBelow: ScreenBelow = { screen: 'list' };
  #isLeavingPanel = false;
  /** The screen that a person chose while the browser was going back from a panel; null: none. */
  #routeChosenWhileLeaving: Route | null = null;

  constructor(basePathname: string) {
    this.#basePathname = basePathname;
    this.followAddress();
  }

  /** The screen that an open panel covers; without a panel, the open screen. */
  get screenBelow(): ScreenBelow {
    // Reading the signal subscribes the calling component: `#screenBelow` changes only with the route.
    void this.route.value;
    return this.#screenBelow;
  }

  /** Shows the screen that the address of the page names, after the person went back or forward. */
  followAddress(): void {
    this.#isLeavingPanel = false;
    this.#show(parseRoute(location.pathname, this.#basePathname));
    const chosen = this.#routeChosenWhileLeaving;
    this.#routeChosenWhileLeaving = null;
    if (chosen !== null) this.go(chosen);
  }

  /** `replaces`: the route replaces the current entry of the browser's history. */
  go(route: Route, { replaces = false } = {}): void {
    if (this.#isLeavingPanel) {
      // The browser goes back asynchronously, and would then also leave a screen that is shown now.
      this.#routeChosenWhileLeaving = route;
      return;
    }
    const path = pathOf(route, this.#basePathname);
    if (path !== location.pathname) {
      const historyState = { panelSteps: this.#panelStepsTo(route, replaces) };
      history[replaces ? 'replaceState' : 'pushState'](historyState, '', path);
    }
    this.#show(route);
  }

  /**
   * Closes the panel. If a screen of this page opened it, the browser's history is then as it was before the panel was
   * opened.
   */
  leavePanel(): void {
    if (!isPanel(this.route.value) || this.#isLeavingPanel) return;
    const steps = panelStepsIn(history.state);
    if (steps === 0) this.go(this.#screenBelow, { replaces: true });
    else {
      // Until the browser has gone back, a second call would go back further.
      this.#isLeavingPanel = true;
      history.go(-steps);
    }
  }

  /** Goes from a part of a panel to the list of the parts, at the route `list`. */
  goToPanelList(list: Route): void {
    if (this.#isLeavingPanel) return;
    if (panelStepsIn(history.state) < 2) this.go(list, { replaces: true });
    else {
      this.#isLeavingPanel = true;
      history.back();
    }
  }

  #show(route: Route): void {
    if (route.screen !== 'settings') this.#screenBelow = withoutPanel(route);
    this.route.value = route;
  }

  #panelStepsTo(route: Route, replaces: boolean): number {
    if (!isPanel(route)) return 0;
    const steps = panelStepsIn(history.state);
    if (replaces) return steps;
    // A panel that was opened by its address has no screen below it in the history.
    return isPanel(this.route.value) && steps === 0 ? 0 : steps + 1;
  }
}

function withoutPanel(route: ScreenBelow): ScreenBelow {
  if (route.screen === 'list') return route;
  const { screen, conversation, seq } = route;
  return { screen, conversation, seq };
}

/**
 * The number of steps back to the screen below the panel; 0: no panel is open, or the panel was opened by its address.
 */
function panelStepsIn(state: unknown): number {
  const steps = (state as { panelSteps?: unknown } | null)?.panelSteps;
  return typeof steps === 'number' && Number.isSafeInteger(steps) && steps > 0 ? steps : 0;
}
