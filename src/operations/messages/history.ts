import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { Seq } from '../../model/ids.ts';
import { readHistory } from '../../storage/messages/messages.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { notAMember, readThenRecheckRole } from '../core/conversation-access.ts';
import { conversationNumber, seqSchema } from '../core/schemas.ts';
import {
  epochBoundarySchema,
  messageSchema,
  serializeEpochBoundary,
  serializeFirstSeq,
  serializeMessage,
} from '../core/serializers.ts';

const MAX_HISTORY_PAGE_SIZE = 200;
/** A page ends where its texts have so many bytes, so that 200 of the longest messages are no 32 MB. */
const MAX_PAGE_BYTES = 512 * 1024;

export const messageHistory = defineTargetedOperation({
  name: 'messages.history',
  summary: 'Messages of a conversation in the order of their seqs: the newest, or those before or after one.',
  input: z.strictObject({
    conversation: conversationNumber,
    /** Those before this seq, the nearest ones. */
    before: seqSchema.optional(),
    /** Those after this seq; 0: from the first. */
    after: z.int().nonnegative().optional(),
    limit: z.int().min(1).max(MAX_HISTORY_PAGE_SIZE).default(50),
  }),
  output: z.object({
    messages: z.array(messageSchema),
    /** What to give as `after`, if it was given, else as `before`, for the messages beyond these; null: there are none. */
    next: z.int().nullable(),
    /** The message that the history begins with, where a retention rule removed what was before. */
    first_seq: z.int().optional(),
    ...epochBoundarySchema,
  }),
  on: 'conversation',
  who: 'member',
  scope: 'messages:read',
  errors: [],
  run: async (services, { before, after, limit }, caller, access) => {
    const { conversationId } = access;
    if (before !== undefined && after !== undefined) {
      throw new KlatchError('invalid_input', { sentence: 'before, after: give one of them' });
    }
    const direction = after === undefined ? 'before' : 'after';
    const seq = (after ?? before ?? Number.MAX_SAFE_INTEGER) as Seq;
    const request = { conversationId, direction, seq, limit, maxBytes: MAX_PAGE_BYTES } as const;
    const page = await readThenRecheckRole(
      services,
      { access, caller, on: 'conversation', requiredRole: 'member' },
      (sql) => readHistory(sql, request),
    );
    if (page === null) throw notAMember(conversationId);
    const { messages, more, firstSeq } = page;
    const edge = direction === 'before' ? messages[0] : messages.at(-1);
    return {
      messages: messages.map((message) => serializeMessage(conversationId, message, access.accountId)),
      next: more && edge !== undefined ? edge.seq : null,
      ...serializeFirstSeq(firstSeq),
      ...serializeEpochBoundary(page),
    };
  },
});
