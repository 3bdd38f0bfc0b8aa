import type { Command } from 'commander';
import { boolean, integer, nullable, objectWithAtLeast, string, type Decoded } from '../core/decode.ts';
import { decodeConversation, type Conversation } from '../core/shapes.ts';
import { withSignedInClient, withServerAndProfile, type ChatOptions } from './chat-client.ts';
import { findConversation, listConversations } from './chat-directory.ts';
import { jsonLine, conversationName } from './chat-text.ts';
import { sanitize } from '../core/safe-text.ts';
import { formatTable } from './table.ts';
import { print, type ChatContext } from './context.ts';

interface JsonOption {
  readonly json?: boolean;
}
type ChatJsonOptions = ChatOptions & JsonOption;

const decodeCreatedGroup = objectWithAtLeast({ id: integer, title: string });
export const decodeJoinedGroup = objectWithAtLeast({ group: integer, title: string, joined: boolean });
const decodeInvite = objectWithAtLeast({ link: string, expires_at: nullable(string) });

const MAX_INVITE_DAYS = 365;
const DAY_S = 86_400;

export function addListConversations(chat: Command, context: ChatContext): void {
  const command = chat
    .command('list')
    .description('list your groups and private conversations, with how much is unread')
    .action(async (options: ChatJsonOptions) => {
      const all = await withSignedInClient(context, options, listConversations);
      print(context, ...(options.json === true ? all.map(jsonLine) : conversationListLines(all)));
    });
  context.withExamples(withJsonLines(withServerAndProfile(command), 'conversation'), [
    'klatch chat list',
    'klatch chat list --json',
  ]);
}

/** Adds the option `--json`, which prints one JSON value per line: a program can process a long list as it arrives. */
export function withJsonLines(command: Command, itemNoun: string): Command {
  return command.option('--json', `print each ${itemNoun} as a line of JSON`);
}

export function conversationListLines(all: readonly Conversation[]): string[] {
  if (all.length === 0) return ['You are in no conversation yet. `klatch chat join LINK` joins a group.'];
  const rows = all.map((each) => [
    each.id,
    each.unread,
    each.members,
    each.archived ? 'archived' : each.role,
    conversationName(each),
  ]);
  return formatTable(['NUMBER', 'UNREAD', 'MEMBERS', 'ROLE', 'NAME'], rows);
}

export function addOpenPrivate(chat: Command, context: ChatContext): void {
  const command = chat
    .command('open')
    .description('open the private conversation with somebody, and print its number')
    .argument('<nick>', 'whom to talk to')
    .action(async (nick: string, options: ChatJsonOptions) => {
      const params = { user: nick.replace(/^@/, '') };
      const conversation = await withSignedInClient(context, options, (client) =>
        client.call('private.open', params, { decode: decodeConversation, isRepeatable: true }),
      );
      print(context, options.json === true ? jsonLine(conversation) : String(conversation.id));
    });
  context.withExamples(context.withJson(withServerAndProfile(command)), [
    'klatch chat open bob',
    'klatch chat send "$(klatch chat open bob)" "Lunch?"',
  ]);
}

export function addJoinGroup(chat: Command, context: ChatContext): void {
  const command = chat
    .command('join')
    .description('join a group by an invitation, or a public one by its number')
    .argument('<group>', 'the link of an invitation, or the number of a public group')
    .action(async (group: string, options: ChatJsonOptions) => {
      const params = joinParams(group);
      const joinResult = await withSignedInClient(context, options, (client) =>
        client.call('groups.join', params, { decode: decodeJoinedGroup, isRepeatable: true }),
      );
      print(context, options.json === true ? jsonLine(joinResult) : joinedLine(joinResult));
    });
  context.withExamples(context.withJson(withServerAndProfile(command)), [
    'klatch chat join https://chat.example.org/v1/groups/invites/TOKEN',
    'klatch chat join 7',
  ]);
}

/** The parameters of groups.join for the text that a person typed. */
export function joinParams(text: string): { group: number } | { invite: string } {
  return /^\d{1,15}$/.test(text) ? { group: Number(text) } : { invite: text };
}

export function joinedLine({ group, title, joined }: Decoded<typeof decodeJoinedGroup>): string {
  return `${joined ? 'You are' : 'You were already'} in group ${group}: ${sanitize(title)}`;
}

export function addCreateGroup(chat: Command, context: ChatContext): void {
  const command = chat
    .command('create')
    .description('create a group that you own, and print its number')
    .argument('<title>', 'the name of the group: 1 to 200 characters')
    .option('--about <text>', 'what the group is for: up to 2,000 characters')
    .option('--public', 'let anybody of the installation find and join it')
    .action(
      async (title: string, { about, public: isPublic = false, ...options }: ChatJsonOptions & CreateGroupOptions) => {
        const params = { title, ...(about === undefined ? {} : { about }), public: isPublic };
        const created = await withSignedInClient(context, options, (client) =>
          client.call('groups.create', params, { decode: decodeCreatedGroup }),
        );
        print(context, options.json === true ? jsonLine(created) : String(created.id));
      },
    );
  context.withExamples(context.withJson(withServerAndProfile(command)), [
    'klatch chat create "Release 2" --about "What is still missing"',
  ]);
}

interface CreateGroupOptions {
  readonly about?: string;
  readonly public?: boolean;
}

export function addCreateInvite(chat: Command, context: ChatContext): void {
  const command = chat
    .command('invite')
    .description('make an invitation into a group of yours, and print its link')
    .argument('<group>', 'the number of the group, or its title if no other of yours has it')
    .option('--days <count>', 'how long it is good for', context.wholeNumber(1, MAX_INVITE_DAYS))
    .option('--uses <count>', 'how many may join by it (default: any number)', context.wholeNumber(1, 1_000_000))
    .action(async (group: string, { days, uses, ...options }: ChatJsonOptions & { days?: number; uses?: number }) => {
      const invite = await withSignedInClient(context, options, async (client) => {
        const { id } = await findConversation(client, group);
        const inviteBounds = {
          ...(days === undefined ? {} : { valid_s: days * DAY_S }),
          ...(uses === undefined ? {} : { max_uses: uses }),
        };
        return client.call('invites.create', { group: id, ...inviteBounds }, { decode: decodeInvite });
      });
      print(context, options.json === true ? jsonLine(invite) : sanitize(invite.link));
    });
  context.withExamples(context.withJson(withServerAndProfile(command)), [
    'klatch chat invite Operations',
    'klatch chat invite 7 --days 2 --uses 1',
  ]);
}
