import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { AccountId } from '../../model/ids.ts';
import {
  insertRemoval,
  listMemberWithBots,
  listHookIds,
  type MemberOrOwnedBot,
} from '../../storage/groups/departures.ts';
import { deleteInvitesCountingOpen, deleteInvitesCreatedBy, listOpenInviteIds } from '../../storage/groups/invites.ts';
import { deleteMember, updateRole } from '../../storage/groups/members.ts';
import type { Caller } from '../core/caller.ts';
import type { LockedGroup, NoticeDetails } from '../core/group-transaction.ts';
import { replaceGroupToken } from './group-token.ts';
import { authorizeCaller } from '../core/call-operation.ts';
import type { Services } from '../core/services.ts';

/**
 * This file ends memberships and the roles of admins, for leaving, removal and demotion alike. With them it revokes
 * rights and secrets.
 */

/** Options of the operations that end a membership or the role of an admin. */
export const revocationOptions = {
  rotate_token: z
    .boolean()
    .optional()
    .describe('Replace the integration token in the same call, because the account may know it.'),
  revoke_invites: z
    .boolean()
    .optional()
    .describe('Revoke all open invitations of the group in the same call, because the account may know their links.'),
};

export const revocationReportSchema = z.object({
  bots: z
    .array(z.string())
    .describe("The account's bots, by nick: they left the group with it, or are admins no longer."),
  invites_ended: z
    .int()
    .describe(
      'Invitations that are revoked: those of the account and of these bots, with `revoke_invites` all open ones.',
    ),
  invites_seen: z
    .array(z.int())
    .describe('The numbers of invitations by others whose links the account could see, and that are still open.'),
  hooks: z
    .array(z.int())
    .describe(
      "The numbers of the group's reverse webhooks, where the account may have registered one: they forward messages on.",
    ),
  token: z
    .enum(['unseen', 'seen', 'rotated'])
    .describe('`seen`: the account could see the integration token, and it still works. `rotate_token` replaces it.'),
});

export type RevocationReport = z.infer<typeof revocationReportSchema>;

interface RevocationOptions {
  readonly rotate_token?: boolean | undefined;
  readonly revoke_invites?: boolean | undefined;
}

interface RevocationRequest {
  readonly account: { readonly id: AccountId; readonly nick: string };
  readonly request: RevocationOptions;
}

/**
 * Throws `missing_scope` if `rotate_token` is asked for with the token of a bot that lacks the scope `hooks:manage`.
 */
export function requireTokenRotationScope(caller: Caller, request: RevocationOptions): void {
  if (request.rotate_token === true) authorizeCaller({ who: 'account', scope: 'hooks:manage' }, caller);
}

/** The account's membership in the group, followed by the memberships of its bots, which end together with it. */
export function memberWithOwnedBots(
  { tx, conversationId }: LockedGroup,
  accountId: AccountId,
): Promise<MemberOrOwnedBot[]> {
  return listMemberWithBots(tx, { conversationId, accountId });
}

/**
 * Ends the membership of an account and of its bots, and deletes the invitations that they made. A removed account
 * cannot return by an invitation that exists now, whoever made it.
 */
export async function endMembership(
  services: Services,
  group: LockedGroup,
  { account, request, kind }: RevocationRequest & { kind: 'left' | 'removed' },
): Promise<RevocationReport> {
  const { tx, conversationId } = group;
  const affected = await memberWithOwnedBots(group, account.id);
  const report = await revokeRolesAndSecrets(services, group, { account, request, affected }, async (accountId) => {
    await deleteMember(tx, { conversationId, accountId });
  });
  if (kind === 'removed') await insertRemoval(tx, { conversationId, accountId: account.id });
  await group.addNotice(kind, { account: account.id, nick: account.nick, ...secretsNoticeDetails(report) });
  for (const bot of affected.slice(1)) {
    await group.addNotice('removed', { account: bot.id, nick: bot.nick, owner: account.nick });
  }
  return report;
}

/**
 * Makes an admin a plain member, and the account's bots that are admins too: a bot must not have rights that its owner
 * lost.
 */
