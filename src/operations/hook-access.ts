import { KlatchError } from '../errors.ts';
import type { AccountId, ConversationId, HookId } from '../model/ids.ts';
import type { Transaction } from '../storage/connection.ts';
import type { HookReference } from '../storage/hook-control.ts';
import { holdToken, type Integration } from '../storage/integrations.ts';
import { resolveHook } from './access.ts';
import { isAdministrator, type Caller } from './caller.ts';
import { reading } from './database-errors.ts';
import { holdAuthority } from './group-change.ts';
import type { Place } from './place.ts';
import type { Services } from './services.ts';

/** Who changes a group's reverse webhooks: the holder of its token, its owner or an admin, an administrator. */
export interface HookActor {
  readonly conversationId: ConversationId;
  /** Whose doing it is, for the notice; null: the administrator's command line. */
  readonly actorId: AccountId | null;
  /** An administrator's requests are not counted. */
  readonly counted: boolean;
  /** What gave access still does, and does so until the transaction ends. Rejects when it does not. */
  readonly admit: (tx: Transaction) => Promise<void>;
}

/** A hook with who changes it. */
export type HookAccess = HookReference & HookActor;

/** The holder of a token. A body may take its time: a token that was rotated meanwhile changes nothing any more. */
export function byToken({ conversationId, accountId, tokenHash }: Integration): HookActor {
  return {
    conversationId,
    actorId: accountId,
    counted: true,
    admit: async (tx) => {
      if (!(await holdToken(tx, conversationId, tokenHash))) throw new KlatchError('wrong_token');
    },
  };
}

/** An owner or admin, who must still be one. */
export function byPlace(place: Place, caller: Caller): HookActor {
  return {
    conversationId: place.conversationId,
    actorId: place.accountId,
    counted: !isAdministrator(caller),
    admit: async (tx) => {
      await holdAuthority(tx, { place, caller, who: 'group-admin' });
    },
  };
}

/** The hook of a token's group; whether there is one says what is done with it. */
export function hookOfGroup(integration: Integration, id: number): HookAccess {
  return { ...byToken(integration), hookId: id as HookId };
}

/** The hook that an operation's input names. Throws `hook_not_found` for one that was removed. */
export async function hookOfPlace({ database }: Services, place: Place, caller: Caller): Promise<HookAccess> {
  const hook = await reading(database.general.run((sql) => resolveHook(sql, place.hookId!)));
  if (hook.removedAt !== null) {
    throw new KlatchError('hook_not_found', { sentence: `Reverse webhook ${hook.id} is removed` });
  }
  return { ...byPlace(place, caller), hookId: hook.id };
}

/**
 * Counts a request that changes a hook or sends its messages again. Throws `rate_exceeded` when a group has made as many
 * in the last minute as it may. The administrator's are not counted.
 */
export function countHookChange({ hookChanges, config }: Services, { conversationId, counted }: HookActor): void {
  if (!counted || hookChanges.reserve(conversationId, 0) !== null) return;
  const sentence = `A group takes ${config.limits.hookChangesPerMinute} changes of its reverse webhooks a minute, refused ones too; nothing was done, please repeat it later`;
  throw new KlatchError('rate_exceeded', { sentence });
}
