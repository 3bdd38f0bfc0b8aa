import { KlatchError } from '../../errors.ts';
import type { AccountId, ConversationId, HookId } from '../../model/ids.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import type { HookReference } from '../../storage/hooks/hook-control.ts';
import { lockAndCompareTokenHash, type Integration } from '../../storage/groups/integrations.ts';
import { resolveHookEvenRemoved } from '../core/access.ts';
import { isAdministrator, type Caller } from '../core/caller.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { lockCallerAuthority } from '../core/group-transaction.ts';
import type { ConversationAccess } from '../core/conversation-access.ts';
import type { Services } from '../core/services.ts';

/** Who changes a group's reverse webhooks: the holder of its token, its owner or an admin, an administrator. */
export interface HookActor {
  readonly conversationId: ConversationId;
  /** The account that acts, for the notice; null: the administrator's command line. */
  readonly actorId: AccountId | null;
  /** False for an administrator, whose requests are not counted. */
  readonly isSubjectToRateLimit: boolean;
  /**
   * Checks that the token or the role still gives access, and locks it until the transaction ends. Rejects if it no
   * longer does.
   */
  readonly lockAccess: (tx: Transaction) => Promise<void>;
}

/** A hook, and the actor who changes it. */
export type HookAccess = HookReference & HookActor;

/** The holder of a token. While a body arrives, the token may be rotated; its holder changes nothing then. */
export function actorByToken({ conversationId, accountId, tokenHash }: Integration): HookActor {
  return {
    conversationId,
    actorId: accountId,
    isSubjectToRateLimit: true,
    lockAccess: async (tx) => {
      if (!(await lockAndCompareTokenHash(tx, conversationId, tokenHash))) throw new KlatchError('invalid_token');
    },
  };
}

/** An owner or admin, who must still be one. */
export function actorByAccess(access: ConversationAccess, caller: Caller): HookActor {
  return {
    conversationId: access.conversationId,
    actorId: access.accountId,
    isSubjectToRateLimit: !isAdministrator(caller),
    lockAccess: async (tx) => {
      await lockCallerAuthority(tx, { access, caller, requiredRole: 'group-admin' });
    },
  };
}

/** The hook with this number in a token's group. Whether it exists shows when it is used. */
export function hookByToken(integration: Integration, id: number): HookAccess {
  return { ...actorByToken(integration), hookId: id as HookId };
}

/** The hook that an operation's input names. Throws `hook_not_found` for one that was removed. */
export async function hookByAccess(
  { database }: Services,
  access: ConversationAccess,
  caller: Caller,
): Promise<HookAccess> {
  const hook = await translateLostRead(database.general.run((sql) => resolveHookEvenRemoved(sql, access.hookId!)));
  if (hook.removedAt !== null) {
    throw new KlatchError('hook_not_found', { sentence: `Reverse webhook ${hook.id} is removed` });
  }
  return { ...actorByAccess(access, caller), hookId: hook.id };
}

/**
 * Counts a request that changes a hook or sends its messages again. Throws `token_rate_limited` when a group has made
 * as many in the last minute as it may. An administrator's requests are not counted.
 */
export function limitGroupHookChanges(
  { hookChangeLimiterByGroup, config }: Services,
  { conversationId, isSubjectToRateLimit: counted }: HookActor,
): void {
  if (!counted || hookChangeLimiterByGroup.reserve(conversationId, 0) !== null) return;
  const sentence = `A group takes ${config.limits.hookChangesPerGroupPerMinute} changes of its reverse webhooks a minute, refused ones too; nothing was done, please repeat it later`;
  throw new KlatchError('token_rate_limited', { sentence });
}
