import { once } from 'node:events';
import { Option, type Command } from 'commander';
import type { ChatEvent } from '../core/events.ts';
import type { FollowOptions } from '../core/follower.ts';
import type { LiveClient } from '../core/live-client.ts';
import { ResumePositionsFile } from '../node/resume-positions-file.ts';
import {
  withSignedInClient,
  findProfileAndAddress,
  createFollowingClient,
  withClientStartedAndStopped,
  withServerAndProfile,
  type ChatOptions,
} from './chat-client.ts';
import { CONVERSATION_HELP, ConversationNameCache, findConversation } from './chat-directory.ts';
import { withJsonLines } from './chat-groups.ts';
import { resumePositionsPath } from './chat-profile.ts';
import { changeLines, jsonLine } from './chat-text.ts';
import { moodPaint, type PaintMood } from './mood-colours.ts';
import { sanitize } from '../core/safe-text.ts';
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
    .argument('[conversations...]', `only these, each named as elsewhere: ${CONVERSATION_HELP}`)
    .addOption(
      new Option(
        '--since <place>',
        'where to begin: where the last one stopped (the first time: now), now, or with the first message',
      )
        .choices(['last', 'now', 'start'])
        .default('last'),
    )
    .action((conversations: readonly string[], options: FollowFlags) => follow(context, conversations, options));
  context.withExamples(withJsonLines(withServerAndProfile(command), 'change'), [
    'klatch chat follow',
    'klatch chat follow Operations @bob --since now',
    'klatch chat follow 7 --json | jq --unbuffered -r .message.text',
  ]);
}

async function follow(context: ChatContext, names: readonly string[], options: FollowFlags): Promise<void> {
  const profileAndAddress = await findProfileAndAddress(context, options);
  const onlyConversations = names.length === 0 ? null : await findConversationIds(context, names, options);
  const state = new ResumePositionsFile(
    resumePositionsPath(context.env, options.profile),
    profileAndAddress.profile.sign_in,
  );
  const savedRevs = state.loadRevs() ?? new Map<number, number>();
  const savedEpochs = state.loadEpochs();
  const printer = new ChatEventPrinter(context, { isJson: options.json === true, client: () => client });
  const client: LiveClient = createFollowingClient(profileAndAddress, {
    follow: followOptionsFrom(options.since, {
      savedRevs: savedRevs,
      savedEpochs,
      onlyConversations: onlyConversations,
    }),
    listener: async (event) => {
      await printer.show(event);
      // Keeps the saved positions of conversations that this command does not follow.
      if (event.type === 'left') savedRevs.delete(event.conversation);
      if (event.type === 'change' || event.type === 'left' || event.type === 'reset')
        state.scheduleSave(
          () => new Map([...savedRevs, ...client.handledRevByConversation]),
          () => new Map([...savedEpochs, ...client.epochByConversation]),
        );
    },
  });
  const signals = context.createStopSignals();
  signals.start();
  try {
    await withClientStartedAndStopped(client, async () => {
      const endError = await Promise.race([client.ended, signals.firstSignal.then(() => null)]);
      if (endError !== null) throw endError;
    });
  } finally {
    signals.stop();
    state.flushPendingSave();
  }
}

/** The positions at which the stream of changes begins. */
export function followOptionsFrom(
  since: Since,
  {
    savedRevs,
    savedEpochs,
    onlyConversations,
  }: {
    savedRevs: ReadonlyMap<number, number>;
    savedEpochs: ReadonlyMap<number, number>;
    onlyConversations: ReadonlySet<number> | null;
  },
): FollowOptions {
  const resumeRevs = new Map([...savedRevs].filter(([id]) => since === 'last' && (onlyConversations?.has(id) ?? true)));
  return {
    resumeRevByConversation: resumeRevs,
    resumeEpochByConversation: savedEpochs,
    startWithoutResumeRev: since === 'start' ? 'start' : 'now',
    onlyConversations,
  };
}

