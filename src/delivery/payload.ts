import type { Attachment } from '../model/attachment.ts';
import { messageId, type ConversationId, type HookId } from '../model/ids.ts';
import type { DeliveryMessage } from '../storage/hooks/lanes.ts';

/** The contract's command: a slash, a name, then white space or the end. The rest is its text. */
const COMMAND = /^\/([A-Za-z0-9_-]{1,255})(?:\s+([\s\S]*))?$/;

/** `webhook-id` of one message or a range of them: the same over all its attempts and redeliveries. */
export function deliveryId(hookId: HookId, conversationId: ConversationId, first: number, last = first): string {
  const range = first === last ? String(first) : `${first}-${last}`;
  return `${hookId}_${conversationId}_${range}`;
}

/** Makes the address at which whoever hears the conversation gets a file for some days from now on. */
export type CreateFileLink = (conversationId: ConversationId, file: Attachment) => string;

/** The JSON body of one message's delivery. It says nothing of the hook, so one text serves all hooks of the group. */
export function deliveryBody(
  conversationId: ConversationId,
  message: DeliveryMessage,
  createFileLink: CreateFileLink,
): string {
  const attachments = message.deliveredAsDeleted ? [] : (message.attachments ?? []);
  const sentAt = message.sentAt.toISOString();
  const command = message.deliveredAsDeleted ? null : COMMAND.exec(message.text.trim());
  return JSON.stringify({
    type: 'message.created',
    timestamp: sentAt,
    data: {
      group: { id: conversationId, title: message.title },
      message: {
        id: messageId(conversationId, message.seq),
        seq: message.seq,
        text: message.text,
        sent_at: sentAt,
        ...(message.deliveredAsDeleted ? { deleted: true } : {}),
        attachments: attachments.map((file) => ({
          id: file.id,
          name: file.name,
          type: file.type,
          size: file.size,
          url: createFileLink(conversationId, file),
        })),
      },
      sender: {
        id: message.senderId,
        name: message.senderName,
        nick: message.senderNick,
        kind: message.senderKind,
      },
      ...(command === null ? {} : { command: { name: command[1], text: command[2] ?? '' } }),
    },
  });
}
