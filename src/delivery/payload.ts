import type { Attachment } from '../model/attachment.ts';
import { epochSuffix, messageId, type ConversationId, type HookId, type LogEpoch } from '../model/ids.ts';
import { cardWithOrderedKeys } from '../model/message-card.ts';
import type { ChangedMessage, DeliveryEvent } from '../storage/hooks/hook-events.ts';
import type { DeliveryMessage } from '../storage/hooks/lanes.ts';

/**
 * A command at the beginning of a message (docs/reverse-webhooks.md): a slash, a name, then white space or the end. The
 * rest is the command's text.
 */
const COMMAND = /^\/([A-Za-z0-9_-]{1,255})(?:\s+([\s\S]*))?$/;

/** The fields of a message from which a request in Klatch's own format is made. */
type DeliveredMessageFields = Omit<DeliveryMessage, 'hops' | 'iconUrl'>;

/**
 * The range of a request: messages from seq `first` to `last` or, if `rev` is not 0, events from `rev` to `lastRev`.
 */
interface DeliveryRange {
  readonly first: number;
  readonly last: number;
  /** The first event's rev; 0 for a request of messages. */
  readonly rev: number;
  readonly lastRev: number | null;
  /** The log epoch of the whole range: no request spans two epochs. */
  readonly logEpoch: LogEpoch;
}

/** The header `webhook-id` of a request. It is the same for all attempts and redeliveries of the request. */
export function deliveryId(hookId: HookId, conversationId: ConversationId, range: DeliveryRange): string {
  const [first, last] = range.rev === 0 ? [range.first, range.last] : [range.rev, range.lastRev ?? range.rev];
  const revPrefix = range.rev === 0 ? '' : 'r';
  const numbers = first === last ? String(first) : `${first}-${last}`;
  return `${hookId}_${conversationId}_${revPrefix}${numbers}${epochSuffix(range.logEpoch)}`;
}

/** Makes the URL of a file of the conversation. The URL is valid for some days. */
export type CreateFileLink = (conversationId: ConversationId, file: Attachment) => string;

/**
 * The JSON body of the delivery of one message. It does not depend on the hook, so all hooks of the group get the same
 * text.
 */
export function deliveryBody(
  conversationId: ConversationId,
  message: DeliveredMessageFields,
  createFileLink: CreateFileLink,
): string {
  const command = message.deliveredAsDeleted ? null : COMMAND.exec(message.text.trim());
  return JSON.stringify({
    type: 'message.created',
    timestamp: message.sentAt.toISOString(),
    data: {
      group: { id: conversationId, title: message.title },
      message: serializeMessage(conversationId, message, createFileLink),
      sender: serializeSender(message),
      ...(command === null ? {} : { command: { name: command[1], text: command[2] ?? '' } }),
    },
  });
}

/**
 * The JSON body of the delivery of an event, with the message's current state. There is no field `command`, since an
 * edit is not a command.
 */
export function eventBody(
  conversationId: ConversationId,
  event: DeliveryEvent & { readonly message: ChangedMessage },
  createFileLink: CreateFileLink,
): string {
  const { rev, logEpoch, kind, at, message, actorId, actorName, actorNick, actorKind } = event;
  const editedAt = message.editedAt === null ? {} : { edited_at: message.editedAt.toISOString() };
  return JSON.stringify({
    type: kind,
    timestamp: at.toISOString(),
    data: {
      rev,
      ...epochField('epoch', logEpoch),
      group: { id: conversationId, title: message.title },
      message: { ...serializeMessage(conversationId, message, createFileLink), ...editedAt },
      sender: serializeSender(message),
      actor: { id: actorId, name: actorName, nick: actorNick, kind: actorKind },
    },
  });
}

function serializeMessage(
  conversationId: ConversationId,
  message: DeliveredMessageFields,
  createFileLink: CreateFileLink,
) {
  const attachments = message.deliveredAsDeleted ? [] : (message.attachments ?? []);
  const cards = message.deliveredAsDeleted ? [] : (message.cards ?? []);
  return {
    id: messageId(conversationId, message.seq, message.logEpoch),
    seq: message.seq,
    ...epochField('epoch', message.logEpoch),
    rev: message.rev,
    ...epochField('rev_epoch', message.revLogEpoch),
    text: message.text,
    sent_at: message.sentAt.toISOString(),
    ...(message.deliveredAsDeleted ? { deleted: true } : {}),
    attachments: attachments.map((file) => ({
      id: file.id,
      name: file.name,
      type: file.type,
      size: file.size,
      url: createFileLink(conversationId, file),
    })),
    ...(cards.length === 0 ? {} : { cards: cards.map(cardWithOrderedKeys) }),
  };
}

/** The log epoch as a field; none for epoch 0. So bodies of an installation that never lost a change have no epochs. */
function epochField(name: 'epoch' | 'rev_epoch', logEpoch: LogEpoch): Record<string, number> {
  return logEpoch === 0 ? {} : { [name]: logEpoch };
}

function serializeSender({ senderId, senderName, senderNick, senderKind, label }: DeliveredMessageFields) {
  return {
    id: senderId,
    name: senderName,
    nick: senderNick,
    kind: senderKind,
    ...(label === null ? {} : { label }),
  };
}
