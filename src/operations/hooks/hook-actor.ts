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

/**
 * The party that changes a group's reverse webhook: the holder of the integration token, the owner, an admin, or an
 * administrator of the installation.
 */
export interface HookActor {
  readonly conversationId: ConversationId;
  /** The account that the notice about the change names as its actor; null: the command line. */
  readonly actorId: AccountId | null;
  /** False: an administrator, whose requests are not limited. */
  readonly isSubjectToRateLimit: boolean;
  /**
   * Checks that the token is still valid, or that the account still has the role. Locks the token or the role until the
   * transaction ends. Rejects if the check fails.
   */
  readonly lockAccess: (tx: Transaction) => Promise<void>;
}

/** A hook, and the actor who changes it. */
export type HookAccess = HookReference & HookActor;

/**
 * The holder of an integration token. `lockAccess` throws `invalid_token` if the token was replaced since the request
 * began.
 */
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

/**
 * An owner or admin of the group, or an administrator. `lockAccess` throws if the account is no longer an owner or
 * admin.
 */
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

/**
 * The hook with this number in the group of the integration. This does not check whether the hook exists: the code that
 * uses it does.
 */
export function hookByToken(integration: Integration, id: number): HookAccess {
  return { ...actorByToken(integration), hookId: id as HookId };
}

/** The hook that the input of an operation names. Throws `hook_not_found` for a removed hook. */
export async function hookByAccess(
  { database }: Services,
  access: ConversationAccess,
  caller: Caller,
): Promise<HookAccess> {
  const hook = await translateLostRead(database.general.run((sql) => resolveHookEvenRemoved(sql, access.hookId!)));
  if (hook.removedAt !== null) {
    const sentence = `Reverse webhook ${hook.id} is removed: restore it if a 410 of its target removed it, else register it again`;
    throw new KlatchError('hook_not_found', { sentence });
  }
  return { ...actorByAccess(access, caller), hookId: hook.id };
}

/**
 * Counts a request that changes a hook or redelivers messages. Throws `token_rate_limited` if the group has made too
 * many in the last minute. Requests of administrators are not counted.
 */
export function limitGroupHookChanges(
  { hookChangeLimiterByGroup, config }: Services,
  { conversationId, isSubjectToRateLimit: counted }: HookActor,
): void {
  if (!counted || hookChangeLimiterByGroup.reserve(conversationId, 0) !== null) return;
  const sentence = `A group takes ${config.limits.hookChangesPerGroupPerMinute} changes of its reverse webhooks a minute, refused ones too; nothing was done, please repeat it later`;
  throw new KlatchError('token_rate_limited', { sentence });
}
