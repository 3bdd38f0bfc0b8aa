import type { HookFormat } from '../model/hook-format.ts';
import type { ReceiverFormat } from './core/receiver-format.ts';
import { discord } from './discord.ts';
import { mattermost } from './mattermost.ts';
import { ntfy } from './ntfy.ts';
import { slack } from './slack.ts';

const FORMATS = { mattermost, ntfy, discord, slack } as const;

/** The format of another product; null for Klatch's own format. */
export function receiverFormat(name: HookFormat): ReceiverFormat | null {
  return name === 'klatch' ? null : FORMATS[name];
}
