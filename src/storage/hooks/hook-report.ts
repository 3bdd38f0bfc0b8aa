import type { ConversationId, HookId } from '../../model/ids.ts';
import type { ConnectionTarget, Transaction } from '../db/connection.ts';
import { withReadOnlyTransaction } from '../db/read-only.ts';

/** The report counts at most this many removed hooks. */
export const MAX_COUNTED_REMOVED = 1_000;

/** A host that hooks send to: the authority of their URLs, without the path. */
export interface HookHost {
  /** `host`, or `host:port`; IPv6 addresses in brackets. */
  readonly authority: string;
  readonly hooks: number;
  /** The lowest ids of the hooks that send to this host, at most five. */
  readonly ids: readonly HookId[];
}

/** The hosts of all hooks that are not removed, those with the most hooks first. */
async function listHookHosts(tx: Transaction, limit: number): Promise<HookHost[]> {
  // Registration normalises the URL: a slash follows the authority, which has no credentials.
  return tx<HookHost[]>`
    select split_part(url, '/', 3) as authority, count(*)::int as hooks, to_json((array_agg(id order by id))[1:5]) as ids
    from reverse_hook where removed_at is null
    group by 1 order by 2 desc, 1 limit ${limit}`;
}

/** A hook whose last attempt failed. */
export interface FailingHook {
  readonly id: HookId;
  readonly conversationId: ConversationId;
  readonly authority: string;
  readonly failingSince: Date;
  readonly category: string | null;
  readonly code: number | null;
}

/** Failing hooks that are not paused: their total, and those that have failed for longest. */
async function listFailingHooks(tx: Transaction, limit: number): Promise<{ count: number; hooks: FailingHook[] }> {
  const rows = await tx<(FailingHook & { count: number })[]>`
    select id, conversation_id as "conversationId", split_part(url, '/', 3) as authority,
      failing_since as "failingSince", last_error_category as category, last_error_code as code,
      count(*) over ()::int as count
    from reverse_hook
    where removed_at is null and paused_at is null and failures > 0 and failing_since is not null
    order by failing_since, id limit ${limit}`;
  return { count: rows[0]?.count ?? 0, hooks: rows };
}

/** The number of hooks whose deliveries are signed with the server's keys. */
async function countKeySignedHooks(tx: Transaction): Promise<number> {
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count from reverse_hook where removed_at is null and signature in ('v1a', 'both')`;
  return row!.count;
}

/**
 * The number of hooks that a 410 of their target removed in the last `days` days, at most `MAX_COUNTED_REMOVED`; an
 * index covers removed hooks.
 */
async function countHooksRemovedByTarget(tx: Transaction, days: number): Promise<number> {
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count from (
      select from reverse_hook
      where removed_at is not null and removed_at > now() - make_interval(days => ${days}) and removed_by = 'target'
      limit ${MAX_COUNTED_REMOVED}) removed`;
  return row!.count;
}

/** The hook part of a report about the installation. */
export interface HookHostsAndFailuresReport {
  readonly hosts: readonly HookHost[];
  readonly failing: { readonly count: number; readonly hooks: readonly FailingHook[] };
  readonly keySignedHooks: number;
  /**
   * The number of hooks that a 410 of their target removed in the last `removedDays` days; at most
   * `MAX_COUNTED_REMOVED`.
   */
  readonly removedByTarget: number;
}

/** Reads the report over a connection of its own, in a read-only transaction. */
export async function reportHooks(
  target: ConnectionTarget,
  bounds: { hosts: number; failing: number; removedDays: number; timeoutMs: number },
): Promise<HookHostsAndFailuresReport> {
  return withReadOnlyTransaction(target, bounds.timeoutMs, async (tx) => ({
    hosts: await listHookHosts(tx, bounds.hosts),
    failing: await listFailingHooks(tx, bounds.failing),
    keySignedHooks: await countKeySignedHooks(tx),
    removedByTarget: await countHooksRemovedByTarget(tx, bounds.removedDays),
  }));
}