export async function endAdminRole(
  services: Services,
  group: LockedGroup,
  { account, request }: RevocationRequest,
): Promise<RevocationReport> {
  const { tx, conversationId } = group;
  const memberships = await memberWithOwnedBots(group, account.id);
  const affected = memberships.filter(({ id, role }) => id === account.id || role === 'admin');
  const report = await revokeRolesAndSecrets(services, group, { account, request, affected }, (accountId) =>
    updateRole(tx, { conversationId, accountId }, 'member'),
  );
  const role = 'member';
  await group.addNotice('role', { account: account.id, nick: account.nick, role, ...secretsNoticeDetails(report) });
  for (const bot of affected.slice(1)) await group.addNotice('role', { account: bot.id, nick: bot.nick, role });
  return report;
}

/**
 * Revokes what the affected accounts may do and know: it deletes their invitations, calls `changeMembership` for each
 * account, account, and replaces the integration token if `request` asks for it. Resolves to a report of this, and of
 * secrets that the account may know.
 */
async function revokeRolesAndSecrets(
  services: Services,
  group: LockedGroup,
  { account, request, affected }: RevocationRequest & { affected: readonly MemberOrOwnedBot[] },
  changeMembership: (accountId: AccountId) => Promise<void>,
): Promise<RevocationReport> {
  const { tx, conversationId } = group;
  const accountIds = affected.map(({ id }) => id);
  let endedInviteCount = await deleteInvitesCreatedBy(tx, { conversationId, accountIds });
  if (request.revoke_invites === true) endedInviteCount += await deleteInvitesCountingOpen(tx, conversationId);
  for (const id of accountIds) {
    await changeMembership(id);
    group.queueMemberChangedEvent(id);
  }
  const isRotated = request.rotate_token === true;
  if (isRotated) await replaceGroupToken(services, group);
  const hasSeenSecrets = affected.some(
    ({ role, knowsTokenAsFormerAdmin }) => role !== 'member' || knowsTokenAsFormerAdmin,
  );
  return {
    bots: affected.flatMap(({ id, nick }) => (id === account.id ? [] : [nick])),
    invites_ended: endedInviteCount,
    invites_seen: hasSeenSecrets ? await listOpenInviteIds(tx, conversationId) : [],
    hooks: hasSeenSecrets ? await listHookIds(tx, conversationId) : [],
    token: isRotated ? 'rotated' : hasSeenSecrets ? 'seen' : 'unseen',
  };
}

/** The part of a notice that names secrets which the account may know: the integration token, and open invitations. */
function secretsNoticeDetails({ token, invites_seen: seen }: RevocationReport): NoticeDetails {
  return {
    ...(token === 'unseen' ? {} : { token }),
    ...(seen.length === 0 ? {} : { invites_seen: seen.length }),
  };
}

/**
 * Throws `forbidden` for a plain member who leaves with `rotate_token` or `revoke_invites`, which only owners and
 * admins may use.
 */
export function requireLeaverMayRevoke(affected: readonly MemberOrOwnedBot[], request: RevocationOptions): void {
  if (affected[0]?.role !== 'member' || !hasOptions(request)) return;
  const sentence = 'Only owners and admins of the group may use rotate_token and revoke_invites: leave them out';
  throw new KlatchError('forbidden', { sentence });
}

/**
 * For a change of a role that takes no rights from anybody: throws `invalid_input` if the request asks for
 * `rotate_token` or `revoke_invites`. Otherwise the caller would believe that they were done.
 */
export function requireNoRevocationOptions(request: RevocationOptions): void {
  if (!hasOptions(request)) return;
  const sentence =
    'rotate_token, revoke_invites: they go with the call that makes an admin a member; ' +
    'otherwise use groups.rotate-token and invites.revoke';
  throw new KlatchError('invalid_input', { sentence });
}

function hasOptions({ rotate_token: rotate, revoke_invites: revoke }: RevocationOptions): boolean {
  return rotate === true || revoke === true;
}
