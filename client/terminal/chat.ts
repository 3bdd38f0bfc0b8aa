import type { Command } from 'commander';
import { addDownload } from './chat-files.ts';
import { addFollow } from './chat-follow.ts';
import { addCreate, addInvite, addJoin, addList, addOpen } from './chat-groups.ts';
import { addRead, addWrite } from './chat-messages.ts';
import { addSignIn, addSignOut } from './chat-sign-in.ts';
import { addTalk } from './chat-talk.ts';
import type { ChatContext } from './context.ts';

/** Adds `chat` with its commands to a program. */
export function addChatCommands(program: Command, context: ChatContext): void {
  const chat = program.command('chat').description('take part as a person or bot, from a terminal or a script');
  context.withExamples(chat, [
    'klatch chat sign-in --server https://chat.example.org --link',
    'klatch chat',
    'klatch chat send Operations "The backup is through"',
  ]);
  addTalk(chat, context);
  addSignIn(chat, context);
  addSignOut(chat, context);
  addList(chat, context);
  addRead(chat, context);
  addWrite(chat, context);
  addDownload(chat, context);
  addFollow(chat, context);
  addOpen(chat, context);
  addJoin(chat, context);
  addCreate(chat, context);
  addInvite(chat, context);
}
