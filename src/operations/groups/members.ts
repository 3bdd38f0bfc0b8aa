import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { GroupRole } from '../../model/roles.ts';
import {
  findTargetAccount,
  findGroupRole,
  findGroupOwner,
  listMembers,
  updateRole,
  type TargetAccount,
} from '../../storage/groups/members.ts';
import type { MemberOrOwnedBot } from '../../storage/groups/departures.ts';
import { findBlocks } from '../../storage/groups/private-conversations.ts';
import { addToGroup } from './add-member.ts';
import { userNotFound, requireActiveAccount, userReference } from '../core/account-reference.ts';
import { translateLostRead } from '../core/database-errors.ts';
import {
  memberWithOwnedBots,
  revocationOptions,
  revocationReportSchema,
  endAdminRole,
  endMembership,
  requireNoRevocationOptions,
  requireTokenRotationScope,
} from './access-revocation.ts';
import { withLockedGroup, type Authority, type LockedGroup } from '../core/group-transaction.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { limitSchema, pageOf, afterNickSchema, nextNickSchema } from '../core/page.ts';
import {
  accountKindField,
  groupField,
  groupReference,
  groupRoleSchema,
  nickField,
  accountFields,
} from '../core/schemas.ts';
import type { Services } from '../core/services.ts';

const memberSchema = z.object({
  ...accountFields,
  kind: accountKindField,
  role: groupRoleSchema,
  joined_at: z.string().describe('Time at which the account became a member.'),
});

export const listGroupMembers = defineTargetedOperation({
  name: 'groups.members',
  summary: 'List the members of a group by nick, a page at a time.',
  input: z.strictObject({ group: groupReference, after: afterNickSchema, limit: limitSchema }),
  output: z.object({
    group: groupField,
    members: z.array(memberSchema).describe('The members, by nick.'),
    next: nextNickSchema,
  }),
  who: 'member',
  on: 'group',
  scope: 'groups:read',
  errors: [],
  run: async ({ database }, { after, limit }, _caller, { conversationId }) => {
    const request = { conversationId, after: after.toLowerCase(), limit: limit + 1 };
    const rows = await translateLostRead(database.general.run((sql) => listMembers(sql, request)));
    const { page, next } = pageOf(rows, limit, (member) => member.nick);
    const members = page.map(({ joinedAt, ...member }) => ({ ...member, joined_at: joinedAt.toISOString() }));
    return { group: conversationId, members, next };
  },
});

export const addMember = defineTargetedOperation({
  name: 'groups.add-member',
  summary: 'Make an account a member of a group, or give a member another role.',
  input: z.strictObject({
    group: groupReference,
    user: userReference,
    role: groupRoleSchema.optional().describe('The role of a new member; not given: `member`.'),
    ...revocationOptions,
  }),
  output: revocationReportSchema.partial().extend({
    group: groupField,
    user: nickField,
    role: groupRoleSchema,
    added: z.boolean().describe('False: the account was a member already.'),
  }),
  who: 'group-admin',
  on: 'group',
  scope: 'groups:write',
  errors: ['blocked', 'quota_exceeded', 'group_archived', 'last_owner'],
  run: async (services, { user, role, ...request }, caller, access) => {
    requireTokenRotationScope(caller, request);
    return withLockedGroup(services, { access, caller, requiredRole: 'group-admin' }, async (group) => {
      const { tx, conversationId, authority } = group;
      const account = await requireActiveAccount(tx, user);
      const oldRole = await findGroupRole(tx, { conversationId, accountId: account.id });
      const nextRole = role ?? oldRole ?? 'member';
      if (nextRole !== (oldRole ?? 'member')) requireMayChangeRole(authority, { old: oldRole, next: nextRole });
      const baseResult = { group: conversationId, user: account.nick, role: nextRole, added: oldRole === null };
      if (oldRole === 'admin' && nextRole === 'member') {
        return { ...baseResult, ...(await endAdminRole(services, group, { account, request })) };
      }
      requireNoRevocationOptions(request);
      if (oldRole !== null) await changeRoleWithoutRevocation(group, account, { old: oldRole, next: nextRole });
      else await addNewMember(services, { group, access }, { account, role: nextRole });
      return baseResult;
    });
  },
});

async function addNewMember(
  { config: { limits } }: Services,
  {
    group,
    access,
  }: { group: LockedGroup & { authority: Authority }; access: { accountId: TargetAccount['id'] | null } },
  { account, role }: { account: TargetAccount; role: GroupRole },
): Promise<void> {
  const { tx } = group;
  if (group.authority !== 'administrator') {
    if (group.head.archived) throw new KlatchError('group_archived');
    const { bySecond } = await findBlocks(tx, [access.accountId!, account.id]);
    if (bySecond) {
      const sentence = `${account.nick} does not want to hear from you, so you cannot add them: they can join by an invitation`;
      throw new KlatchError('blocked', { sentence });
    }
  }
  if (role === 'owner') await demoteOwner(group);
  // `requested` is true if the account adds itself, which only an administrator can do.
  await addToGroup({ limits, group }, account, { role, requested: account.id === access.accountId });
}

