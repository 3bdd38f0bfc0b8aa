import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { Seq } from '../../model/ids.ts';
import type { Sql } from '../../storage/db/connection.ts';
import { readHistory, type HistoryPage, type HistoryRequest } from '../../storage/messages/messages.ts';
import { readNoticesBetween } from '../../storage/messages/notice-history.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { notAMember, readThenRecheckRole } from '../core/conversation-access.ts';
import { conversationNumber, seqSchema } from '../core/schemas.ts';
import {
  epochBoundarySchema,
  messageSchema,
  noticeSchema,
  serializeEpochBoundary,
  serializeFirstSeq,
  serializeMessage,
  serializeNotice,
  type SerializedNotice,
} from '../core/serializers.ts';
import { pageLimit, nextSeqSchema } from '../core/page.ts';

const MAX_HISTORY_PAGE_SIZE = 200;
/** A page ends once its texts have this many bytes: 200 of the longest messages would have 32 MB. */
const MAX_PAGE_BYTES = 512 * 1024;
/** At most this many notices on a page, since any number of them can be between two messages. */
const MAX_PAGE_NOTICES = 200;

export const messageHistory = defineTargetedOperation({
  name: 'messages.history',
  summary: 'List messages of a conversation in the order of their seqs: the newest, or those before or after one.',
  input: z.strictObject({
    conversation: conversationNumber,
    before: seqSchema.optional().describe('Those before this seq, the nearest ones.'),
    after: z.int().nonnegative().optional().describe('Those after this seq; 0: from the first.'),
    limit: pageLimit(MAX_HISTORY_PAGE_SIZE, 50),
    notices: z.boolean().default(false).describe('With the notices behind each message of the page.'),
  }),
  output: z.object({
    messages: z.array(messageSchema).describe('The messages, by seq.'),
    next: nextSeqSchema,
    notices: z
      .array(noticeSchema.extend({ rev: z.int().describe('The number of the change in its conversation.') }))
      .optional()
      .describe(
        'If asked for: the notices whose `after_seq` is a message of the page, by rev; with the first message of the history, or without any message, also those before the first one. At most 200, the newest of the page.',
      ),
    notices_complete: z.boolean().optional().describe('Of `notices` none were left out.'),
    first_seq: z
      .int()
      .optional()
      .describe('The message that the history begins with, where a retention rule removed what was before.'),
    ...epochBoundarySchema,
  }),
  on: 'conversation',
  who: 'member',
  scope: 'messages:read',
  errors: [],
  run: async (services, { before, after, limit, notices: withNotices }, caller, access) => {
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
      (sql) => readPage(sql, request, withNotices),
    );
    if (page === null) throw notAMember(conversationId);
    const { messages, more, firstSeq, notices } = page;
    const edge = direction === 'before' ? messages[0] : messages.at(-1);
    return {
      messages: messages.map((message) => serializeMessage(conversationId, message, access.accountId)),
      next: more && edge !== undefined ? edge.seq : null,
      ...notices,
      ...serializeFirstSeq(firstSeq),
      ...serializeEpochBoundary(page),
    };
  },
});

interface PageNotices {
  readonly notices?: (SerializedNotice & { rev: number })[];
  readonly notices_complete?: boolean;
}

/**
 * A page of history. A second statement reads the notices, but only those after messages of the page. So the page lacks
 * both a message that is posted between the statements and the notices after that message.
 */
async function readPage(
  sql: Sql,
  request: HistoryRequest,
  withNotices: boolean,
): Promise<(HistoryPage & { readonly notices: PageNotices }) | null> {
  const page = await readHistory(sql, request);
  if (page === null) return null;
  const range = withNotices ? noticeRange(request, page) : null;
  if (range === null) return { ...page, notices: withNotices ? { notices: [], notices_complete: true } : {} };
  const { conversationId } = request;
  const { notices, complete } = await readNoticesBetween(sql, { conversationId, ...range, limit: MAX_PAGE_NOTICES });
  const serialized = notices.map(({ rev, notice }) => ({ rev, ...serializeNotice(notice) }));
  return { ...page, notices: { notices: serialized, notices_complete: complete } };
}

/** The messages after which the notices of a page came, as a range of seqs; null: the page has no notices. */
function noticeRange(
  { direction, seq }: HistoryRequest,
  { messages, firstSeq }: HistoryPage,
): { fromSeq: Seq; toSeq: Seq } | null {
  const beginning = (firstSeq - 1) as Seq;
  const [first] = messages;
  if (first !== undefined) {
    return { fromSeq: first.seq === firstSeq ? beginning : first.seq, toSeq: messages.at(-1)!.seq };
  }
  // If a page that would include the first message is empty, the conversation has no messages, but may have notices.
  const isConversationEmpty = direction === 'before' ? seq > firstSeq : seq < firstSeq;
  return isConversationEmpty ? { fromSeq: beginning, toSeq: beginning } : null;
}
