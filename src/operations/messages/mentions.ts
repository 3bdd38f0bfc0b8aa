import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { Seq } from '../../model/ids.ts';
import { readMentions } from '../../storage/messages/mentions.ts';
import { requireAccount } from '../core/caller.ts';
import { readThenRecheckRole } from '../core/conversation-access.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { conversationNumber, seqSchema } from '../core/schemas.ts';
import { messageSchema, serializeMessage } from '../core/serializers.ts';
import { pageLimit, nextSeqSchema } from '../core/page.ts';

const MAX_MENTIONS_PAGE_SIZE = 200;
const MAX_PAGE_BYTES = 512 * 1024;

export const listMentions = defineTargetedOperation({
  name: 'mentions.list',
  summary:
    'List the messages of a conversation that mention you, in the order of their seqs: the newest, or those before or after one.',
  input: z.strictObject({
    conversation: conversationNumber,
    before: seqSchema.optional().describe('Those before this seq, the nearest ones.'),
    after: z
      .int()
      .nonnegative()
      .optional()
      .describe('Those after this seq, the nearest ones; with `read_seq` and a `limit` of 1 the first unread one.'),
    limit: pageLimit(MAX_MENTIONS_PAGE_SIZE, 50),
  }),
  output: z.object({
    messages: z.array(messageSchema).describe('The messages, by seq.'),
    next: nextSeqSchema,
  }),
  on: 'conversation',
  who: 'member',
  scope: 'messages:read',
  errors: [],
  run: async (services, { before, after, limit }, caller, access) => {
    const { conversationId } = access;
    const { accountId } = requireAccount(caller);
    if (before !== undefined && after !== undefined) {
      throw new KlatchError('invalid_input', { sentence: 'before, after: give one of them' });
    }
    const direction = after === undefined ? 'before' : 'after';
    const seq = (after ?? before ?? Number.MAX_SAFE_INTEGER) as Seq;
    const request = { conversationId, accountId, direction, seq, limit, maxBytes: MAX_PAGE_BYTES } as const;
    const { messages, more } = await readThenRecheckRole(
      services,
      { access, caller, on: 'conversation', requiredRole: 'member' },
      (sql) => readMentions(sql, request),
    );
    const edge = direction === 'before' ? messages[0] : messages.at(-1);
    return {
      messages: messages.map((message) => serializeMessage(conversationId, message, accountId)),
      next: more && edge !== undefined ? edge.seq : null,
    };
  },
});
