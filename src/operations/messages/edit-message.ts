import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { AccountId, Seq } from '../../model/ids.ts';
import type { StoredMessage } from '../../storage/messages/changes.ts';
import {
  eraseMessage,
  isBlockedByPeer,
  lockHeadAndReadMessage,
  updateMessageText,
  type LockedMessageWithRole,
} from '../../storage/messages/messages.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import { CommitUnknownError } from '../../storage/db/database-error.ts';
import { insertNotice } from '../../storage/messages/notices.ts';
import { translateCommitUnknown } from '../core/database-errors.ts';
import { MESSAGE_OPERATION_LIMITS } from '../core/input-limits.ts';
import { checkMessageText } from '../core/message-text.ts';
import { notAMember, requireNotArchived } from '../core/conversation-access.ts';
import { requireAccount } from '../core/caller.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import type { ConversationAccess } from '../core/conversation-access.ts';
import { conversationNumber, seqSchema } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';
import { messageSchema, serializeMessage, type SerializedMessage } from '../core/serializers.ts';

const OUTCOME_UNKNOWN_SENTENCE =
  'The answer of the database was lost: the message may have been changed. Repeating this does no harm';

export const editMessage = defineTargetedOperation({
  name: 'messages.edit',
  summary:
    "Change the text of an own message; the group's owner and admins change any, with a notice. The message gets a new rev, and keeps its seq and its files.",
  input: z.strictObject({
    conversation: conversationNumber,
    seq: seqSchema,
    text: z.string().describe('The new text.'),
  }),
  output: messageSchema,
  on: 'conversation',
  who: 'member',
  scope: 'messages:write',
  limits: MESSAGE_OPERATION_LIMITS,
  errors: ['group_archived', 'blocked', 'too_large', 'outcome_unknown'],
  run: (services, { seq, text: given }, caller, access) => {
    const { accountId } = requireAccount(caller);
    const { textCodePoints } = services.config.limits;
    const text = checkMessageText(given, textCodePoints, { hasAttachments: true });
    return reviseMessage(services, { access, seq, accountId }, async (tx, message) => {
      requireNotArchived(message);
      if (message.deletedAt !== null) {
        throw new KlatchError('not_found', { sentence: `Message ${seq} was deleted, and cannot be edited any more` });
      }
      const isOwn = message.sender.id === accountId;
      if (!isOwn) requireAdminOrOwner(access, message, 'edit');
      const key = { conversationId: access.conversationId, accountId };
      if (access.kind === 'private' && (await isBlockedByPeer(tx, key))) throw new KlatchError('blocked');
      // A message with files may have an empty text.
      if (text === '') checkMessageText(given, textCodePoints, { hasAttachments: message.attachments.length > 0 });
      if (message.text === text) return null;
      const { conversationId } = key;
      const change = { conversationId, seq: message.seq, actorId: accountId, hops: 0 };
      const { rev, at } = await updateMessageText(tx, change, text);
      // Without this notice, the new text would seem to be written by the sender.
      const details = { seq: message.seq };
      if (!isOwn) await insertNotice(tx, { conversationId, kind: 'message_edited', actorId: accountId, details });
      return { ...message, text, cards: [], rev, editedAt: at };
    });
  },
});

export const deleteMessage = defineTargetedOperation({
  name: 'messages.delete',
  summary:
    "Delete an own message; the group's owner and admins delete any. The server erases its text and removes its files; its seq stays.",
  input: z.strictObject({ conversation: conversationNumber, seq: seqSchema }),
  output: messageSchema,
  on: 'conversation',
  who: 'member',
  scope: 'messages:write',
  errors: ['group_archived', 'outcome_unknown'],
  run: (services, { seq }, caller, access) => {
    const { accountId } = requireAccount(caller);
    return reviseMessage(services, { access, seq, accountId }, async (tx, message) => {
      if (!isAdminOrOwner(access, message)) requireNotArchived(message);
      if (message.sender.id !== accountId) requireAdminOrOwner(access, message, 'delete');
      if (message.deletedAt !== null) return null;
      const change = { conversationId: access.conversationId, seq: message.seq, actorId: accountId, hops: 0 };
      const { rev, at } = await eraseMessage(tx, change);
      // The files and cards may stay in this object: `serializeMessage` does not show them for a deleted message.
      return { ...message, text: '', rev, deletedAt: at };
    });
  },
});

/** Whether the caller is an admin or owner of the group, by the role that was read under the lock. */
function isAdminOrOwner({ kind }: ConversationAccess, { role }: LockedMessageWithRole): boolean {
  return kind === 'group' && role !== 'member';
}

/** Throws `forbidden` unless the caller is an admin or owner, who may change the messages of others. */
function requireAdminOrOwner(
  access: ConversationAccess,
  message: LockedMessageWithRole,
  verb: 'edit' | 'delete',
): void {
  if (isAdminOrOwner(access, message)) return;
  const sentence =
    access.kind === 'group'
      ? `Only who wrote a message, owners and admins may ${verb} it: ask one of them`
      : `Only who wrote a message may ${verb} it: ask that person`;
  throw new KlatchError('forbidden', { sentence });
}

/** Changes a message and returns it. Null: nothing changes, and the message gets no new rev. */
type Revise = (tx: Transaction, message: LockedMessageWithRole) => Promise<StoredMessage | null>;

async function reviseMessage(
  { database, bus }: Services,
  { access, seq, accountId }: { access: ConversationAccess; seq: number; accountId: AccountId },
  revise: Revise,
): Promise<SerializedMessage> {
  const { conversationId } = access;
  let wantsEvents = false;
  // The change is announced even if nothing changes: the answer to an earlier request may have been lost, and its
  // change not announced.
  const announceChange = (): void => {
    bus.publish('nonMessageChangesCommitted', [conversationId]);
    if (wantsEvents) bus.publish('hookEventsCommitted', [conversationId]);
  };
  try {
    const message = await database.general.transaction(async (tx) => {
      const lockedMessage = await lockHeadAndReadMessage(tx, { conversationId, seq: seq as Seq, accountId });
      wantsEvents = lockedMessage?.wantsEvents ?? false;
      // The membership is checked under the lock, since the caller may have been removed since the request began.
      if (lockedMessage !== null && lockedMessage.role === null) throw notAMember(conversationId);
      if (lockedMessage === null) {
        const sentence = `There is no message ${seq} here: messages.history shows those that there are`;
        throw new KlatchError('not_found', { sentence });
      }
      return (await revise(tx, lockedMessage)) ?? lockedMessage;
    });
    announceChange();
    return serializeMessage(conversationId, message, accountId);
  } catch (error) {
    if (error instanceof CommitUnknownError) announceChange();
    throw translateCommitUnknown(error, OUTCOME_UNKNOWN_SENTENCE);
  }
}
