/** Which screen an address of the page is for. */
export type Route =
  | { readonly screen: 'list' }
  /** `seq`: the message to show; null: the first unread one, or the end where all is read. */
  | { readonly screen: 'conversation'; readonly conversation: number; readonly seq: number | null };

const CONVERSATION_PATH = /^c\/([1-9]\d{0,14})(?:\/([1-9]\d{0,14}))?$/;

/** Reads a path of the page below its base; paths that it has no screen for are those of the list. */
export function parseRoute(pathname: string, basePathname: string): Route {
  const below = pathname.startsWith(basePathname) ? pathname.slice(basePathname.length) : '';
  const found = CONVERSATION_PATH.exec(below);
  if (found === null) return { screen: 'list' };
  const seq = found[2] === undefined ? null : Number(found[2]);
  return { screen: 'conversation', conversation: Number(found[1]), seq };
}

/** The path of a screen, with that of the base in front. */
export function pathOf(route: Route, basePathname: string): string {
  if (route.screen === 'list') return basePathname;
  const { conversation, seq } = route;
  return `${basePathname}c/${conversation}${seq === null ? '' : `/${seq}`}`;
}
