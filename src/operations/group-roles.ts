import * as z from 'zod';
import { KlatchError } from '../errors.ts';
import type { AccountId } from '../model/ids.ts';
import type { ActingMember } from '../storage/departures.ts';
import { userReference } from './admission.ts';
import {
  actingMembers,
  departureRequest,
  departureSchema,
  endAdminRole,
  endMembership,
  requireDepartureRights,
  requireNoDepartureRequest,
  requireTokenScope,
} from './departures.ts';
import { changeGroup } from './group-change.ts';
import { changeRole, requireMember } from './members.ts';
import { definePlacedOperation } from './operation.ts';
import { groupReference, groupRoleSchema } from './schemas.ts';

export const setRole = definePlacedOperation({
  name: 'groups.set-role',
  summary: 'Make a member of a group an admin, or an admin a member.',
  input: z.strictObject({
    group: groupReference,
    user: userReference,
    role: z.enum(['admin', 'member']),
    ...departureRequest,
  }),
  output: departureSchema
    .partial()
    .extend({ group: z.int(), user: z.string(), role: groupRoleSchema, changed: z.boolean() }),
  who: 'group-owner',
  on: 'group',
  scope: 'groups:write',
  errors: ['last_owner'],
  run: async (services, { user, role, ...request }, caller, place) => {
    requireTokenScope(caller, request);
    return changeGroup(services, { place, caller, who: 'group-owner' }, async (group) => {
      const account = await requireMember(group, user);
      const done = { group: group.conversationId, user: account.nick, role };
      if (account.role === 'admin' && role === 'member') {
        return { ...done, changed: true, ...(await endAdminRole(services, group, { account, request })) };
      }
      requireNoDepartureRequest(request);
      return { ...done, changed: await changeRole(group, account, { old: account.role, next: role }) };
    });
  },
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
  input: z.strictObject({ group: groupReference, ...departureRequest }),
  output: departureSchema.extend({ group: z.int() }),
  who: 'member',
  on: 'group',
  scope: 'groups:write',
  errors: ['not_member', 'last_owner'],
  run: async (services, request, caller, place) => {
    const { accountId, role } = place;
    if (caller.kind !== 'account' || accountId === null || role === 'administrator')
      throw new KlatchError('not_member');
    requireTokenScope(caller, request);
    return changeGroup(services, { place, caller, who: 'member' }, async (group) => {
      const leaving = await actingMembers(group, accountId);
      if (!group.head.archived) requireNoOwner(leaving, accountId);
      requireDepartureRights(leaving, request);
      const account = { id: accountId, nick: caller.nick };
      const departure = await endMembership(services, group, { account, request, kind: 'left' });
      return { group: group.conversationId, ...departure };
    });
  },
});

/** Throws `last_owner` where the account or one of its bots, which leaves with it, owns the group. */
function requireNoOwner(leaving: readonly ActingMember[], accountId: AccountId): void {
  const owner = leaving.find(({ role }) => role === 'owner');
  if (owner === undefined) return;
  if (owner.id === accountId) throw new KlatchError('last_owner');
  const sentence = `Your bot ${owner.nick} owns this group and would leave it with you: hand the group over first, or archive it`;
  throw new KlatchError('last_owner', { sentence });
}
