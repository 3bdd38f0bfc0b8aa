/** The parts of the settings, in the order in which they are listed. */
export const settingsParts = [
  'profile',
  'sessions',
  'app-passwords',
  'devices',
  'bots',
  'webhooks',
  'blocked',
  'appearance',
  'shortcuts',
  'server',
  'people',
] as const;
/** The parts that only administrators of the installation see. */
export const adminParts: ReadonlySet<SettingsPart> = new Set(['server', 'people']);
export type SettingsPart = (typeof settingsParts)[number];

/** The screen that an address of the page names. */
export type Route = ScreenBelow | SettingsRoute;

/** A screen that fills the page; panels open over it. */
export type ScreenBelow =
  | { readonly screen: 'list' }
  | {
      readonly screen: 'conversation';
      readonly conversation: number;
      /** The message to show; null: the first unread one, or the end where all is read. */
      readonly seq: number | null;
      /** The panel that is open over the conversation, if any. */
      readonly panel?: ConversationPanel;
      /** The reverse webhook that the panel `hooks` shows; without it: the list. */
      readonly hook?: number;
    };

const conversationPanels = ['about', 'integration', 'hooks'] as const;
export type ConversationPanel = (typeof conversationPanels)[number];

interface SettingsRoute {
  readonly screen: 'settings';
  /** The part of the settings to show; null: the list of the parts. */
  readonly part: SettingsPart | null;
}

const CONVERSATION_PATH =
  /^c\/([1-9]\d{0,14})(?:\/([1-9]\d{0,14}))?(?:\/(about|integration|hooks)|\/hooks\/([1-9]\d{0,9}))?$/;
const SETTINGS_PATH = /^settings(?:\/([a-z-]{1,30}))?$/;

/** Reads a path of the page below its base; unknown paths lead to the list of conversations. */
export function parseRoute(pathname: string, basePathname: string): Route {
  const below = pathname.startsWith(basePathname) ? pathname.slice(basePathname.length) : '';
  return conversationRoute(below) ?? settingsRoute(below) ?? { screen: 'list' };
}

function conversationRoute(path: string): Route | null {
  const found = CONVERSATION_PATH.exec(path);
  if (found === null) return null;
  const seq = found[2] === undefined ? null : Number(found[2]);
  const route = { screen: 'conversation', conversation: Number(found[1]), seq } as const;
  if (found[4] !== undefined) return { ...route, panel: 'hooks', hook: Number(found[4]) };
  const panel = conversationPanels.find((each) => each === found[3]);
  return panel === undefined ? route : { ...route, panel };
}

function settingsRoute(path: string): Route | null {
  const found = SETTINGS_PATH.exec(path);
  if (found === null) return null;
  if (found[1] === undefined) return { screen: 'settings', part: null };
  const part = settingsParts.find((each) => each === found[1]);
  return part === undefined ? null : { screen: 'settings', part };
}

/** The path of a screen, which begins with the path of the base. */
export function pathOf(route: Route, basePathname: string): string {
  if (route.screen === 'list') return basePathname;
  if (route.screen === 'settings') return `${basePathname}settings${route.part === null ? '' : `/${route.part}`}`;
  const { conversation, seq, panel, hook } = route;
  const parts = [conversation, seq, panel, hook].filter((part) => part !== null && part !== undefined);
  return `${basePathname}c/${parts.join('/')}`;
}

/** Whether a panel is open over another screen. */
export function isPanel(route: Route): boolean {
  return route.screen === 'settings' || (route.screen === 'conversation' && route.panel !== undefined);
}
