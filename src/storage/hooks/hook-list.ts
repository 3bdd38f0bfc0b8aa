import type { ChangeEventKind } from '../../model/change-event.ts';
import type { HookStateCriteria } from '../../model/hook.ts';
import type { HookFilter, HookFormat } from '../../model/hook-format.ts';
import type { AccountId, ConversationId, Rev, Seq } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';
import { hookColumns, hookJoins, type HookInfo, type HookOrder, type HookSignature } from './hooks.ts';

/** The side that removed the hook: a client of its group, by DELETE, or its target, by an answer 410. */
type RemovedBy = 'client' | 'target';

/** A hook in the list of the hooks of all groups. */
export interface ListedHook extends HookInfo {
  readonly conversationId: ConversationId;
  readonly format: HookFormat;
  readonly events: readonly ChangeEventKind[];
  readonly title: string;
  readonly description: string | null;
  readonly order: HookOrder;
  readonly removedAt: Date | null;
  readonly removedBy: RemovedBy | null;
}

/** All fields of a hook except its secrets. */
export interface HookDetails extends ListedHook, HookFilter {
  readonly batch: number;
  readonly signature: HookSignature;
  readonly oldSecretUntil: Date | null;
  readonly startAfterSeq: Seq;
  readonly cursor: Seq;
  /** Null in a hook that asks for no events. */
  readonly eventCursor: Rev | null;
  readonly lastSeq: Seq;
  readonly createdAt: Date;
}

/** Selects the hooks to list, in the order of their ids, beginning after the id `after`. */
export interface HookPageRequest {
  readonly after: number;
  readonly limit: number;
  readonly conversationId: ConversationId | null;
  /** Only hooks of groups in which this account is owner or admin; null: of all groups. */
  readonly manager: AccountId | null;
  /** True: hooks that were removed and whose rows still exist; false: hooks that were not removed. */
  readonly removed: boolean;
  /**
   * A filter by the hook's counters; null: none. A hook that has failed since before `longFailingBefore` counts as long
   * failing.
   */
  readonly stateCriteria: (HookStateCriteria & { readonly longFailingBefore: Date }) | null;
}

const MAX_LISTED_HOOKS = 1_001;

/**
 * Lists hooks of all groups or of one, in the order of their ids. The query cuts the page before it joins other tables.
 */
export async function listHooks(sql: Sql, page: HookPageRequest): Promise<ListedHook[]> {
  const { conversationId, manager } = page;
  return sql<ListedHook[]>`
    select ${hookColumns(sql)}, r.conversation_id as "conversationId", r.format, to_json(r.events) as events,
      c.title, r.description, r.ordering as "order", r.removed_at as "removedAt", r.removed_by as "removedBy"
    from (
      select * from ${manager === null ? sql`reverse_hook` : hooksOfManager(sql, manager)} r
      where r.id > ${page.after} and r.removed_at is ${page.removed ? sql`not null` : sql`null`}
        ${conversationId === null ? sql`` : sql`and r.conversation_id = ${conversationId}`}
        ${stateCriteriaSql(sql, page.stateCriteria)}
      order by r.id limit ${Math.min(page.limit, MAX_LISTED_HOOKS)}
    ) r ${hookJoins(sql)}
    cross join lateral (select c.title from conversation c where c.id = r.conversation_id limit 1) c
    order by r.id`;
}

/**
 * The hooks of the groups in which an account is owner or admin. The offset keeps PostgreSQL from reading all hooks by
 * their ids instead, which the order of the page suggests to it.
 */
function hooksOfManager(sql: Sql, manager: AccountId) {
  return sql`(
    select * from reverse_hook where conversation_id = any(array(
      select m.conversation_id from membership m where m.account_id = ${manager} and m.role in ('owner', 'admin')))
    offset 0)`;
}

function stateCriteriaSql(sql: Sql, stateCriteria: HookPageRequest['stateCriteria']) {
  if (stateCriteria === null) return sql``;
  const { paused, failedIfRelevant: failed, longFailingIfRelevant: longFailing, longFailingBefore } = stateCriteria;
  return sql`
    and (r.paused_at is not null) = ${paused}
    ${failed === null ? sql`` : sql`and (r.failures > 0) = ${failed}`}
    ${longFailing === null ? sql`` : sql`and coalesce(r.failing_since <= ${longFailingBefore}, false) = ${longFailing}`}`;
}

/** Finds a hook by its id alone, removed or not; null if there is none. */
export async function findHookDetails(sql: Sql | Transaction, id: number): Promise<HookDetails | null> {
  const [row] = await sql<HookDetails[]>`
    select ${hookColumns(sql)}, r.conversation_id as "conversationId", r.format, to_json(r.events) as events,
      r.event_cursor as "eventCursor", r.removed_at as "removedAt", r.removed_by as "removedBy", c.title, r.description, r.ordering as "order", r.batch, r.signature,
      to_json(r.skip) as skip, to_json(r.triggers) as triggers, r.max_age as "maxAgeS", r.old_secret_until as "oldSecretUntil", r.start_seq as "startAfterSeq", r.cursor,
      h.last_seq as "lastSeq", r.created_at as "createdAt"
    from reverse_hook r ${hookJoins(sql)} join conversation c on c.id = r.conversation_id
    where r.id = ${id}`;
  return row ?? null;
}
