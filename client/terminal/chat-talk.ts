import type { Command } from 'commander';
import { ResumePositionsFile } from '../node/resume-positions-file.ts';
import {
  findProfileAndAddress,
  createFollowingClient,
  withClientStartedAndStopped,
  withServerAndProfile,
  type ChatOptions,
} from './chat-client.ts';
import { CONVERSATION_HELP } from './chat-directory.ts';
import { followOptionsFrom } from './chat-follow.ts';
import { resumePositionsPath } from './chat-profile.ts';
import type { ChatContext } from './context.ts';
import { ChatCommandError } from './command-error.ts';
import { InteractiveChat } from './interactive-chat.ts';

export function addInteractiveChat(chat: Command, context: ChatContext): void {
  const command = chat
    .command('talk', { isDefault: true })
    .description(
      'take part from this terminal: shows what comes, sends the lines you type (what klatch chat does without a command)',
    )
    .argument('[conversation]', `begin in this one: ${CONVERSATION_HELP}`)
    .action(async (conversation: string | undefined, options: ChatOptions) => {
      // `talk` is the default command, so it also gets the name of a command that does not exist.
      if (conversation !== undefined && !chat.args.includes(command.name())) context.refuseCommand(chat, conversation);
      await runInteractiveChat(context, conversation ?? null, options);
    });
  context.withExamples(withServerAndProfile(command), [
    'klatch chat',
    'klatch chat talk Operations',
    'klatch chat --server tcp://127.0.0.1:9070',
  ]);
}

async function runInteractiveChat(
  context: ChatContext,
  conversation: string | null,
  options: ChatOptions,
): Promise<void> {
  if (!context.input.isTTY || !context.output.isTTY) {
    const errorSentence =
      'this takes a terminal; scripts use `klatch chat send`, `klatch chat read` and `klatch chat follow`';
    throw new ChatCommandError('usage', errorSentence);
  }
  const profileAndAddress = await findProfileAndAddress(context, options);
  const state = new ResumePositionsFile(
    resumePositionsPath(context.env, options.profile),
    profileAndAddress.profile.sign_in,
  );
  const savedRevs = state.loadRevs() ?? new Map<number, number>();
  const savedEpochs = state.loadEpochs();
  const screen = new InteractiveChat({ input: context.input, output: context.output, client: () => client });
  const client = createFollowingClient(profileAndAddress, {
    follow: followOptionsFrom('last', { savedRevs: savedRevs, savedEpochs, onlyConversations: null }),
    listener: async (event) => {
      await screen.onEvent(event);
      if (event.type === 'change' || event.type === 'left' || event.type === 'reset')
        state.scheduleSave(
          () => client.handledRevByConversation,
          () => client.epochByConversation,
        );
    },
  });
  try {
    await withClientStartedAndStopped(client, async () => {
      try {
        const account = await client.awaitFirstAttempt();
        await screen.greetAndShow(account, conversation);
        const endError = await Promise.race([client.ended, screen.userLeft.then(() => null)]);
        if (endError !== null) throw endError;
      } finally {
        // Stops the screen before the client stops, whose pending requests then fail: their errors must not be printed
        // after the person has left.
        screen.stop();
      }
    });
  } finally {
    screen.stop();
    state.flushPendingSave();
  }
}
