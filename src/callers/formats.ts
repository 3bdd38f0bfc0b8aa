import { adaptiveCard } from './adaptive-card.ts';
import { alertmanager } from './alertmanager.ts';
import { apprise } from './apprise.ts';
import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import { discord } from './discord.ts';
import { generic } from './generic.ts';
import { gitea } from './gitea.ts';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';
import { googleChat } from './google-chat.ts';
import { gotify } from './gotify.ts';
import { grafana } from './grafana.ts';
import { json } from './json.ts';
import { messageCard } from './message-card.ts';
import { ntfy } from './ntfy.ts';
import { sentry } from './sentry.ts';
import { slack } from './slack.ts';
import { telegram } from './telegram.ts';
import { uptimeKuma } from './uptime-kuma.ts';

/**
 * All formats, in the order in which a request is compared with them if its URL has no suffix for a format. If two
 * formats have the same key, the more specific format comes first. The body decides before the headers, since Gitea
 * sends GitHub's headers with a body in Slack's format.
 */
export const formats: readonly CallerFormat[] = [
  adaptiveCard,
  messageCard,
  apprise,
  discord,
  googleChat,
  slack,
  grafana,
  alertmanager,
  gitea,
  github,
  gitlab,
  sentry,
  uptimeKuma,
  ntfy,
  gotify,
  telegram,
  generic,
  json,
];

/** The format that the request surely has; null: none. */
export function detectFormat(request: CallerRequest): CallerFormat | null {
  return formats.find((format) => format.matches(request)) ?? null;
}
