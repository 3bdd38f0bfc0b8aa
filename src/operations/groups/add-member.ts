import type { LimitsConfig } from '../../config/config.ts';
import { KlatchError } from '../../errors.ts';
import type { AccountId } from '../../model/ids.ts';
import type { GroupRole } from '../../model/roles.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import {
  countMembers,
  insertMember,
  lockAndCountMemberships,
  type RequestedAndAddedMembershipCounts,
} from '../../storage/groups/members.ts';
import type { LockedGroup } from '../core/group-transaction.ts';
import { userNotFound } from '../core/account-reference.ts';

/**
 * Adds an account to a group that it is not in. The group's members and the account's groups are counted under the
 * locks of the group's head and the account. Earlier messages count as read. Throws `quota_exceeded`, and `not_found`
 * for a deactivated account.
 */
export async function addToGroup(
  { limits, group }: { limits: LimitsConfig; group: LockedGroup },
  account: { id: AccountId; nick: string },
  { role, requested }: { role: GroupRole; requested: boolean },
): Promise<void> {
  const { tx, conversationId, head } = group;
  if ((await countMembers(tx, conversationId)) >= limits.membersPerGroup) {
    const sentence = `A group has at most ${limits.membersPerGroup} members (limits.members-per-group): somebody has to leave first`;
    throw new KlatchError('quota_exceeded', { sentence });
  }
  requireConversationQuota(limits, account.nick, {
    counts: await lockAccountAndCountMemberships(tx, account),
    requested,
  });
  await insertMember(tx, { conversationId, accountId: account.id, role, readSeq: head.lastSeq, requested });
  group.queueMemberChangedEvent(account.id);
  await group.addNotice('joined', { account: account.id, nick: account.nick });
}

/**
 * Locks the account's row until the commit, and counts the conversations that it is in. Throws `not_found` for a
 * deactivated account.
 */
export async function lockAccountAndCountMemberships(
  tx: Transaction,
  account: { id: AccountId; nick: string },
): Promise<RequestedAndAddedMembershipCounts> {
  const membershipCounts = await lockAndCountMemberships(tx, account.id);
  if (membershipCounts === null) throw userNotFound(account.nick);
  return membershipCounts;
}

/**
 * Others may add an account to at most this many times `limits.groups-per-user` groups. Groups that an account creates
 * or joins itself have a count of their own, so that others cannot use it up. One owner alone cannot reach this bound,
 * since an owner has at most `limits.groups-per-user` groups.
 */
const ADDED_BY_OTHERS_LIMIT_FACTOR = 10;

/**
 * Throws `quota_exceeded` if the account is in too many conversations. With `requested`, only conversations count that
 * the account created or joined itself. Otherwise, only those count that others added it to.
 */
export function requireConversationQuota(
  { createdOrJoinedConversationsPerUser }: LimitsConfig,
  nick: string,
  { counts, requested }: { counts: RequestedAndAddedMembershipCounts; requested: boolean },
): void {
  if (requested) {
    if (counts.requested < createdOrJoinedConversationsPerUser) return;
    const sentence = `${nick} has created or joined ${counts.requested} groups and conversations, as many as one may (limits.groups-per-user): leave such a group first`;
    throw new KlatchError('quota_exceeded', { sentence });
  }
  if (counts.addedByOthers < createdOrJoinedConversationsPerUser * ADDED_BY_OTHERS_LIMIT_FACTOR) return;
  const sentence = `Others have added ${nick} to ${counts.addedByOthers} groups already, as many as they may (${ADDED_BY_OTHERS_LIMIT_FACTOR} times limits.groups-per-user): send an invitation instead`;
  throw new KlatchError('quota_exceeded', { sentence });
}
