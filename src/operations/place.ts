import { KlatchError } from '../errors.ts';
import type { AccountId, ConversationId, HookId } from '../model/ids.ts';
import type { GroupRole } from '../model/roles.ts';
import type { Sql } from '../storage/connection.ts';
import { findStanding, type Standing } from '../storage/members.ts';
import { resolveGroup, resolveHook } from './access.ts';
import { isAdministrator, type Caller } from './caller.ts';
import { reading } from './database-errors.ts';
import type { Services } from './services.ts';

/** What an operation is about, as the key of its input names it. */
export type PlaceKind = 'conversation' | 'group' | 'hook';

/** A conversation that the caller may be in: the only way of an operation to one. */
export interface Place {
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

const RANKS = { member: 1, admin: 2, owner: 3, administrator: 4 } as const;
const NEEDED = { member: 1, 'group-admin': 2, 'group-owner': 3 } as const;

/**
 * Finds what the input names and what the caller may do there. Throws `not_found` where the caller is no member, whether
 * it exists or not; `forbidden` for members without the role; `groups_only` for what a private conversation cannot have.
 */
export async function findPlace(
  services: Services,
  caller: Caller,
  asked: { on: PlaceKind; who: string; input: object },
): Promise<Place> {
  const { on, input } = asked;
  const { conversationId, hookId } = await resolvePlace(services, caller, { on, input });
  const accountId = caller.kind === 'account' ? caller.accountId : null;
  const standing = await reading(
    services.database.general.run((sql) => findStanding(sql, { conversationId, accountId })),
  );
  return { conversationId, accountId, hookId, ...judge(standing, caller, asked) };
}

/**
 * Reads what only who has a role in the place may see, and looks at the role once more behind it: where connections are
 * rare, seconds lie between `findPlace` and the reading, and what is written after somebody was removed is not for them.
 * Throws what `findPlace` throws.
 */
export function readAs<T>(
  { database }: Services,
  asked: { place: Place; caller: Caller; on: 'conversation' | 'group'; who: keyof typeof NEEDED },
  read: (sql: Sql) => Promise<T>,
): Promise<T> {
  const { place, caller, on, who } = asked;
  const { conversationId, accountId } = place;
  return reading(
    database.general.run(async (sql) => {
      const found = await read(sql);
      judge(await findStanding(sql, { conversationId, accountId }), caller, {
        on,
        who,
        input: { [on]: conversationId },
      });
      return found;
    }),
  );
}

/** What the caller is there, by what the database says of them; throws what `findPlace` throws. */
function judge(
  standing: Standing | null,
  caller: Caller,
  { on, who, input }: { on: PlaceKind; who: string; input: object },
): Pick<Place, 'kind' | 'role' | 'archived'> {
  const absent = (): KlatchError => new KlatchError('not_found', { sentence: ABSENT[on](input) });
  if (standing === null) throw absent();
  const { kind, archived } = standing;
  // Administrators have power over groups, and none over what is said: without membership they read and write nothing.
  const overrules = isAdministrator(caller) && (caller.kind === 'system' || on !== 'conversation');
  const role = standing.role ?? (overrules && kind === 'group' ? 'administrator' : null);
  if (role === null) throw absent();
  if (kind === 'private' && on !== 'conversation') throw new KlatchError('groups_only');
  const rank = overrules ? RANKS.administrator : RANKS[role];
  const needed = NEEDED[who as keyof typeof NEEDED];
  if (rank < needed) {
    const sentence = `Only ${needed === NEEDED['group-owner'] ? 'the owner' : 'owners and admins'} of the group may do this`;
    throw new KlatchError('forbidden', { sentence });
  }
  return { kind, role, archived };
}

const ABSENT: Readonly<Record<PlaceKind, (input: object) => string>> = {
  conversation: (input) => `You are in no conversation ${nameOf(input, 'conversation')}`,
  group: (input) => `There is no group ${nameOf(input, 'group')}`,
  hook: (input) => `There is no reverse webhook ${nameOf(input, 'hook')}`,
};

function nameOf(input: object, key: PlaceKind): string {
  return String((input as Record<string, unknown>)[key]);
}

async function resolvePlace(
  { database }: Services,
  caller: Caller,
  { on, input }: { on: PlaceKind; input: object },
): Promise<{ conversationId: ConversationId; hookId: HookId | null }> {
  const reference = (input as Record<PlaceKind, string | number>)[on];
  if (on === 'hook') {
    const hook = await reading(database.general.run((sql) => resolveHook(sql, Number(reference))));
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
