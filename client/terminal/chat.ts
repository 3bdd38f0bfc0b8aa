import type { Command } from 'commander';
import { addCreateAppPassword } from './chat-app-password.ts';
import { addDownload } from './chat-files.ts';
import { addFollow } from './chat-follow.ts';
import { addCreateGroup, addCreateInvite, addJoinGroup, addListConversations, addOpenPrivate } from './chat-groups.ts';
import { addReadMessages, addSendMessage } from './chat-messages.ts';
import { addSignIn, addSignOut } from './chat-sign-in.ts';
import { addInteractiveChat } from './chat-talk.ts';
import type { ChatContext } from './context.ts';

export function addChatCommands(program: Command, context: ChatContext): void {
  const chat = program.command('chat').description('take part as a person or bot, from a terminal or a script');
  context.withExamples(chat, [
    'klatch chat sign-in --server https://chat.example.org --link',
    'klatch chat',
    'klatch chat send Operations "The backup is through"',
  ]);
  addInteractiveChat(chat, context);
  addSignIn(chat, context);
  addSignOut(chat, context);
  addListConversations(chat, context);
  addReadMessages(chat, context);
  addSendMessage(chat, context);
  addDownload(chat, context);
  addFollow(chat, context);
  addOpenPrivate(chat, context);
  addJoinGroup(chat, context);
  addCreateGroup(chat, context);
  addCreateInvite(chat, context);
  addCreateAppPassword(chat, context);
}
