import type { Bus, Membership } from '../../bus/bus.ts';
import { KlatchError } from '../../errors.ts';
import type { AccountId, ConversationId } from '../../model/ids.ts';
import type { GroupRole } from '../../model/roles.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import { CommitUnknownError } from '../../storage/db/database-error.ts';
import { lockGroup, type LockedHead } from '../../storage/groups/groups.ts';
import { lockGroupRole } from '../../storage/groups/members.ts';
import { insertNotice } from '../../storage/messages/notices.ts';
import { isAdministrator, type Caller } from './caller.ts';
import type { ConversationAccess } from './conversation-access.ts';
import type { Services } from './services.ts';

/** The data of a notice besides its kind. It holds no secrets, no tokens, and no paths of URLs. */
export type NoticeDetails = Readonly<Record<string, string | number | boolean | null>>;

/**
 * A conversation whose head is locked until the commit: nobody else numbers messages or changes, counts members or
 * hooks, or changes the group meanwhile.
 */
export interface LockedGroup {
  readonly tx: Transaction;
  readonly conversationId: ConversationId;
  readonly head: LockedHead;
  /** Adds a notice for the members to the conversation, with the caller as its actor. */
  addNotice(kind: string, details?: NoticeDetails): Promise<void>;
  /** After the commit, tells every node that its cached state of this membership is outdated. */
  queueMemberChangedEvent(accountId: AccountId): void;
  /** After the commit, tells every node to remove the integration token with this hash from its cache. */
  queueTokenRevokedEvent(hash: string): void;
}

/** The role by which the caller may change the group; `administrator`: as an administrator of the installation. */
export type Authority = GroupRole | 'administrator';

/** Collects the events of a transaction, to publish them once it is committed. */
export class PendingEvents {
  readonly #conversationsWithNotice = new Set<ConversationId>();
  readonly #changedMemberships: Membership[] = [];
  readonly #revokedTokenHashes: string[] = [];

  queueNoticeAddedEvent(conversationId: ConversationId): void {
    this.#conversationsWithNotice.add(conversationId);
  }

  queueMemberChangedEvent(membership: Membership): void {
    this.#changedMemberships.push(membership);
  }

  queueTokenRevokedEvent(hash: string): void {
    this.#revokedTokenHashes.push(hash);
  }

  /** Publishes the events. Also called if the answer to the commit was lost: the changes may have been committed. */
  publish(bus: Bus): void {
    if (this.#revokedTokenHashes.length > 0) bus.publish('tokensRevoked', this.#revokedTokenHashes);
    if (this.#changedMemberships.length > 0) bus.publish('membersChanged', this.#changedMemberships);
    if (this.#conversationsWithNotice.size > 0)
      bus.publish('nonMessageChangesCommitted', [...this.#conversationsWithNotice]);
  }
}

/** Locks a conversation's head until the transaction ends. Throws `not_found`. */
export async function lockConversation(
  tx: Transaction,
  conversationAndActor: { conversationId: ConversationId; actorId: AccountId | null },
  events: PendingEvents,
): Promise<LockedGroup> {
  const { conversationId, actorId } = conversationAndActor;
  const head = await lockGroup(tx, conversationId);
  if (head === null) throw groupNotFound(conversationId);
  return {
    tx,
    conversationId,
    head,
    addNotice: async (kind, details = {}) => {
      events.queueNoticeAddedEvent(conversationId);
      await insertNotice(tx, { conversationId, kind, actorId, details });
    },
    queueMemberChangedEvent: (accountId) => events.queueMemberChangedEvent({ conversationId, accountId }),
    queueTokenRevokedEvent: (hash) => events.queueTokenRevokedEvent(hash),
  };
}

/**
 * Runs one transaction that changes conversations, and publishes its events after the commit, also if the answer to the
 * commit was lost.
 */
export async function withEventsAfterCommit<T>(
  { database, bus }: Pick<Services, 'database' | 'bus'>,
  work: (tx: Transaction, events: PendingEvents) => Promise<T>,
): Promise<T> {
  const events = new PendingEvents();
  try {
    const result = await database.general.transaction((tx) => work(tx, events));
    events.publish(bus);
    return result;
  } catch (error) {
    if (error instanceof CommitUnknownError) events.publish(bus);
    throw error;
  }
}

/**
 * Runs `work` on a group, under the lock of its head. The caller's role is checked again under the lock: a caller who
 * was removed meanwhile changes nothing, and gets `not_found` or `forbidden`. Throws what `work` throws.
 */
export async function withLockedGroup<T>(
  services: Services,
  request: { access: ConversationAccess; caller: Caller; requiredRole: 'member' | 'group-admin' | 'group-owner' },
  work: (group: LockedGroup & { readonly authority: Authority }) => Promise<T>,
): Promise<T> {
  const { access, caller, requiredRole } = request;
  const { conversationId, accountId } = access;
  return withEventsAfterCommit(services, async (tx, events) => {
    const group = await lockConversation(tx, { conversationId, actorId: accountId }, events);
    return work({ ...group, authority: await lockCallerAuthority(tx, { access, caller, requiredRole }) });
  });
}

const SUFFICIENT_ROLES: Readonly<Record<'member' | 'group-admin' | 'group-owner', readonly GroupRole[]>> = {
  member: ['owner', 'admin', 'member'],
  'group-admin': ['owner', 'admin'],
  'group-owner': ['owner'],
};

/**
 * The caller's authority in the group; a member's role is locked until the commit. Throws `not_found` and `forbidden`.
 */
export async function lockCallerAuthority(
  tx: Transaction,
  request: { access: ConversationAccess; caller: Caller; requiredRole: 'member' | 'group-admin' | 'group-owner' },
): Promise<Authority> {
  const { access, caller, requiredRole } = request;
  const { conversationId, accountId } = access;
  if (isAdministrator(caller)) return 'administrator';
  const role = accountId === null ? null : await lockGroupRole(tx, { conversationId, accountId });
  if (role === null) throw groupNotFound(conversationId);
  if (!SUFFICIENT_ROLES[requiredRole].includes(role)) throw new KlatchError('forbidden');
  return role;
}

/** The error for a group that does not exist, or that the caller may not see. */
export function groupNotFound(conversationId: ConversationId): KlatchError {
  return new KlatchError('not_found', { sentence: `There is no group ${conversationId}: look at the list of groups` });
}
