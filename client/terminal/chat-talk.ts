import type { Command } from 'commander';
import { StateFile } from '../node/state-file.ts';
import { findUse, followerOf, running, withProfile, type ChatOptions } from './chat-client.ts';
import { CONVERSATION } from './chat-directory.ts';
import { beginOf } from './chat-follow.ts';
import { statePath } from './chat-profile.ts';
import type { ChatContext } from './context.ts';
import { ChatCommandError } from './command-error.ts';
import { InteractiveChat } from './interactive-chat.ts';

export function addTalk(chat: Command, context: ChatContext): void {
  const command = chat
    .command('talk', { isDefault: true })
    .description(
      'take part from this terminal: shows what comes, sends the lines you type (what klatch chat does without a command)',
    )
    .argument('[conversation]', `begin in this one: ${CONVERSATION}`)
    .action(async (conversation: string | undefined, options: ChatOptions) => {
      // Words that no command has end up here as well.
      if (conversation !== undefined && !chat.args.includes(command.name())) context.refuseCommand(chat, conversation);
      await talk(context, conversation ?? null, options);
    });
  context.withExamples(withProfile(command), [
    'klatch chat',
    'klatch chat talk Operations',
    'klatch chat --server tcp://127.0.0.1:9070',
  ]);
}

async function talk(context: ChatContext, conversation: string | null, options: ChatOptions): Promise<void> {
  if (!context.input.isTTY || !context.output.isTTY) {
    const sentence =
      'this takes a terminal; scripts use `klatch chat send`, `klatch chat read` and `klatch chat follow`';
    throw new ChatCommandError('usage', sentence);
  }
  const use = await findUse(context, options);
  const state = new StateFile(statePath(context.env, options.profile), use.profile.sign_in);
  const saved = state.load() ?? new Map<number, number>();
  const screen = new InteractiveChat({ input: context.input, output: context.output, client: () => client });
  const client = followerOf(use, {
    follow: beginOf('last', { saved, only: null }),
    listener: async (event) => {
      await screen.hear(event);
      if (event.type === 'change' || event.type === 'left') state.saveSoon(() => client.revs);
    },
  });
  try {
    await running(client, async () => {
      try {
        const account = await client.firstAttempt();
        await screen.begin(account, conversation);
        const end = await Promise.race([client.over, screen.left.then(() => null)]);
        if (end !== null) throw end;
      } finally {
        // Before the client stops: requests that fail then must not show on the screen of a person who left.
        screen.stop();
      }
    });
  } finally {
    screen.stop();
    state.save();
  }
}
