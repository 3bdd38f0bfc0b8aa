import type { DeviceKind } from '../../model/device.ts';
import type { AccountId, DeviceId, SessionOrTokenId } from '../../model/ids.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** A device as its account sees it, without the vendor's token. */
export interface Device {
  readonly id: DeviceId;
  readonly kind: DeviceKind;
  /** The vendor's name of the app; null: the first app of the configuration. */
  readonly app: string | null;
  readonly label: string | null;
  /** The session that registered the device last. The device is removed with that session. */
  readonly sessionId: SessionOrTokenId;
  readonly createdAt: Date;
  /** The time of the device's last registration. */
  readonly lastSeenAt: Date;
}

export interface NewDevice extends Pick<Device, 'kind' | 'app' | 'label' | 'sessionId'> {
  readonly accountId: AccountId;
  /** The SHA-256, in hexadecimal digits, of the token that the vendor gave to the device. */
  readonly tokenHash: string;
  readonly tokenSealed: string;
}

const MAX_LISTED = 1_001;

/**
 * Registers a device, or renews its registration. If another account has the device, that account's row and pending
 * pushes for it are deleted: the phone's new user must not get the previous user's pushes. Null: a concurrent call
 * registered the device for another account, and a retry finds its row.
 */
export async function upsertDeviceUnlessRaced(tx: Transaction, device: NewDevice): Promise<Device | null> {
  const { accountId, sessionId, kind, tokenHash, tokenSealed, app, label } = device;
  await tx`delete from device where kind = ${kind} and token_hash = ${tokenHash} and account_id <> ${accountId}`;
  const [row] = await tx<Device[]>`
    insert into device as d (account_id, session_id, kind, token_hash, token_sealed, app, label)
    values (${accountId}, ${sessionId}, ${kind}, ${tokenHash}, ${tokenSealed}, ${app}, ${label})
    on conflict (kind, token_hash) do update
      set session_id = excluded.session_id, token_sealed = excluded.token_sealed, app = excluded.app,
        label = excluded.label, last_seen_at = now()
      where d.account_id = excluded.account_id
    returning id, kind, app, label, session_id as "sessionId", created_at as "createdAt", last_seen_at as "lastSeenAt"`;
  return row ?? null;
}

/** Removes the devices of an account except the `keep` registered last; the caller holds the account's lock. */
export async function deleteLeastRecentlyRegisteredDevices(
  tx: Transaction,
  accountId: AccountId,
  keep: number,
): Promise<void> {
  await tx`
    delete from device where id in (
      select id from device where account_id = ${accountId} order by last_seen_at desc, id desc offset ${keep})`;
}

/** Devices of an account, sorted by id. */
export async function listDevices(
  sql: Sql,
  { accountId, after, limit }: { accountId: AccountId; after: number; limit: number },
): Promise<Device[]> {
  return sql<Device[]>`
    select id, kind, app, label, session_id as "sessionId", created_at as "createdAt", last_seen_at as "lastSeenAt"
    from device where account_id = ${accountId} and id > ${after}
    order by id limit ${Math.min(limit, MAX_LISTED)}`;
}

/** Removes a device of an account, with its pending pushes; false when the account has no such device. */
export async function deleteDevice(sql: Sql, accountId: AccountId, id: number): Promise<boolean> {
  const rows = await sql`delete from device where id = ${id} and account_id = ${accountId} returning id`;
  return rows.length > 0;
}
