import { z } from 'zod';
import { KlatchError } from '../errors.ts';
import { deleteMember } from '../storage/members.ts';
import { userReference } from './admission.ts';
import { changeGroup } from './group-change.ts';
import { changeRole, requireMember } from './members.ts';
import { definePlacedOperation } from './operation.ts';
import { groupReference, groupRoleSchema } from './schemas.ts';

export const setRole = definePlacedOperation({
  name: 'groups.set-role',
  summary: 'Make a member of a group an admin, or an admin a member.',
  input: z.strictObject({ group: groupReference, user: userReference, role: z.enum(['admin', 'member']) }),
  output: z.object({ group: z.int(), user: z.string(), role: groupRoleSchema, changed: z.boolean() }),
  who: 'group-owner',
  on: 'group',
  scope: 'groups:write',
  errors: ['last_owner'],
  run: async (services, { user, role }, caller, place) =>
    changeGroup(services, { place, caller, who: 'group-owner' }, async (group) => {
      const account = await requireMember(group, user);
      if (account.role === 'owner') throw new KlatchError('last_owner');
      const changed = await changeRole(group, account, { old: account.role, next: role });
      return { group: group.conversationId, user: account.nick, role, changed };
    }),
});

export const transferGroup = definePlacedOperation({
  name: 'groups.transfer',
  summary: 'Hand a group over to another member, who becomes its owner; the owner until now becomes an admin.',
  input: z.strictObject({ group: groupReference, user: userReference }),
  output: z.object({ group: z.int(), owner: z.string(), changed: z.boolean() }),
  who: 'group-owner',
  on: 'group',
  scope: 'groups:write',
  errors: [],
  run: async (services, { user }, caller, place) =>
    changeGroup(services, { place, caller, who: 'group-owner' }, async (group) => {
      const account = await requireMember(group, user);
      if (account.deactivated) {
        const sentence = `The account of ${account.nick} is deactivated: it cannot own a group`;
        throw new KlatchError('invalid_input', { sentence });
      }
      const changed = await changeRole(group, account, { old: account.role, next: 'owner' });
      return { group: group.conversationId, owner: account.nick, changed };
    }),
});

export const leaveGroup = definePlacedOperation({
  name: 'groups.leave',
  summary: 'Leave a group; what you have written stays. Its owner hands it over or archives it first.',
  input: z.strictObject({ group: groupReference }),
  output: z.object({ group: z.int() }),
  who: 'member',
  on: 'group',
  scope: 'groups:write',
  errors: ['not_member', 'last_owner'],
  run: async (services, _input, caller, place) => {
    const { accountId, role } = place;
    if (caller.kind !== 'account' || accountId === null || role === 'administrator')
      throw new KlatchError('not_member');
    return changeGroup(services, { place, caller, who: 'member' }, async (group) => {
      const { tx, conversationId, head } = group;
      const { role: now } = await requireMember(group, accountId);
      if (now === 'owner' && !head.archived) throw new KlatchError('last_owner');
      await deleteMember(tx, { conversationId, accountId });
      group.memberChanged(accountId);
      await group.notice('left', { account: accountId, nick: caller.nick });
      return { group: conversationId };
    });
  },
});
