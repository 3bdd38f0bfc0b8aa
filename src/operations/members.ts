import { z } from 'zod';
import { KlatchError } from '../errors.ts';
import type { GroupRole } from '../model/roles.ts';
import { deleteInvitesOf } from '../storage/invites.ts';
import {
  deleteMember,
  findAddressee,
  findGroupRole,
  findOwner,
  listMembers,
  updateRole,
  type Addressee,
} from '../storage/members.ts';
import { findBlocks } from '../storage/private-conversations.ts';
import { absentUser, admitMember, requireAddressee, userReference } from './admission.ts';
import { reading } from './database-errors.ts';
import { changeGroup, type Authority, type LockedGroup } from './group-change.ts';
import { definePlacedOperation } from './operation.ts';
import { limitSchema, pageOf } from './page.ts';
import { groupReference, groupRoleSchema } from './schemas.ts';
import type { Services } from './services.ts';

const memberSchema = z.object({
  id: z.int(),
  nick: z.string(),
  name: z.string(),
  kind: z.enum(['user', 'bot']),
  role: groupRoleSchema,
  joined_at: z.string(),
});

export const listGroupMembers = definePlacedOperation({
  name: 'groups.members',
  summary: 'List the members of a group by nick, a page at a time.',
  input: z.strictObject({ group: groupReference, after: z.string().max(64).default(''), limit: limitSchema }),
  output: z.object({ group: z.int(), members: z.array(memberSchema), next: z.string().nullable() }),
  who: 'member',
  on: 'group',
  scope: 'groups:read',
  errors: [],
  run: async ({ database }, { after, limit }, _caller, { conversationId }) => {
    const asked = { conversationId, after: after.toLowerCase(), limit: limit + 1 };
    const rows = await reading(database.general.run((sql) => listMembers(sql, asked)));
    const { page, next } = pageOf(rows, limit, (member) => member.nick);
    const members = page.map(({ joinedAt, ...member }) => ({ ...member, joined_at: joinedAt.toISOString() }));
    return { group: conversationId, members, next };
  },
});

export const addMember = definePlacedOperation({
  name: 'groups.add-member',
  summary: 'Make an account a member of a group, or give a member another role.',
  input: z.strictObject({ group: groupReference, user: userReference, role: groupRoleSchema.optional() }),
  output: z.object({ group: z.int(), user: z.string(), role: groupRoleSchema, added: z.boolean() }),
  who: 'group-admin',
  on: 'group',
  scope: 'groups:write',
  errors: ['blocked', 'limit_reached', 'group_archived'],
  run: async (services, { user, role }, caller, place) =>
    changeGroup(services, { place, caller, who: 'group-admin' }, async (group) => {
      const { tx, conversationId, authority } = group;
      const account = await requireAddressee(tx, user);
      const old = await findGroupRole(tx, { conversationId, accountId: account.id });
      const next = role ?? old ?? 'member';
      if (next !== (old ?? 'member')) requirePower(authority, { old, next });
      if (old !== null) await changeRole(group, account, { old, next });
      else await add(services, { group, place }, { account, role: next });
      return { group: conversationId, user: account.nick, role: next, added: old === null };
    }),
});

async function add(
  { config: { limits } }: Services,
  { group, place }: { group: LockedGroup & { authority: Authority }; place: { accountId: Addressee['id'] | null } },
  { account, role }: { account: Addressee; role: GroupRole },
): Promise<void> {
  const { tx } = group;
  if (group.authority !== 'administrator') {
    if (group.head.archived) throw new KlatchError('group_archived');
    const { bySecond } = await findBlocks(tx, [place.accountId!, account.id]);
    if (bySecond) {
      const sentence = `${account.nick} cannot be added by you: they do not want to hear from you`;
      throw new KlatchError('blocked', { sentence });
    }
  }
  if (role === 'owner') await giveUpOwnership(group);
  await admitMember({ limits, group }, account, role);
}

/** Only the owner makes admins of members, and members of admins; only an administrator makes owners past the owner. */
function requirePower(authority: Authority, { old, next }: { old: GroupRole | null; next: GroupRole }): void {
  if (authority === 'administrator') return;
  if (next === 'owner' || old === 'owner') {
    const sentence = 'A group has one owner: hand it over with groups.transfer';
    throw new KlatchError('forbidden', { sentence });
  }
  if (authority === 'owner') return;
  throw new KlatchError('forbidden', { sentence: 'Only the owner of the group changes who its admins are' });
}

/** Gives a member another role, and the members a notice; the owner until now becomes an admin when there is a new one. */
export async function changeRole(
  group: LockedGroup,
  account: { id: Addressee['id']; nick: string },
  { old, next }: { old: GroupRole; next: GroupRole },
): Promise<boolean> {
  if (old === next) return false;
  const { tx, conversationId } = group;
  // First: of two owners at a time there is not even a moment.
  if (next === 'owner') await giveUpOwnership(group);
  await updateRole(tx, { conversationId, accountId: account.id }, next);
  group.memberChanged(account.id);
  await group.notice('role', { account: account.id, nick: account.nick, role: next });
  return true;
}

async function giveUpOwnership(group: LockedGroup): Promise<void> {
  const owner = await findOwner(group.tx, group.conversationId);
  if (owner !== null) await changeRole(group, owner, { old: 'owner', next: 'admin' });
}

export const removeMember = definePlacedOperation({
  name: 'groups.remove-member',
  summary: 'End a membership; what the member has written stays.',
  input: z.strictObject({ group: groupReference, user: userReference }),
  output: z.object({ group: z.int(), user: z.string() }),
  who: 'group-admin',
  on: 'group',
  scope: 'groups:write',
  errors: [],
  run: async (services, { user }, caller, place) =>
    changeGroup(services, { place, caller, who: 'group-admin' }, async (group) => {
      const { tx, conversationId, authority } = group;
      const account = await requireMember(group, user);
      if (account.id === place.accountId) {
        const sentence = 'This is you: leave the group with groups.leave';
        throw new KlatchError('forbidden', { sentence });
      }
      const isAbove = authority === 'administrator' || authority === 'owner' || account.role === 'member';
      if (!isAbove) {
        const sentence = 'Admins remove members; admins are removed by the owner';
        throw new KlatchError('forbidden', { sentence });
      }
      await deleteMember(tx, { conversationId, accountId: account.id });
      // Links that were theirs to give away would be a way back in.
      await deleteInvitesOf(tx, { conversationId, accountId: account.id });
      group.memberChanged(account.id);
      await group.notice('removed', { account: account.id, nick: account.nick });
      return { group: conversationId, user: account.nick };
    }),
});

/** A member by nick or number, a deactivated one too. Throws `not_found`. */
export async function requireMember(
  { tx, conversationId }: LockedGroup,
  user: string | number,
): Promise<Addressee & { readonly role: GroupRole }> {
  const account = await findAddressee(tx, user);
  if (account === null) throw absentUser(user);
  const role = await findGroupRole(tx, { conversationId, accountId: account.id });
  if (role !== null) return { ...account, role };
  throw new KlatchError('not_found', { sentence: `${account.nick} is not a member of group ${conversationId}` });
}