/**
 * Throws `forbidden` if the caller may not make this change. Only the owner changes who the admins are. Only an
 * administrator of the installation changes here who the owner is: the owner uses `groups.transfer`.
 */
function requireMayChangeRole(
  authority: Authority,
  { old: oldRole, next: nextRole }: { old: GroupRole | null; next: GroupRole },
): void {
  if (authority === 'administrator') return;
  if (nextRole === 'owner' || oldRole === 'owner') {
    const sentence = 'A group has one owner: hand it over with groups.transfer';
    throw new KlatchError('forbidden', { sentence });
  }
  if (authority === 'owner') return;
  const sentence = 'Only the owner of the group changes who its admins are: ask the owner';
  throw new KlatchError('forbidden', { sentence });
}

/**
 * Changes the role of a member and adds a notice; false: the member had the role already. If the member becomes the
 * owner, the present owner becomes an admin. Throws `last_owner` for the present owner: the role of the owner passes on
 * only when another member gets it.
 */
export async function changeRoleWithoutRevocation(
  group: LockedGroup,
  account: { id: TargetAccount['id']; nick: string },
  { old: oldRole, next: nextRole }: { old: GroupRole; next: GroupRole },
): Promise<boolean> {
  if (oldRole === nextRole) return false;
  if (oldRole === 'owner') throw new KlatchError('last_owner');
  // The present owner is demoted first, so that there are never two owners.
  if (nextRole === 'owner') await demoteOwner(group);
  await saveRole(group, account, nextRole);
  return true;
}

async function saveRole(
  group: LockedGroup,
  account: { id: TargetAccount['id']; nick: string },
  role: GroupRole,
): Promise<void> {
  const { tx, conversationId } = group;
  await updateRole(tx, { conversationId, accountId: account.id }, role);
  group.queueMemberChangedEvent(account.id);
  await group.addNotice('role', { account: account.id, nick: account.nick, role });
}

async function demoteOwner(group: LockedGroup): Promise<void> {
  const owner = await findGroupOwner(group.tx, group.conversationId);
  if (owner !== null) await saveRole(group, owner, 'admin');
}

export const removeMember = defineTargetedOperation({
  name: 'groups.remove-member',
  summary: "Remove a member and the member's bots from a group; their messages stay.",
  input: z.strictObject({ group: groupReference, user: userReference, ...revocationOptions }),
  output: revocationReportSchema.extend({ group: groupField, user: nickField }),
  who: 'group-admin',
  on: 'group',
  scope: 'groups:write',
  errors: [],
  run: async (services, { user, ...request }, caller, access) => {
    requireTokenRotationScope(caller, request);
    return withLockedGroup(services, { access, caller, requiredRole: 'group-admin' }, async (group) => {
      const { authority } = group;
      const account = await requireMember(group, user);
      if (account.id === access.accountId) {
        const sentence = 'This is you: leave the group with groups.leave';
        throw new KlatchError('forbidden', { sentence });
      }
      requireMayRemove(authority, await memberWithOwnedBots(group, account.id));
      const report = await endMembership(services, group, { account, request, kind: 'removed' });
      return { group: group.conversationId, user: account.nick, ...report };
    });
  },
});

/**
 * Throws `forbidden` if the caller may not remove a member. The bots of the member are removed too, so the highest role
 * among them all decides.
 */
function requireMayRemove(authority: Authority, affected: readonly MemberOrOwnedBot[]): void {
  if (authority === 'administrator') return;
  const isOwner = affected.some(({ role }) => role === 'owner');
  if (!isOwner && (authority === 'owner' || affected.every(({ role }) => role === 'member'))) return;
  const sentence = 'Only the owner removes admins, and members whose bots are admins: ask the owner';
  throw new KlatchError('forbidden', { sentence });
}

/** The member with this nick or number, who may be deactivated. Throws `not_found`. */
export async function requireMember(
  { tx, conversationId }: LockedGroup,
  user: string | number,
): Promise<TargetAccount & { readonly role: GroupRole }> {
  const account = await findTargetAccount(tx, user);
  if (account === null) throw userNotFound(user);
  const role = await findGroupRole(tx, { conversationId, accountId: account.id });
  if (role !== null) return { ...account, role };
  const sentence = `${account.nick} is not a member of group ${conversationId}: look at the list of its members`;
  throw new KlatchError('not_found', { sentence });
}
