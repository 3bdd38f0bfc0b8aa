import * as z from 'zod';
import type { Rev } from '../../model/ids.ts';
import { readChanges } from '../../storage/messages/changes.ts';
import { notAMember, readThenRecheckRole } from '../core/conversation-access.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { conversationNumber } from '../core/schemas.ts';
import {
  changeSchema,
  epochBoundarySchema,
  serializeChange,
  serializeEpochBoundary,
  serializeFirstSeq,
  firstKeptSeqSchema,
} from '../core/serializers.ts';

const MAX_CHANGES_PER_PAGE = 500;
const MAX_PAGE_BYTES = 512 * 1024;

export const syncChanges = defineTargetedOperation({
  name: 'conversations.sync',
  summary: 'List the changes of a conversation after a rev, in order: messages, edits, deletions and notices.',
  input: z.strictObject({
    conversation: conversationNumber,
    after_rev: z.int().nonnegative().describe('The newest rev that the client has; 0: none.'),
    limit: z.int().min(1).max(MAX_CHANGES_PER_PAGE).default(100).describe('How many changes there are at most.'),
  }),
  output: z.object({
    changes: z.array(changeSchema).describe('The changes, by rev.'),
    rev: z.int().describe('Up to here the client has everything now; give it as `after_rev` next time.'),
    more: z.boolean().describe('There are more changes after `rev`.'),
    first_seq: firstKeptSeqSchema,
    ...epochBoundarySchema,
  }),
  on: 'conversation',
  who: 'member',
  scope: 'messages:read',
  errors: [],
  run: async (services, { after_rev: afterRev, limit }, caller, access) => {
    const { conversationId } = access;
    const request = { conversationId, afterRev: afterRev as Rev, limit, maxBytes: MAX_PAGE_BYTES };
    const page = await readThenRecheckRole(
      services,
      { access, caller, on: 'conversation', requiredRole: 'member' },
      (sql) => readChanges(sql, request),
    );
    if (page === null) throw notAMember(conversationId);
    const { changes, rev, more, firstSeq } = page;
    return {
      changes: changes.map((change) => serializeChange(conversationId, change, access.accountId)),
      rev,
      more,
      ...serializeFirstSeq(firstSeq),
      ...serializeEpochBoundary(page),
    };
  },
});
