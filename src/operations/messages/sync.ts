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
} from '../core/serializers.ts';

const MAX_CHANGES = 500;
const MAX_PAGE_BYTES = 512 * 1024;

export const syncChanges = defineTargetedOperation({
  name: 'conversations.sync',
  summary: 'List the changes of a conversation after a rev, in order: messages, edits, deletions and notices.',
  input: z.strictObject({
    conversation: conversationNumber,
    after_rev: z.int().nonnegative().describe('What the client has; 0: nothing.'),
    limit: z.int().min(1).max(MAX_CHANGES).default(100),
  }),
  output: z.object({
    changes: z.array(changeSchema),
    rev: z.int().describe('Up to here the client has everything now; give it as `after_rev` next time.'),
    more: z.boolean(),
    first_seq: z
      .int()
      .optional()
      .describe('Messages before this one were removed by a retention rule: drop them. Not there where none were.'),
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
