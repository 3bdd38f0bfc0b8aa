import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { Seq } from '../../model/ids.ts';
import { isBlockedByPeer } from '../../storage/messages/messages.ts';
import { advanceReadPosition } from '../../storage/messages/read-positions.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { notAMember, requireNotArchived } from '../core/conversation-access.ts';
import { requireAccount } from '../core/caller.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { conversationNumber, seqSchema } from '../core/schemas.ts';

export const markRead = defineTargetedOperation({
  name: 'messages.mark-read',
  summary: 'Mark everything up to a message as read. The position only moves forward.',
  input: z.strictObject({ conversation: conversationNumber, seq: seqSchema }),
  output: z.object({
    read_seq: z.int().describe('The position now: at most the newest message, and never before an earlier one.'),
  }),
  on: 'conversation',
  who: 'member',
  scope: 'messages:write',
  errors: [],
  run: async ({ database, bus }, { seq }, caller, { conversationId }) => {
    const { accountId } = requireAccount(caller);
    const key = { conversationId, accountId };
    // A lost answer of the database is reported as if nothing had been written, since a repeat does no harm.
    const position = await translateLostRead(database.general.run((sql) => advanceReadPosition(sql, key, seq as Seq)));
    if (position === null) throw notAMember(conversationId);
    if (position.moved) bus.publish('ephemeral', { kind: 'read', ...key, seq: position.seq });
    return { read_seq: position.seq };
  },
});

export const sendTyping = defineTargetedOperation({
  name: 'messages.typing',
  summary: 'Notify the followers of the conversation that the caller is writing. The server does not store it.',
  input: z.strictObject({ conversation: conversationNumber }),
  output: z.object({
    told: z.boolean().describe('False: the server reported it to them a moment ago.'),
  }),
  on: 'conversation',
  who: 'member',
  scope: 'messages:write',
  errors: ['group_archived', 'blocked'],
  run: async ({ database, bus, typingLimiterByMember }, _input, caller, access) => {
    const { accountId } = requireAccount(caller);
    const { conversationId } = access;
    requireNotArchived(access);
    if (typingLimiterByMember.reserve(`${conversationId}:${accountId}`, 0) === null) return { told: false };
    const key = { conversationId, accountId };
    if (
      access.kind === 'private' &&
      (await translateLostRead(database.general.run((sql) => isBlockedByPeer(sql, key))))
    ) {
      throw new KlatchError('blocked');
    }
    bus.publish('ephemeral', { kind: 'typing', ...key });
    return { told: true };
  },
});