async function findConversationIds(
  context: ChatContext,
  names: readonly string[],
  options: ChatOptions,
): Promise<Set<number>> {
  const foundConversations = await withSignedInClient(context, options, (client) =>
    Promise.all(names.map((name) => findConversation(client, name))),
  );
  return new Set(foundConversations.map(({ id }) => id));
}

/** Prints events: changes on standard output, the state of the connection on standard error. */
class ChatEventPrinter {
  readonly #context: ChatContext;
  readonly #isJson: boolean;
  readonly #names: ConversationNameCache;
  readonly #paint: PaintMood;
  #isOutagePrinted = false;

  constructor(context: ChatContext, { isJson, client }: { isJson: boolean; client: () => LiveClient }) {
    this.#context = context;
    this.#isJson = isJson;
    this.#names = new ConversationNameCache(client);
    this.#paint = moodPaint(context.output);
  }

  async show(event: ChatEvent): Promise<void> {
    if (event.type === 'disconnected') this.#onDisconnected(event);
    else if (event.type === 'following') this.#onFollowing(event);
    else if (event.type === 'reset') this.#printStatus(conversationRewoundLine(event));
    else if (event.type === 'joined' || event.type === 'left') await this.#onMembershipChange(event);
    else if (event.type === 'change') await this.#onChange(event);
  }

  /** Prints one line per outage, for any number of attempts to connect. */
  #onDisconnected(event: Extract<ChatEvent, { type: 'disconnected' }>): void {
    if (!this.#isOutagePrinted) this.#printStatus(disconnectedLine(event));
    this.#isOutagePrinted = true;
  }

  #onFollowing({ conversations, isSubscribedToAll: complete }: Extract<ChatEvent, { type: 'following' }>): void {
    this.#isOutagePrinted = false;
    this.#printStatus(`following ${conversations} conversation${conversations === 1 ? '' : 's'}`);
    if (!complete) this.#printStatus(NOT_ALL_FOLLOWED_LINE);
  }

  async #onChange({ conversation, change }: Extract<ChatEvent, { type: 'change' }>): Promise<void> {
    if (this.#isJson) return this.#writeLine(jsonLine({ conversation, ...change }));
    if (change.notice?.kind === 'renamed') this.#names.forgetName(conversation);
    const name = await this.#names.findName(conversation);
    const lineContext = { name, now: new Date(), paint: this.#paint };
    for (const line of changeLines(change, lineContext)) await this.#writeLine(line);
  }

  async #onMembershipChange({ type, conversation }: Extract<ChatEvent, { type: 'joined' | 'left' }>): Promise<void> {
    if (this.#isJson) return this.#writeLine(jsonLine({ conversation, event: type }));
    const name = type === 'joined' ? await this.#names.findName(conversation) : this.#names.cachedName(conversation);
    const where = name ?? `conversation ${conversation}`;
    return this.#writeLine(type === 'joined' ? `You are in ${where} now.` : `You are in ${where} no more.`);
  }

  #printStatus(text: string): void {
    printError(this.#context, `klatch: ${text}`);
  }

  /**
   * Waits while the reader of the output is slow. The client then reads the connection more slowly, and no lines
   * accumulate here.
   */
  async #writeLine(line: string): Promise<void> {
    if (!this.#context.output.write(`${line}\n`)) await once(this.#context.output, 'drain');
  }
}

export function disconnectedLine({ reason, retryInMs }: { reason: string; retryInMs: number }): string {
  return `${sanitize(reason)}; connecting again in ${formatDuration(Math.max(1_000, retryInMs))}`;
}

/** Printed if the account is in more conversations than a connection follows. */
export const NOT_ALL_FOLLOWED_LINE =
  'this account is in more conversations than can be followed: those with the highest numbers are left out';

export function conversationRewoundLine({ conversation, rev }: { conversation: number; rev: number }): string {
  return `the server lost changes of conversation ${conversation}, as after a restored backup: going on behind change ${rev}`;
}
