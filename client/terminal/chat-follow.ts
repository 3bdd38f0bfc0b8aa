import { once } from 'node:events';
import { Option, type Command } from 'commander';
import type { ChatEvent } from '../core/events.ts';
import type { FollowOptions } from '../core/follower.ts';
import type { LiveClient } from '../core/live-client.ts';
import { StateFile } from '../node/state-file.ts';
import { explainedAsMember, findUse, followerOf, running, withProfile, type ChatOptions } from './chat-client.ts';
import { CONVERSATION, ConversationNames, findConversation } from './chat-directory.ts';
import { withJsonLines } from './chat-groups.ts';
import { statePath } from './chat-profile.ts';
import { changeLines, jsonLine } from './chat-text.ts';
import { sanitize } from './safe-text.ts';
import { formatDuration } from './table.ts';
import { printError, type ChatContext } from './context.ts';

type Since = 'last' | 'now' | 'start';

interface FollowFlags extends ChatOptions {
  readonly since: Since;
  readonly json?: boolean;
}

export function addFollow(chat: Command, context: ChatContext): void {
  const command = chat
    .command('follow')
    .description('print what came since the last time, then every message and notice as it comes, until it is stopped')
    .argument('[conversations...]', `only these, each named as elsewhere: ${CONVERSATION}`)
    .addOption(
      new Option(
        '--since <place>',
        'where to begin: where the last one stopped (the first time: now), now, or with the first message',
      )
        .choices(['last', 'now', 'start'])
        .default('last'),
    )
    .action((conversations: readonly string[], options: FollowFlags) => follow(context, conversations, options));
  context.withExamples(withJsonLines(withProfile(command), 'change'), [
    'klatch chat follow',
    'klatch chat follow Operations @bob --since now',
    'klatch chat follow 7 --json | jq --unbuffered -r .message.text',
  ]);
}

async function follow(context: ChatContext, names: readonly string[], options: FollowFlags): Promise<void> {
  const use = await findUse(context, options);
  const only = names.length === 0 ? null : await idsOf(context, names, options);
  const state = new StateFile(statePath(context.env, options.profile), use.profile.sign_in);
  const saved = state.load() ?? new Map<number, number>();
  const printer = new ChangePrinter(context, { isJson: options.json === true, client: () => client });
  const client: LiveClient = followerOf(use, {
    follow: beginOf(options.since, { saved, only }),
    listener: async (event) => {
      await printer.show(event);
      // What others followed, or this one before without them, stays as it was.
      if (event.type === 'left') saved.delete(event.conversation);
      if (event.type === 'change' || event.type === 'left') state.saveSoon(() => new Map([...saved, ...client.revs]));
    },
  });
  const signals = context.createStopSignals();
  signals.start();
  try {
    await running(client, async () => {
      const end = await Promise.race([client.over, signals.asked.then(() => null)]);
      if (end !== null) throw end;
    });
  } finally {
    signals.stop();
    state.save();
  }
}

/** Where the stream is to begin. */
export function beginOf(
  since: Since,
  { saved, only }: { saved: ReadonlyMap<number, number>; only: ReadonlySet<number> | null },
): FollowOptions {
  const known = new Map([...saved].filter(([id]) => since === 'last' && (only?.has(id) ?? true)));
  return { known, others: since === 'start' ? 'start' : 'now', only };
}

async function idsOf(context: ChatContext, names: readonly string[], options: ChatOptions): Promise<Set<number>> {
  const found = await explainedAsMember(context, options, (client) =>
    Promise.all(names.map((name) => findConversation(client, name))),
  );
  return new Set(found.map(({ id }) => id));
}

/** Writes events: changes on standard output, what happens to the connection on standard error. */
class ChangePrinter {
  readonly #context: ChatContext;
  readonly #isJson: boolean;
  readonly #names: ConversationNames;
  #isAway = false;

  constructor(context: ChatContext, { isJson, client }: { isJson: boolean; client: () => LiveClient }) {
    this.#context = context;
    this.#isJson = isJson;
    this.#names = new ConversationNames(client);
  }

  async show(event: ChatEvent): Promise<void> {
    if (event.type === 'disconnected') this.#cut(event);
    else if (event.type === 'following') this.#following(event);
    else if (event.type === 'reset') this.#tell(resetLine(event));
    else if (event.type === 'joined' || event.type === 'left') await this.#membership(event);
    else if (event.type === 'change') await this.#change(event);
  }

  /** Once for an outage, however many attempts it takes. */
  #cut(event: Extract<ChatEvent, { type: 'disconnected' }>): void {
    if (!this.#isAway) this.#tell(disconnectedLine(event));
    this.#isAway = true;
  }

  #following({ conversations, complete }: Extract<ChatEvent, { type: 'following' }>): void {
    this.#isAway = false;
    this.#tell(`following ${conversations} conversation${conversations === 1 ? '' : 's'}`);
    if (!complete) this.#tell(INCOMPLETE_LINE);
  }

  async #change({ conversation, change }: Extract<ChatEvent, { type: 'change' }>): Promise<void> {
    if (this.#isJson) return this.#write(jsonLine({ conversation, ...change }));
    if (change.notice?.kind === 'renamed') this.#names.forget(conversation);
    const name = await this.#names.find(conversation);
    for (const line of changeLines(change, { name, now: new Date() })) await this.#write(line);
  }

  async #membership({ type, conversation }: Extract<ChatEvent, { type: 'joined' | 'left' }>): Promise<void> {
    if (this.#isJson) return this.#write(jsonLine({ conversation, event: type }));
    const name = type === 'joined' ? await this.#names.find(conversation) : this.#names.known(conversation);
    const where = name ?? `conversation ${conversation}`;
    return this.#write(type === 'joined' ? `You are in ${where} now.` : `You are in ${where} no more.`);
  }

  #tell(text: string): void {
    printError(this.#context, `klatch: ${text}`);
  }

  /** A reader that is slow slows the reading of the connection, and nothing piles up here. */
  async #write(line: string): Promise<void> {
    if (!this.#context.output.write(`${line}\n`)) await once(this.#context.output, 'drain');
  }
}

export function disconnectedLine({ reason, retryInMs }: { reason: string; retryInMs: number }): string {
  return `${sanitize(reason)}; connecting again in ${formatDuration(Math.max(1_000, retryInMs))}`;
}

/** For an account that is in more conversations than a connection follows. */
export const INCOMPLETE_LINE =
  'this account is in more conversations than can be followed: those with the highest numbers are left out';

export function resetLine({ conversation, rev }: { conversation: number; rev: number }): string {
  return `the server has less of conversation ${conversation} than before, as after a restored backup: going on behind change ${rev}`;
}
