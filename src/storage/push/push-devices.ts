import type { DeviceKind } from '../../model/device.ts';
import type { AccountId, DeviceId } from '../../model/ids.ts';
import type { Sql } from '../db/connection.ts';

/** A device whose session is valid, with the token that its vendor gave it (sealed). */
export interface SignedInDevice {
  readonly id: DeviceId;
  readonly kind: DeviceKind;
  readonly label: string | null;
  readonly app: string | null;
  readonly tokenSealed: string;
  /** The time at which the device was read, by the database's clock. */
  readonly deviceQueriedAt: Date;
}

/** Devices of an account whose sessions are valid, sorted by id. */
export async function listSignedInDevices(sql: Sql, accountId: AccountId, limit: number): Promise<SignedInDevice[]> {
  return sql<SignedInDevice[]>`
    select d.id, d.kind, d.label, d.app, d.token_sealed as "tokenSealed", now() as "deviceQueriedAt"
    from device d join session s on s.id = d.session_id and (s.expires_at is null or s.expires_at > now())
    where d.account_id = ${accountId} order by d.id limit ${limit}`;
}

/**
 * Removes a device that its vendor has unregistered, and adds a row to the push log. False: the device is gone already,
 * or was registered again since `deviceQueriedAt`.
 */
export async function removeUnregisteredDevice(
  sql: Sql,
  device: Pick<SignedInDevice, 'id' | 'deviceQueriedAt'>,
  reason: { category: string; code: number | null },
): Promise<boolean> {
  const rows = await sql`
    with removed as (
      delete from device
      where id = ${device.id} and last_seen_at < ${device.deviceQueriedAt}::timestamptz + interval '1 millisecond'
      returning account_id, kind
    )
    insert into push_log (account_id, kind, event, category, code)
    select account_id, kind, 'removed', ${reason.category}, ${reason.code} from removed`;
  return rows.count > 0;
}

/** The pending pushes of a vendor. */
export interface PendingPushCount {
  readonly kind: DeviceKind;
  readonly pending: number;
  readonly due: number;
  /** The age of the vendor's oldest pending push, in ms. */
  readonly oldestAgeMs: number;
}

/** Pending pushes by vendor; vendors without any are left out. */
export async function countPendingPushes(sql: Sql): Promise<PendingPushCount[]> {
  return sql<PendingPushCount[]>`
    select kind, count(*)::int as pending, (count(*) filter (where next_at <= now() and claimed_until <= now()))::int as due,
      greatest(ceil(extract(epoch from now() - min(created_at)) * 1000), 0)::bigint as "oldestAgeMs"
    from push_pending group by kind`;
}

/** Deletes at most `limit` of the oldest rows of the push log that are older than `before`; returns their number. */
export async function deleteOldPushLog(sql: Sql, before: Date, limit: number): Promise<number> {
  const rows = await sql`
    delete from push_log where id in (
      select id from push_log where at < ${before} order by at limit ${limit}) returning 1`;
  return rows.length;
}
