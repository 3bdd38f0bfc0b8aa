import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { insertAccount, listAccounts } from '../../storage/accounts/accounts.ts';
import { violatesUnique } from '../../storage/db/database-error.ts';
import { resolveGroup } from '../core/access.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { defineOperation } from '../core/operation.ts';
import { limitSchema, pageOf, afterNickSchema, nextNickSchema } from '../core/page.ts';
import {
  createdAtField,
  groupReference,
  groupRoleSchema,
  installationRoleSchema,
  accountFields,
} from '../core/schemas.ts';
import { nickSchema, nameOrTitleSchema } from '../core/schemas.ts';

export const createUser = defineOperation({
  name: 'accounts.create',
  summary: 'Create an account for a person.',
  input: z.strictObject({
    nick: nickSchema,
    name: nameOrTitleSchema.optional().describe('The name that others see; not given: the nick.'),
    admin: z.boolean().default(false).describe('Whether the person is an administrator of the installation.'),
  }),
  output: z.object({
    ...accountFields,
    role: z.enum(['admin', 'user']).describe('The role in the installation.'),
  }),
  who: 'administrator',
  scope: null,
  errors: ['nick_taken'],
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
    after: afterNickSchema,
    limit: limitSchema,
    role: installationRoleSchema.optional().describe('Only accounts with this role.'),
    group: groupReference.optional().describe('Only members of this group, by its number.'),
  }),
  output: z.object({
    users: z
      .array(
        z.object({
          ...accountFields,
          role: installationRoleSchema,
          groups: z.int().describe('Groups that the account is a member of.'),
          group_role: groupRoleSchema.nullable().describe('The role in the group that was asked for, else null.'),
          created_at: createdAtField,
          deactivated: z.boolean().describe('Nobody signs in to a deactivated account.'),
          signed_in: z.boolean().describe('Whether the account has a session, or a bot a token.'),
        }),
      )
      .describe('The accounts, by nick.'),
    next: nextNickSchema,
  }),
  who: 'administrator',
  scope: null,
  errors: [],
  run: async ({ database }, { after, limit, role = null, group }) => {
    const conversationId = group === undefined ? null : await resolveGroup(database.general, group);
    const pageRequest = { after: after.toLowerCase(), limit: limit + 1, role, conversationId };
    const rows = await translateLostRead(database.general.run((sql) => listAccounts(sql, pageRequest)));
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
