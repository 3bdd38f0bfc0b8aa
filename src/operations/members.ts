import { z } from 'zod';
import { KlatchError } from '../errors.ts';
import { deleteMember, putMember } from '../storage/members.ts';
import { resolveAccount, resolveGroup } from './access.ts';
import { defineOperation } from './operation.ts';
import { groupReference, groupRoleSchema } from './schemas.ts';
import { nickSchema } from './users.ts';

export const addMember = defineOperation({
  name: 'groups.add_member',
  summary: 'Make an account a member of a group, or give a member another role.',
  input: z.strictObject({ group: groupReference, user: nickSchema, role: groupRoleSchema.optional() }),
  output: z.object({ group: z.int(), user: z.string(), role: groupRoleSchema, added: z.boolean() }),
  allows: (caller) => caller.kind === 'system',
  run: async ({ database }, { group, user, role }) => {
    const conversationId = await resolveGroup(database.general, group);
    const result = await database.general.transaction(async (tx) => {
      const { id: accountId } = await resolveAccount(tx, user);
      return putMember(tx, { conversationId, accountId }, role ?? null);
    });
    return { group: conversationId, user, ...result };
  },
});

export const removeMember = defineOperation({
  name: 'groups.remove_member',
  summary: 'End a membership; what the member has written stays.',
  input: z.strictObject({ group: groupReference, user: nickSchema }),
  output: z.object({ group: z.int(), user: z.string() }),
  allows: (caller) => caller.kind === 'system',
  run: async ({ database }, { group, user }) => {
    const conversationId = await resolveGroup(database.general, group);
    const removed = await database.general.transaction(async (tx) => {
      const { id: accountId } = await resolveAccount(tx, user);
      return deleteMember(tx, { conversationId, accountId });
    });
    if (!removed) {
      throw new KlatchError('not_found', { sentence: `${user} is not a member of group ${conversationId}` });
    }
    return { group: conversationId, user };
  },
});
