import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { insertAccount, listAccounts } from '../../storage/accounts/accounts.ts';
import { violatesUnique } from '../../storage/db/database-error.ts';
import { resolveGroup } from '../core/access.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { defineOperation } from '../core/operation.ts';
import { limitSchema, pageOf } from '../core/page.ts';
import { groupReference, groupRoleSchema, installationRoleSchema } from '../core/schemas.ts';
import { nickSchema, nameOrTitleSchema } from '../core/schemas.ts';

export const createUser = defineOperation({
  name: 'accounts.create',
  summary: 'Create an account for a person.',
  input: z.strictObject({ nick: nickSchema, name: nameOrTitleSchema.optional(), admin: z.boolean().default(false) }),
  output: z.object({ id: z.int(), nick: z.string(), name: z.string(), role: z.enum(['admin', 'user']) }),
  who: 'administrator',
  scope: null,
  errors: [],
  run: async ({ database }, { nick, name = nick, admin }) => {
    const role = admin ? ('admin' as const) : ('user' as const);
    try {
      const id = await database.general.run((sql) => insertAccount(sql, { kind: 'user', nick, name, role }));
      return { id, nick, name, role };
    } catch (error) {
      if (violatesUnique(error, 'account_nick_key')) throw new KlatchError('nick_taken', { cause: error });
      throw error;
    }
  },
});

export const listUsersAndBots = defineOperation({
  name: 'accounts.list',
  summary: 'List the accounts of people and bots by nick, a page at a time; with a group, only its members.',
  input: z.strictObject({
    after: z.string().max(64).default(''),
    limit: limitSchema,
    role: installationRoleSchema.optional(),
    group: groupReference.optional(),
  }),
  output: z.object({
    users: z.array(
      z.object({
        id: z.int(),
        nick: z.string(),
        name: z.string(),
        role: installationRoleSchema,
        groups: z.int().describe('Groups that the account is a member of.'),
        group_role: groupRoleSchema.nullable().describe('The role in the group that was asked for, else null.'),
        created_at: z.string(),
        deactivated: z.boolean(),
        signed_in: z.boolean().describe('Whether the account has a session, or a bot a token.'),
      }),
    ),
    next: z.string().nullable(),
  }),
  who: 'administrator',
  scope: null,
  errors: [],
  run: async ({ database }, { after, limit, role = null, group }) => {
    const conversationId = group === undefined ? null : await resolveGroup(database.general, group);
    const page = { after: after.toLowerCase(), limit: limit + 1, role, conversationId };
    const rows = await translateLostRead(database.general.run((sql) => listAccounts(sql, page)));
    const { page: accounts, next } = pageOf(rows, limit, (account) => account.nick);
    const users = accounts.map(
      ({ id, nick, name, role: ownRole, groups, groupRole, createdAt, deactivated, signedIn }) => ({
        id,
        nick,
        name,
        role: ownRole,
        groups,
        group_role: groupRole,
        created_at: createdAt.toISOString(),
        deactivated,
        signed_in: signedIn,
      }),
    );
    return { users, next };
  },
});
