import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { lockActiveAccount } from '../../storage/accounts/accounts.ts';
import { countBlocks, deleteBlock, insertBlock, listBlocks } from '../../storage/accounts/blocks.ts';
import { findTargetAccount } from '../../storage/groups/members.ts';
import { userNotFound, requireActiveAccount, userReference } from '../core/account-reference.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { requireAccount } from '../core/caller.ts';
import { defineOperation } from '../core/operation.ts';
import { limitSchema, pageOf, afterNumberSchema, nextNumberSchema } from '../core/page.ts';
import { accountField, nickField, accountFields } from '../core/schemas.ts';

/** At most this many accounts can be blocked by one account: more than anybody has needed. */
const MAX_BLOCKED_ACCOUNTS = 1_000;

const blockedAccountSchema = z.object({ user: nickField, id: accountField });

export const blockAccount = defineOperation({
  name: 'blocks.add',
  summary: 'Block an account: it can send the caller no private messages. A repeat is no error.',
  input: z.strictObject({ user: userReference }),
  output: blockedAccountSchema,
  who: 'person',
  scope: null,
  errors: ['quota_exceeded', 'not_found'],
  run: async ({ database }, { user }, caller) => {
    const { accountId } = requireAccount(caller);
    return database.general.transaction(async (tx) => {
      // Locks the account, so that two concurrent calls cannot exceed the bound together.
      await lockActiveAccount(tx, accountId);
      const { id, nick } = await requireActiveAccount(tx, user);
      if (id === accountId) throw new KlatchError('invalid_input', { sentence: 'user: nobody can block themselves' });
      const isNew = await insertBlock(tx, accountId, id);
      if (isNew && (await countBlocks(tx, accountId)) > MAX_BLOCKED_ACCOUNTS) {
        const sentence = `You block ${MAX_BLOCKED_ACCOUNTS} accounts, the most that are allowed: unblock one first`;
        throw new KlatchError('quota_exceeded', { sentence });
      }
      return { user: nick, id };
    });
  },
});

export const unblockAccount = defineOperation({
  name: 'blocks.remove',
  summary: 'Unblock an account: it can send the caller private messages again.',
  input: z.strictObject({ user: userReference }),
  output: blockedAccountSchema,
  who: 'person',
  scope: null,
  errors: ['not_found'],
  run: async ({ database }, { user }, caller) => {
    const { accountId } = requireAccount(caller);
    return database.general.run(async (sql) => {
      // Finds deactivated accounts too, so that they can be unblocked.
      const blocked = await findTargetAccount(sql, user);
      if (blocked === null) throw userNotFound(user);
      if (!(await deleteBlock(sql, accountId, blocked.id))) {
        const sentence = `You have not blocked ${blocked.nick}: blocks.list shows your blocks`;
        throw new KlatchError('not_found', { sentence });
      }
      return { user: blocked.nick, id: blocked.id };
    });
  },
});

export const listBlockedAccounts = defineOperation({
  name: 'blocks.list',
  summary: 'List the accounts that the caller has blocked by number, a page at a time.',
  input: z.strictObject({ after: afterNumberSchema, limit: limitSchema }),
  output: z.object({
    blocked: z
      .array(
        z.object({
          ...accountFields,
          at: z.string().describe('Time of the block.'),
        }),
      )
      .describe('The accounts that the caller blocks, by number.'),
    next: nextNumberSchema,
  }),
  who: 'person',
  scope: null,
  errors: [],
  run: async ({ database }, { after, limit }, caller) => {
    const { accountId } = requireAccount(caller);
    const rows = await translateLostRead(
      database.general.run((sql) => listBlocks(sql, { accountId, after, limit: limit + 1 })),
    );
    const { page, next } = pageOf(rows, limit, ({ id }) => id);
    return { blocked: page.map(({ at, ...each }) => ({ ...each, at: at.toISOString() })), next };
  },
});
