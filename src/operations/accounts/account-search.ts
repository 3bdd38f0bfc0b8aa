import * as z from 'zod';
import type { ConversationId } from '../../model/ids.ts';
import { searchAccounts } from '../../storage/accounts/account-search.ts';
import { findGroupRole } from '../../storage/groups/members.ts';
import { requireAccount } from '../core/caller.ts';
import { notAMember } from '../core/conversation-access.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { defineOperation } from '../core/operation.ts';
import { limitSchema, pageOf, afterNickSchema, nextNickSchema } from '../core/page.ts';
import { accountField, accountKindField, conversationNumber, nameField, nickField } from '../core/schemas.ts';

export const searchForAccounts = defineOperation({
  name: 'accounts.search',
  summary: 'Find people and bots by the beginning of their nick or name, as for completion, by nick, a page at a time.',
  input: z.strictObject({
    text: z.string().trim().min(1).max(64).describe('How the nick or a name begins.'),
    conversation: conversationNumber.optional().describe('Only its members, who are found by any word of their name.'),
    after: afterNickSchema,
    limit: limitSchema,
  }),
  output: z.object({
    accounts: z
      .array(z.object({ id: accountField, kind: accountKindField, nick: nickField, name: nameField }))
      .describe('Those that were found, by nick.'),
    next: nextNickSchema,
  }),
  who: 'account',
  scope: 'groups:read',
  errors: ['not_found'],
  run: async ({ database }, { text, conversation, after, limit }, caller) => {
    const { accountId } = requireAccount(caller);
    const conversationId = (conversation ?? null) as ConversationId | null;
    const request = { text, after: after.toLowerCase(), limit: limit + 1, conversationId, memberId: accountId };
    const rows = await translateLostRead(
      database.general.run(async (sql) => {
        const found = await searchAccounts(sql, request);
        // The membership is read after the search: a caller who was removed meanwhile gets `not_found`, not an empty
        // page.
        const role = conversationId === null ? null : await findGroupRole(sql, { conversationId, accountId });
        if (conversationId !== null && role === null) throw notAMember(conversationId);
        return found;
      }),
    );
    const { page, next } = pageOf(rows, limit, (account) => account.nick);
    return { accounts: [...page], next };
  },
});
