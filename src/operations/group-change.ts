import type { Bus, Membership } from '../bus/bus.ts';
import { KlatchError } from '../errors.ts';
import type { AccountId, ConversationId } from '../model/ids.ts';
import type { GroupRole } from '../model/roles.ts';
import type { Transaction } from '../storage/connection.ts';
import { DatabaseLostError } from '../storage/database-error.ts';
import { lockGroup, type LockedHead } from '../storage/groups.ts';
import { holdGroupRole } from '../storage/members.ts';
import { insertNotice } from '../storage/notices.ts';
import { isAdministrator, type Caller } from './caller.ts';
import type { Place } from './place.ts';
import type { Services } from './services.ts';

/** What a notice tells beside its kind: never a secret, a token, or the path of a URL. */
export type NoticeDetails = Readonly<Record<string, string | number | boolean | null>>;

/** A group beneath its head's lock: until the commit nobody else numbers, counts or changes anything of it. */
export interface LockedGroup {
  readonly tx: Transaction;
  readonly conversationId: ConversationId;
  readonly head: LockedHead;
  /** Tells the members, as a change of the group by the one who does it. */
  notice(kind: string, details?: NoticeDetails): Promise<void>;
  /** Tells everybody, after the commit, that what they remember of this membership is old. */
  memberChanged(accountId: AccountId): void;
  /** Tells every node, after the commit, that the integration token with this hash works no longer. */
  tokenRevoked(hash: string): void;
}

/** What the caller may do in the group that is changed. */
export type Authority = GroupRole | 'administrator';

/** What a transaction changes of conversations, for those who have to hear of it once it is committed. */
export class ConversationNews {
  readonly #noticed = new Set<ConversationId>();
  readonly #members: Membership[] = [];
  readonly #tokens: string[] = [];

  noticed(conversationId: ConversationId): void {
    this.#noticed.add(conversationId);
  }

  memberChanged(membership: Membership): void {
    this.#members.push(membership);
  }

  tokenRevoked(hash: string): void {
    this.#tokens.push(hash);
  }

  /** To be called behind the commit, and where its answer was lost: a change whose answer was lost may be one. */
  publish(bus: Bus): void {
    if (this.#tokens.length > 0) bus.publish('tokensRevoked', this.#tokens);
    if (this.#members.length > 0) bus.publish('membersChanged', this.#members);
    if (this.#noticed.size > 0) bus.publish('revised', [...this.#noticed]);
  }
}

/** Locks a conversation's head until the transaction ends. Throws `not_found`. */
export async function lockConversation(
  tx: Transaction,
  where: { conversationId: ConversationId; actorId: AccountId | null },
  news: ConversationNews,
): Promise<LockedGroup> {
  const { conversationId, actorId } = where;
  const head = await lockGroup(tx, conversationId);
  if (head === null) throw absentGroup(conversationId);
  return {
    tx,
    conversationId,
    head,
    notice: async (kind, details = {}) => {
      news.noticed(conversationId);
      await insertNotice(tx, { conversationId, kind, actorId, details });
    },
    memberChanged: (accountId) => news.memberChanged({ conversationId, accountId }),
    tokenRevoked: (hash) => news.tokenRevoked(hash),
  };
}

/** One transaction that changes conversations; once it is committed, everybody is told. */
export async function committing<T>(
  { database, bus }: Pick<Services, 'database' | 'bus'>,
  work: (tx: Transaction, news: ConversationNews) => Promise<T>,
): Promise<T> {
  const news = new ConversationNews();
  try {
    const result = await database.general.transaction((tx) => work(tx, news));
    news.publish(bus);
    return result;
  } catch (error) {
    if (error instanceof DatabaseLostError) news.publish(bus);
    throw error;
  }
}

/**
 * Changes the group that an operation was given, beneath its head's lock. There the caller's role is looked up once more:
 * who was removed in between changes nothing, and gets `not_found` or `forbidden`. Throws what `work` throws.
 */
export async function changeGroup<T>(
  services: Services,
  asked: { place: Place; caller: Caller; who: 'member' | 'group-admin' | 'group-owner' },
  work: (group: LockedGroup & { readonly authority: Authority }) => Promise<T>,
): Promise<T> {
  const { place, caller, who } = asked;
  const { conversationId, accountId } = place;
  return committing(services, async (tx, news) => {
    const group = await lockConversation(tx, { conversationId, actorId: accountId }, news);
    return work({ ...group, authority: await holdAuthority(tx, { place, caller, who }) });
  });
}

const SUFFICIENT: Readonly<Record<'member' | 'group-admin' | 'group-owner', readonly GroupRole[]>> = {
  member: ['owner', 'admin', 'member'],
  'group-admin': ['owner', 'admin'],
  'group-owner': ['owner'],
};

/** What the caller may do in the place at this moment, and until the commit. Throws `not_found` and `forbidden`. */
export async function holdAuthority(
  tx: Transaction,
  asked: { place: Place; caller: Caller; who: 'member' | 'group-admin' | 'group-owner' },
): Promise<Authority> {
  const { place, caller, who } = asked;
  const { conversationId, accountId } = place;
  if (isAdministrator(caller)) return 'administrator';
  const role = accountId === null ? null : await holdGroupRole(tx, { conversationId, accountId });
  if (role === null) throw absentGroup(conversationId);
  if (!SUFFICIENT[who].includes(role)) throw new KlatchError('forbidden');
  return role;
}

/** What is said of a group that is not there, or not for the caller. */
export function absentGroup(conversationId: ConversationId): KlatchError {
  return new KlatchError('not_found', { sentence: `There is no group ${conversationId}` });
}
