import { deviceKinds, type DeviceKind } from '../../model/device.ts';
import type { AccountId, ConversationId, DeviceId, Seq } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';
import type { PushClaim } from './push-claims.ts';

/**
 * The outcome of a claimed push.
 * - `done`: the push was sent, or no longer has a recipient.
 * - `rejected`, `expired`: the push was given up, and the push log gets a row.
 * - `removed`: the device of the push is removed.
 * - `again`: the push failed and is retried after `waitMs`.
 * - `held`: like `again`, but the failure does not count as an attempt.
 */
export type PushDisposition =
  | { readonly verdict: 'done' }
  | { readonly verdict: 'rejected' | 'expired'; readonly category: string; readonly code: number | null }
  /** `waitMs` applies to a device that stays, since it was registered again meanwhile. */
  | { readonly verdict: 'removed'; readonly category: string; readonly code: number | null; readonly waitMs: number }
  | { readonly verdict: 'again' | 'held'; readonly waitMs: number };

/** A claim and its outcome. */
export type PushSettlement = PushDisposition & { readonly claim: PushClaim };

/**
 * Settles claims. It ignores pushes that were claimed again meanwhile, or are gone. A push that got more messages since
 * its claim covers only these from now on, and is due. Resolves with the removed devices; a device that was registered
 * again since the claim stays.
 */
export async function settlePushes(
  sql: Sql,
  settlements: readonly PushSettlement[],
  pushExpiresAfterMs: number,
): Promise<readonly DeviceId[]> {
  const done = settlements.filter(({ verdict }) => verdict === 'done').map(({ claim }) => claim);
  const areAllDoneDeleted = done.length === 0 || (await deleteDone(sql, done)) === done.length;
  const remaining = areAllDoneDeleted ? settlements.filter(({ verdict }) => verdict !== 'done') : settlements;
  return remaining.length === 0 ? [] : settleMixedInOneStatement(sql, remaining, pushExpiresAfterMs);
}

/**
 * Deletes those of the pushes that got no more messages since their claim, which are nearly all. Resolves with their
 * number.
 */
async function deleteDone(sql: Sql, done: readonly PushClaim[]): Promise<number> {
  // The rows are sorted, so that two statements cannot deadlock.
  const claims = done.toSorted((a, b) => a.deviceId - b.deviceId || a.conversationId - b.conversationId);
  const rows = await sql`
    delete from push_pending p
    using unnest(
      ${claims.map(({ deviceId }) => deviceId)}::bigint[], ${claims.map((each) => each.conversationId)}::bigint[],
      ${claims.map(({ claimNumber }) => claimNumber)}::bigint[], ${claims.map(({ lastSeq }) => lastSeq)}::bigint[]
    ) as g(device_id, conversation_id, claim_number, last_seq)
    where p.device_id = g.device_id and p.conversation_id = g.conversation_id and p.claim_number = g.claim_number
      and p.last_seq <= g.last_seq and (select set_config('synchronous_commit', 'off', true)) = 'off'`;
  return rows.count;
}

