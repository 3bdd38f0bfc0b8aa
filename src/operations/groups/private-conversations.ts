import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { ConversationId } from '../../model/ids.ts';
import type { Sql, Transaction } from '../../storage/db/connection.ts';
import { insertNotice } from '../../storage/messages/notices.ts';
import {
  findBlocks,
  findPrivateConversation,
  insertPrivateConversation,
  type UnsortedAccountPair,
} from '../../storage/groups/private-conversations.ts';
import type { TargetAccount, RequestedAndAddedMembershipCounts } from '../../storage/groups/members.ts';
import { lockAccountAndCountMemberships, requireConversationQuota } from './add-member.ts';
import { requireActiveAccount, userReference } from '../core/account-reference.ts';
import { requireAccount, type AccountCaller } from '../core/caller.ts';
import { showConversation } from './conversations.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { withEventsAfterCommit } from '../core/group-transaction.ts';
import { defineOperation } from '../core/operation.ts';
import type { Services } from '../core/services.ts';
import { conversationSchema } from '../core/serializers.ts';

export const openPrivateConversation = defineOperation({
  name: 'private.open',
  summary:
    'Open the private conversation with a person or bot; each call returns the same one. It has no token and no hooks.',
  input: z.strictObject({ user: userReference }),
  output: conversationSchema,
  who: 'account',
  scope: 'messages:write',
  errors: ['not_found', 'blocked', 'quota_exceeded'],
  run: async (services, { user }, caller) => {
    const self = requireAccount(caller);
    const { database } = services;
    const { peer, found } = await translateLostRead(
      database.general.run(async (sql) => {
        const other = await requireUnblockedPeer(sql, self, user);
        return { peer: other, found: await findPrivateConversation(sql, [self.accountId, other.id]) };
      }),
    );
    const id = found ?? (await createPrivateConversation(services, self, peer));
    return showConversation(services, { accountId: self.accountId, only: id });
  },
});

/**
 * The other account of a private conversation. Throws `not_found`, `invalid_input` for the caller's own account, and
 * `blocked`.
 */
async function requireUnblockedPeer(sql: Sql, self: AccountCaller, user: string | number): Promise<TargetAccount> {
  const peer = await requireActiveAccount(sql, user);
  if (peer.id === self.accountId) {
    const sentence = 'user: a private conversation is with somebody else; name another person or bot';
    throw new KlatchError('invalid_input', { sentence });
  }
  await requireNoBlock(sql, self, peer);
  return peer;
}

/** Throws `blocked` if the peer blocks the caller; with another sentence, if the caller blocks the peer. */
async function requireNoBlock(sql: Sql | Transaction, self: AccountCaller, peer: TargetAccount): Promise<void> {
  const { byFirst, bySecond } = await findBlocks(sql, [self.accountId, peer.id]);
  if (bySecond) throw new KlatchError('blocked');
  if (byFirst) {
    const sentence = `You have blocked ${peer.nick}: take that back first (blocks.remove)`;
    throw new KlatchError('blocked', { sentence });
  }
}

async function createPrivateConversation(
  services: Services,
  self: AccountCaller,
  peer: TargetAccount,
): Promise<ConversationId> {
  const me = { id: self.accountId, nick: self.nick };
  const pair: UnsortedAccountPair = [me.id, peer.id];
  return withEventsAfterCommit(services, async (tx, events) => {
    // The account with the lower number is locked first, as in all code that locks two accounts. If both accounts begin
    // the conversation at once, the second call finds the conversation of the first.
    const accountsInLockOrder = me.id < peer.id ? [me, peer] : [peer, me];
    const counts: RequestedAndAddedMembershipCounts[] = [];
    for (const account of accountsInLockOrder) counts.push(await lockAccountAndCountMemberships(tx, account));
    await requireNoBlock(tx, self, peer);
    const found = await findPrivateConversation(tx, pair);
    if (found !== null) return found;
    for (const [index, { nick }] of accountsInLockOrder.entries()) {
      requireConversationQuota(services.config.limits, nick, { counts: counts[index]!, requested: true });
    }
    const conversationId = await insertPrivateConversation(tx, pair);
    for (const accountId of pair) events.queueMemberChangedEvent({ conversationId, accountId });
    events.queueNoticeAddedEvent(conversationId);
    await insertNotice(tx, { conversationId, kind: 'created', actorId: me.id, details: {} });
    return conversationId;
  });
}
