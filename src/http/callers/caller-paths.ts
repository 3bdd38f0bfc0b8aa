import type { CallerFormat } from '../../callers/core/caller-format.ts';
import { formats } from '../../callers/formats.ts';
import { teams } from '../../callers/teams.ts';
import type { ConversationId } from '../../model/ids.ts';
import {
  discordDialect,
  discordWebhook,
  gotifyDialect,
  okDialect,
  rocketChatDialect,
  slackDialect,
  teamsDialect,
  telegramBot,
  telegramDialect,
} from './answer-dialects.ts';
import type { Answer, AnswerDialect } from './caller-route.ts';

/** A path by which programs reach a group. */
export interface CallerPath {
  /** The path has the parameter `token`, unless the token is in another part of the request. */
  readonly path: string | RegExp;
  /** The name of a format; null: the shape of the body decides. */
  readonly format: string | null;
  /** The form of the answers; null: the same as at the group's own address. */
  readonly dialect: AnswerDialect | null;
  /** The answer to GET, for programs that ask before they post; absent: GET is not allowed. */
  readonly information?: (group: ConversationId) => Answer;
}

/** A path that answers what a program asks at its start, by GET and POST, and posts nothing. */
export interface InformationPath {
  readonly path: RegExp;
  readonly dialect: AnswerDialect;
  readonly information: (group: ConversationId) => Answer;
}

/** Suffixes of a group's address with answers of their own, or with another name than their format. */
const SPECIAL_SUFFIXES: Readonly<Record<string, Omit<CallerPath, 'path'>>> = {
  slack: { format: 'slack', dialect: slackDialect },
  discord: { format: 'discord', dialect: discordDialect, information: discordWebhook },
  teams: { format: 'teams', dialect: teamsDialect },
  message: { format: 'gotify', dialect: gotifyDialect },
  kuma: { format: 'uptime-kuma', dialect: null },
};

const suffixNames = [...new Set([...formats.map(({ name }) => name), ...Object.keys(SPECIAL_SUFFIXES)])];

/** Suffixes of a group's address that name the format of the body. */
export const suffixes: readonly CallerPath[] = suffixNames.map((name) => ({
  path: `/v1/webhooks/:token/${name}`,
  ...(SPECIAL_SUFFIXES[name] ?? { format: name, dialect: null }),
}));

/**
 * In a token of Telegram, digits and a colon come first: Telegram's libraries check them, and this server ignores them.
 */
const TELEGRAM_PATH = /^\/bot(?:\d+:)?(?<token>[\w-]+)\/(?:sendMessage|sendPhoto|sendDocument)$/;
const TELEGRAM_BOT_PATH = /^\/bot(?:\d+:)?(?<token>[\w-]+)\/getMe$/;

/** Paths that programs make from a server's address and a token; the segment `:any` may be anything. */
export const aliases: readonly CallerPath[] = [
  { path: '/hooks/:token', format: 'slack', dialect: slackDialect },
  { path: '/hooks/:any/:token', format: 'slack', dialect: rocketChatDialect },
  ...['/api/webhooks/:any/:token', '/api/v:version/webhooks/:any/:token'].flatMap((path) => [
    { path, format: 'discord', dialect: discordDialect, information: discordWebhook },
    { path: `${path}/slack`, format: 'slack', dialect: slackDialect },
    { path: `${path}/github`, format: 'github', dialect: discordDialect },
  ]),
  { path: '/message', format: 'gotify', dialect: gotifyDialect },
  { path: TELEGRAM_PATH, format: 'telegram', dialect: telegramDialect },
  { path: '/api/v1/matrix/hook/:token', format: null, dialect: okDialect },
  { path: '/webhook/:token', format: null, dialect: okDialect },
  { path: '/notify/:token', format: 'apprise', dialect: okDialect },
];

/** The paths at the root of the server at which programs ask for information before they post. */
export const informationPaths: readonly InformationPath[] = [
  { path: TELEGRAM_BOT_PATH, dialect: telegramDialect, information: telegramBot },
];

/** Whether a path looks like one of `aliases`, the paths of other products, by its beginning; only for metrics. */
export function isAliasPath(path: string): boolean {
  return (
    path === '/' ||
    path === '/message' ||
    /^\/(?:hooks\/|api\/(?:v\d+\/)?(?:webhooks|matrix)\/|bot|webhook\/|notify\/)/.test(path)
  );
}

/** The format with this name; null if `name` is null. Throws for an unknown name. */
export function formatNamed(name: string | null): CallerFormat | null {
  if (name === null) return null;
  const format = [...formats, teams].find((each) => each.name === name);
  if (format === undefined) throw new Error(`there is no format ${name}`);
  return format;
}

export function isSuffixName(name: string): boolean {
  return suffixNames.includes(name);
}