/** Settles all claims in one commit, whatever their outcomes. */
async function settleMixedInOneStatement(
  sql: Sql,
  settlements: readonly PushSettlement[],
  pushExpiresAfterMs: number,
): Promise<readonly DeviceId[]> {
  const claims = settlements.map(({ claim }) => claim);
  const rows = await sql<{ id: DeviceId }[]>`
    with given as (
      select * from unnest(
        ${claims.map(({ deviceId }) => deviceId)}::bigint[], ${claims.map((each) => each.conversationId)}::bigint[],
        ${claims.map(({ claimNumber }) => claimNumber)}::bigint[], ${claims.map(({ lastSeq }) => lastSeq)}::bigint[],
        ${claims.map(({ claimedAt }) => claimedAt)}::timestamptz[],
        ${settlements.map(({ verdict }) => verdict)}::text[],
        ${settlements.map((each) => ('category' in each ? each.category : null))}::text[],
        ${settlements.map((each) => ('category' in each ? each.code : null))}::int[],
        ${settlements.map((each) => ('waitMs' in each ? Math.round(each.waitMs) : null))}::bigint[]
      ) as g(device_id, conversation_id, claim_number, last_seq, claimed_at, verdict, category, code, wait_ms)
      where set_config('synchronous_commit', 'off', true) = 'off'
    ), held as (
      -- In one order, so that two statements cannot deadlock.
      select g.*, p.kind, p.last_seq as newest_seq
      from push_pending p
      join given g on g.device_id = p.device_id and g.conversation_id = p.conversation_id
        and g.claim_number = p.claim_number
      order by p.device_id, p.conversation_id for update of p
    ), over as (
      delete from push_pending p using held h
      where p.device_id = h.device_id and p.conversation_id = h.conversation_id
        and h.verdict in ('done', 'rejected', 'expired') and h.newest_seq <= h.last_seq
    ), grown as (
      update push_pending p
      set first_seq = h.last_seq + 1, attempts = 0, created_at = now(), next_at = now(), claimed_until = '-infinity'
      from held h where p.device_id = h.device_id and p.conversation_id = h.conversation_id
        and h.verdict in ('done', 'rejected', 'expired') and h.newest_seq > h.last_seq
    ), removed as (
      delete from device d using (
        select distinct on (device_id) device_id, claimed_at, category, code from given where verdict = 'removed'
        order by device_id, claimed_at
      ) g
      where d.id = g.device_id and d.last_seen_at < g.claimed_at + interval '1 millisecond'
      returning d.id, d.account_id, d.kind, g.category, g.code
    ), repeated as (
      -- Due when the push expires at the latest, so that the row is given up in time.
      update push_pending p
      set attempts = p.attempts + (h.verdict <> 'held')::int, claimed_until = '-infinity', next_at = least(
        now() + h.wait_ms * interval '1 millisecond',
        greatest(p.created_at + ${pushExpiresAfterMs} * interval '1 millisecond', now() + interval '1 second'))
      from held h where p.device_id = h.device_id and p.conversation_id = h.conversation_id
        and h.verdict in ('again', 'held', 'removed') and h.device_id not in (select id from removed)
    ), logged as (
      insert into push_log (account_id, kind, event, category, code)
      select account_id, kind, 'removed', category, code from removed
      union all
      select d.account_id, h.kind, h.verdict, h.category, h.code from held h join device d on d.id = h.device_id
      where h.verdict in ('rejected', 'expired')
    )
    select id from removed`;
  return rows.map(({ id }) => id);
}

/** An account's read position in a conversation. */
export interface ReadReceipt {
  readonly conversationId: ConversationId;
  readonly accountId: AccountId;
  readonly seq: Seq;
}

/** Deletes pending pushes whose messages the accounts have read. The send step checks the remaining pushes again. */
export async function cancelReadPushes(sql: Sql, positions: readonly ReadReceipt[]): Promise<number> {
  const rows = await sql`
    delete from push_pending p using (
      select w.device_id, w.conversation_id
      from unnest(
        ${positions.map((each) => each.conversationId)}::bigint[], ${positions.map((each) => each.accountId)}::bigint[],
        ${positions.map(({ seq }) => seq)}::bigint[]
      ) as r(conversation_id, account_id, seq)
      join device d on d.account_id = r.account_id
      join push_pending w on w.device_id = d.id and w.conversation_id = r.conversation_id and w.last_seq <= r.seq
      where set_config('synchronous_commit', 'off', true) = 'off'
      order by w.device_id, w.conversation_id for update of w
    ) read
    where p.device_id = read.device_id and p.conversation_id = read.conversation_id`;
  return rows.count;
}

/** The number of expired pushes of each vendor. */
type ExpiredPushCounts = readonly { readonly kind: DeviceKind; readonly count: number }[];

/**
 * Gives up due pushes whose newest message is older than `maxAgeMs`, at most `limit` of them, and adds rows to the push
 * log. That includes pushes to a vendor that is unavailable, or no longer configured. A push with a younger message
 * stays.
 */
export async function expirePushes(
  sql: Sql,
  { maxAgeMs, limit }: { maxAgeMs: number; limit: number },
): Promise<ExpiredPushCounts> {
  return sql<{ kind: DeviceKind; count: number }[]>`
    with old as (
      select p.device_id, p.conversation_id, p.kind, (
        select m.sent_at from message m where m.conversation_id = p.conversation_id and m.seq = p.last_seq
      ) as newest_at
      from push_pending p
      where p.kind = any(${[...deviceKinds]}::text[]) and p.next_at <= now() and p.claimed_until <= now()
        and p.created_at <= now() - ${maxAgeMs} * interval '1 millisecond'
      order by p.device_id, p.conversation_id limit ${limit} for update of p skip locked
    ), renewed as (
      update push_pending p set created_at = o.newest_at
      from old o where p.device_id = o.device_id and p.conversation_id = o.conversation_id
        and o.newest_at > now() - ${maxAgeMs} * interval '1 millisecond'
    ), gone as (
      delete from push_pending p using old o
      where p.device_id = o.device_id and p.conversation_id = o.conversation_id
        and (o.newest_at is null or o.newest_at <= now() - ${maxAgeMs} * interval '1 millisecond')
      returning p.device_id, p.kind
    ), logged as (
      insert into push_log (account_id, kind, event, category)
      select d.account_id, g.kind, 'expired', 'expired' from gone g join device d on d.id = g.device_id
    )
    select kind, count(*)::int as count from gone group by kind`;
}
