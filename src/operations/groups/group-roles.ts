import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { AccountId } from '../../model/ids.ts';
import type { MemberOrOwnedBot } from '../../storage/groups/departures.ts';
import { userReference } from '../core/account-reference.ts';
import {
  memberWithOwnedBots,
  revocationOptions,
  revocationReportSchema,
  endAdminRole,
  endMembership,
  requireLeaverMayRevoke,
  requireNoRevocationOptions,
  requireTokenRotationScope,
} from './access-revocation.ts';
import { withLockedGroup } from '../core/group-transaction.ts';
import { changeRoleWithoutRevocation, requireMember } from './members.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { groupField, groupReference, groupRoleSchema, nickField, changedField } from '../core/schemas.ts';

export const setMemberRole = defineTargetedOperation({
  name: 'groups.set-role',
  summary: 'Make a member of a group an admin, or an admin a member.',
  input: z.strictObject({
    group: groupReference,
    user: userReference,
    role: z.enum(['admin', 'member']).describe('The new role of the member.'),
    ...revocationOptions,
  }),
  output: revocationReportSchema.partial().extend({
    group: groupField,
    user: nickField,
    role: groupRoleSchema,
    changed: changedField,
  }),
  who: 'group-owner',
  on: 'group',
  scope: 'groups:write',
  errors: ['last_owner'],
  run: async (services, { user, role, ...request }, caller, access) => {
    requireTokenRotationScope(caller, request);
    return withLockedGroup(services, { access, caller, requiredRole: 'group-owner' }, async (group) => {
      const account = await requireMember(group, user);
      const baseResult = { group: group.conversationId, user: account.nick, role };
      if (account.role === 'admin' && role === 'member') {
        return { ...baseResult, changed: true, ...(await endAdminRole(services, group, { account, request })) };
      }
      requireNoRevocationOptions(request);
      return {
        ...baseResult,
        changed: await changeRoleWithoutRevocation(group, account, { old: account.role, next: role }),
      };
    });
  },
});

export const transferGroup = defineTargetedOperation({
  name: 'groups.transfer',
  summary: 'Hand a group over to another member, who becomes its owner. The former owner becomes an admin.',
  input: z.strictObject({ group: groupReference, user: userReference }),
  output: z.object({
    group: groupField,
    owner: nickField.describe("The new owner's nick."),
    changed: changedField,
  }),
  who: 'group-owner',
  on: 'group',
  scope: 'groups:write',
  errors: [],
  run: async (services, { user }, caller, access) =>
    withLockedGroup(services, { access, caller, requiredRole: 'group-owner' }, async (group) => {
      const account = await requireMember(group, user);
      if (account.deactivated) {
        const sentence = `The account of ${account.nick} is deactivated and cannot own a group: choose another member, or have it activated first`;
        throw new KlatchError('invalid_input', { sentence });
      }
      const changed = await changeRoleWithoutRevocation(group, account, { old: account.role, next: 'owner' });
      return { group: group.conversationId, owner: account.nick, changed };
    }),
});

export const leaveGroup = defineTargetedOperation({
  name: 'groups.leave',
  summary: 'Leave a group; your messages stay. An owner has to hand the group over or archive it before.',
  input: z.strictObject({ group: groupReference, ...revocationOptions }),
  output: revocationReportSchema.extend({ group: groupField }),
  who: 'member',
  on: 'group',
  scope: 'groups:write',
  errors: ['not_member', 'last_owner'],
  run: async (services, request, caller, access) => {
    const { accountId, role } = access;
    if (caller.kind !== 'account' || accountId === null || role === 'administrator')
      throw new KlatchError('not_member');
    requireTokenRotationScope(caller, request);
    return withLockedGroup(services, { access, caller, requiredRole: 'member' }, async (group) => {
      const affected = await memberWithOwnedBots(group, accountId);
      if (!group.head.archived) requireNoOwnerLeaving(affected, accountId);
      requireLeaverMayRevoke(affected, request);
      const account = { id: accountId, nick: caller.nick };
      const report = await endMembership(services, group, { account, request, kind: 'left' });
      return { group: group.conversationId, ...report };
    });
  },
});

/** Throws `last_owner` if the account owns the group, or if one of its bots does, which would leave with it. */
function requireNoOwnerLeaving(affected: readonly MemberOrOwnedBot[], accountId: AccountId): void {
  const owner = affected.find(({ role }) => role === 'owner');
  if (owner === undefined) return;
  if (owner.id === accountId) throw new KlatchError('last_owner');
  const sentence = `Your bot ${owner.nick} owns this group and would leave it with you: hand the group over first, or archive it`;
  throw new KlatchError('last_owner', { sentence });
}
