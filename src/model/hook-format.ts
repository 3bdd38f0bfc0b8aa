/** How the requests of a reverse webhook look: `klatch` is our own format, the others are those of other products. */
export const hookFormats = ['klatch', 'mattermost', 'ntfy', 'discord', 'slack'] as const;
export type HookFormat = (typeof hookFormats)[number];
export type ForeignHookFormat = Exclude<HookFormat, 'klatch'>;

/** The kinds of senders whose messages a hook can leave out. */
type SkippableSenderKind = 'webhook' | 'bot';

/** The maximum number of a hook's triggers, and the maximum length of each in UTF-16 units. */
export const MAX_TRIGGERS = 20;
export const MAX_TRIGGER_LENGTH = 50;
/** The maximum of `maxAgeS`. A week is longer than the three days after which a failing hook is parked by default. */
export const MAX_MAX_AGE_S = 7 * 24 * 60 * 60;

/**
 * The default `maxAgeS` of a hook with Mattermost's format. A command that a bot gets late does harm: the person who
 * typed it has long given up on it.
 */
const MATTERMOST_DEFAULT_MAX_AGE_S = 300;

/** Selects the messages of its group that a hook gets. */
export interface HookFilter {
  readonly skip: readonly SkippableSenderKind[];
  readonly triggers: readonly string[];
  /** The maximum age of a message that the hook gets, in seconds; null: any age. */
  readonly maxAgeS: number | null;
}

/**
 * The filter of a hook that has none of its own. Bots of other products do not copy `klatch-hops`, so two of them would
 * answer each other for ever. Hooks with the formats of other products therefore get no posts of webhooks and bots.
 */
export function defaultFilter(format: HookFormat): HookFilter {
  if (format === 'klatch') return { skip: [], triggers: [], maxAgeS: null };
  return {
    skip: ['webhook', 'bot'],
    triggers: [],
    maxAgeS: format === 'mattermost' ? MATTERMOST_DEFAULT_MAX_AGE_S : null,
  };
}
