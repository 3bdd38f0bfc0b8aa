import { KlatchError } from '../../errors.ts';
import type { AccountId, ConversationId, HookId } from '../../model/ids.ts';
import type { GroupRole } from '../../model/roles.ts';
import type { Sql } from '../../storage/db/connection.ts';
import { findConversationAndRole, type ConversationAndRole } from '../../storage/groups/members.ts';
import { resolveGroup, resolveHookEvenRemoved } from './access.ts';
import { isAdministrator, type Caller } from './caller.ts';
import { translateLostRead } from './database-errors.ts';
import type { Services } from './services.ts';

/** The kind of an operation's target. The input of the operation names the target in a field of the same name. */
export type TargetKind = 'conversation' | 'group' | 'hook';

/** A conversation that the caller may access. Only `authorize` gives one to an operation. */
export interface ConversationAccess {
  readonly conversationId: ConversationId;
  readonly kind: 'group' | 'private';
  /** The caller's role in the conversation; `administrator`: an administrator of the installation who is no member. */
  readonly role: GroupRole | 'administrator';
  /** The caller's account; null: the command line on the server's machine. */
  readonly accountId: AccountId | null;
  readonly archived: boolean;
  /** The reverse webhook that the input names, which may be a removed one; null: the operation is not about a hook. */
  readonly hookId: HookId | null;
}

const ROLE_RANKS = { member: 1, admin: 2, owner: 3, administrator: 4 } as const;
const REQUIRED_RANKS = { member: 1, 'group-admin': 2, 'group-owner': 3 } as const;

/**
 * Finds the target that the input names, and the caller's role in its conversation. Throws:
 * - `not_found` if the target does not exist, or the caller may not know of it
 * - `forbidden` for a member whose role is not sufficient
 * - `not_a_group` if the operation is about groups or hooks, and the conversation is private
 * - `invalid_input` for a title that names several groups, or that does not come from the command line
 */
export async function authorize(
  services: Services,
  caller: Caller,
  request: { on: TargetKind; requiredRole: string; input: object },
): Promise<ConversationAccess> {
  const { on, input } = request;
  const { conversationId, hookId } = await resolveTargetIds(services, caller, { on, input });
  const accountId = caller.kind === 'account' ? caller.accountId : null;
  const conversationAndRole = await translateLostRead(
    services.database.general.run((sql) => findConversationAndRole(sql, { conversationId, accountId })),
  );
  return { conversationId, accountId, hookId, ...requireRoleInFoundConversation(conversationAndRole, caller, request) };
}

/**
 * Reads data that only members with a role may see, and checks the role again after the read. Between `authorize` and
 * the read, seconds may pass in which the caller waits for a connection. A caller who was removed in this time must not
 * see what was written since. Throws what `authorize` throws.
 */
export function readThenRecheckRole<T>(
  { database }: Services,
  request: {
    access: ConversationAccess;
    caller: Caller;
    on: 'conversation' | 'group';
    requiredRole: keyof typeof REQUIRED_RANKS;
  },
  read: (sql: Sql) => Promise<T>,
): Promise<T> {
  const { access, caller, on, requiredRole } = request;
  const { conversationId, accountId } = access;
  return translateLostRead(
    database.general.run(async (sql) => {
      const found = await read(sql);
      requireRoleInFoundConversation(await findConversationAndRole(sql, { conversationId, accountId }), caller, {
        on,
        requiredRole,
        input: { [on]: conversationId },
      });
      return found;
    }),
  );
}

/** Checks the caller's role in the row that was read. Throws `not_found`, `forbidden` and `not_a_group`. */
function requireRoleInFoundConversation(
  conversationAndRole: ConversationAndRole | null,
  caller: Caller,
  { on, requiredRole, input }: { on: TargetKind; requiredRole: string; input: object },
): Pick<ConversationAccess, 'kind' | 'role' | 'archived'> {
  const notFound = (): KlatchError => new KlatchError('not_found', { sentence: NOT_FOUND_SENTENCES[on](input) });
  if (conversationAndRole === null) throw notFound();
  const { kind, archived } = conversationAndRole;
  // Administrators who are no members may manage groups, but neither read nor write messages. Only the command line
  // may.
  const isOverride = isAdministrator(caller) && (caller.kind === 'system' || on !== 'conversation');
  const role = conversationAndRole.role ?? (isOverride && kind === 'group' ? 'administrator' : null);
  if (role === null) throw notFound();
  if (kind === 'private' && on !== 'conversation') throw new KlatchError('not_a_group');
  const rank = isOverride ? ROLE_RANKS.administrator : ROLE_RANKS[role];
  const requiredRank = REQUIRED_RANKS[requiredRole as keyof typeof REQUIRED_RANKS];
  if (rank < requiredRank) {
    const sentence =
      requiredRank === REQUIRED_RANKS['group-owner']
        ? 'Only the owner of the group may do this: ask the owner'
        : 'Only owners and admins of the group may do this: ask one of them';
    throw new KlatchError('forbidden', { sentence });
  }
  return { kind, role, archived };
}

const NOT_FOUND_SENTENCES: Readonly<Record<TargetKind, (input: object) => string>> = {
  conversation: (input) =>
    `You are in no conversation ${referenceOf(input, 'conversation')}: look at the list of yours`,
  group: (input) => `There is no group ${referenceOf(input, 'group')}: look at the list of groups`,
  hook: (input) => `There is no reverse webhook ${referenceOf(input, 'hook')}: look at the list of them`,
};

function referenceOf(input: object, key: TargetKind): string {
  return String((input as Record<string, unknown>)[key]);
}

async function resolveTargetIds(
  { database }: Services,
  caller: Caller,
  { on, input }: { on: TargetKind; input: object },
): Promise<{ conversationId: ConversationId; hookId: HookId | null }> {
  const reference = (input as Record<TargetKind, string | number>)[on];
  if (on === 'hook') {
    const hook = await translateLostRead(database.general.run((sql) => resolveHookEvenRemoved(sql, Number(reference))));
    return { conversationId: hook.conversationId, hookId: hook.id };
  }
  // Only the command line may name a group by its title: others could find out which groups exist.
  if (typeof reference === 'string' && caller.kind !== 'system') {
    throw new KlatchError('invalid_input', { sentence: `${on}: give the number of the ${on}` });
  }
  const isNumber = typeof reference === 'number';
  const conversationId = isNumber ? (reference as ConversationId) : await resolveGroup(database.general, reference);
  return { conversationId, hookId: null };
}

/** The error for a caller who passed `authorize`, and was no member any more when a later statement checked it. */
export function notAMember(conversationId: ConversationId): KlatchError {
  const sentence = `You are in no conversation ${conversationId}: look at the list of yours`;
  return new KlatchError('not_found', { sentence });
}

/** Throws `group_archived` if the conversation is archived, so that nothing may be written. */
export function requireNotArchived({ archived }: Pick<ConversationAccess, 'archived'>): void {
  if (archived) throw new KlatchError('group_archived');
}
