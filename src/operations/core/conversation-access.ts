import { KlatchError } from '../../errors.ts';
import type { AccountId, ConversationId, HookId } from '../../model/ids.ts';
import type { GroupRole } from '../../model/roles.ts';
import type { Sql } from '../../storage/db/connection.ts';
import { findConversationAndRole, type ConversationAndRole } from '../../storage/groups/members.ts';
import { resolveGroup, resolveHookEvenRemoved } from './access.ts';
import { isAdministrator, type Caller } from './caller.ts';
import { translateLostRead } from './database-errors.ts';
import type { Services } from './services.ts';

/** What an operation is about, as the key of its input names it. */
export type TargetKind = 'conversation' | 'group' | 'hook';

/** A conversation that the caller may be in: the only way of an operation to one. */
export interface ConversationAccess {
  readonly conversationId: ConversationId;
  readonly kind: 'group' | 'private';
  /** What the caller may do in it; `administrator`: not as a member, but as the installation's administrator. */
  readonly role: GroupRole | 'administrator';
  /** Null for the administrator's command line. */
  readonly accountId: AccountId | null;
  readonly archived: boolean;
  /** The reverse webhook that the input names, a removed one too; null where it names none. */
  readonly hookId: HookId | null;
}

const ROLE_RANKS = { member: 1, admin: 2, owner: 3, administrator: 4 } as const;
const REQUIRED_RANKS = { member: 1, 'group-admin': 2, 'group-owner': 3 } as const;

/**
 * Finds what the input names and what the caller may do there. Throws `not_found` where the caller is no member, whether
 * it exists or not; `forbidden` for members without the role; `not_a_group` for what a private conversation cannot have.
 */
export async function authorize(
  services: Services,
  caller: Caller,
  request: { on: TargetKind; requiredRole: string; input: object },
): Promise<ConversationAccess> {
  const { on, input } = request;
  const { conversationId, hookId } = await resolveTargetIds(services, caller, { on, input });
  const accountId = caller.kind === 'account' ? caller.accountId : null;
  const status = await translateLostRead(
    services.database.general.run((sql) => findConversationAndRole(sql, { conversationId, accountId })),
  );
  return { conversationId, accountId, hookId, ...requireRoleInFoundConversation(status, caller, request) };
}

/**
 * Reads what only who has a role in the place may see, and looks at the role once more behind it: where connections are
 * rare, seconds lie between `authorize` and the reading, and what is written after somebody was removed is not for them.
 * Throws what `authorize` throws.
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

/** What the caller is there, by what the database says of them; throws what `authorize` throws. */
function requireRoleInFoundConversation(
  status: ConversationAndRole | null,
  caller: Caller,
  { on, requiredRole, input }: { on: TargetKind; requiredRole: string; input: object },
): Pick<ConversationAccess, 'kind' | 'role' | 'archived'> {
  const notFound = (): KlatchError => new KlatchError('not_found', { sentence: NOT_FOUND_SENTENCES[on](input) });
  if (status === null) throw notFound();
  const { kind, archived } = status;
  // Administrators have power over groups, and none over what is said: without membership they read and write nothing.
  const isOverride = isAdministrator(caller) && (caller.kind === 'system' || on !== 'conversation');
  const role = status.role ?? (isOverride && kind === 'group' ? 'administrator' : null);
  if (role === null) throw notFound();
  if (kind === 'private' && on !== 'conversation') throw new KlatchError('not_a_group');
  const rank = isOverride ? ROLE_RANKS.administrator : ROLE_RANKS[role];
  const required = REQUIRED_RANKS[requiredRole as keyof typeof REQUIRED_RANKS];
  if (rank < required) {
    const sentence = `Only ${required === REQUIRED_RANKS['group-owner'] ? 'the owner' : 'owners and admins'} of the group may do this`;
    throw new KlatchError('forbidden', { sentence });
  }
  return { kind, role, archived };
}

const NOT_FOUND_SENTENCES: Readonly<Record<TargetKind, (input: object) => string>> = {
  conversation: (input) => `You are in no conversation ${referenceOf(input, 'conversation')}`,
  group: (input) => `There is no group ${referenceOf(input, 'group')}`,
  hook: (input) => `There is no reverse webhook ${referenceOf(input, 'hook')}`,
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
  // Titles are the administrator's: to others they would tell which groups there are.
  if (typeof reference === 'string' && caller.kind !== 'system') {
    throw new KlatchError('invalid_input', { sentence: `${on}: give the number of the ${on}` });
  }
  const isNumber = typeof reference === 'number';
  const conversationId = isNumber ? (reference as ConversationId) : await resolveGroup(database.general, reference);
  return { conversationId, hookId: null };
}

/** For who is no member any more, when a statement finds that out. */
export function notAMember(conversationId: ConversationId): KlatchError {
  return new KlatchError('not_found', { sentence: `You are in no conversation ${conversationId}` });
}

/** Throws `group_archived` where nothing may be written any more. */
export function requireNotArchived({ archived }: Pick<ConversationAccess, 'archived'>): void {
  if (archived) throw new KlatchError('group_archived');
}
