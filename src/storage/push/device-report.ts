import type { DeviceKind } from '../../model/device.ts';
import type { ConnectionTarget, Sql, Transaction } from '../db/connection.ts';
import { readOnly } from '../db/read-only.ts';

/** How many devices there are of one app. */
export interface DeviceCount {
  readonly kind: DeviceKind;
  /** Google's project, Apple's bundle; null: the first one of the configuration. */
  readonly app: string | null;
  readonly devices: number;
}

/** Something that became of a device, or of what it was to be told, and was no success. */
export interface PushFailureRecord {
  readonly at: Date;
  /** Whose device. */
  readonly nick: string;
  readonly kind: DeviceKind;
  readonly event: 'removed' | 'expired' | 'rejected';
  readonly category: string;
  readonly code: number | null;
}

/** Apps that are told apart; devices name only what is or was configured, so there are few. */
const MAX_APPS = 1_000;
const MAX_EVENTS = 100;

/** Devices by kind and app. */
export async function countDevicesByApp(sql: Sql | Transaction): Promise<DeviceCount[]> {
  return (sql as Sql)<DeviceCount[]>`
    select kind, app, count(*)::int as devices from device group by kind, app order by kind, app limit ${MAX_APPS}`;
}

/** What is asked about pushes when the installation is examined. */
export interface DevicesAndLongPendingReport {
  readonly devices: readonly DeviceCount[];
  /** By kind, what has waited for longer than a while; the kinds of which nothing has are left out. */
  readonly longPending: readonly { readonly kind: DeviceKind; readonly pushes: number; readonly since: Date }[];
}

/** Reads it over a connection of its own, in a transaction that can change nothing. */
export async function reportPush(
  target: ConnectionTarget,
  bounds: { longPendingMs: number; timeoutMs: number },
): Promise<DevicesAndLongPendingReport> {
  return readOnly(target, bounds.timeoutMs, async (tx) => ({
    devices: await countDevicesByApp(tx),
    longPending: await tx<{ kind: DeviceKind; pushes: number; since: Date }[]>`
      select kind, count(*)::int as pushes, min(created_at) as since from push_pending
      where created_at < now() - make_interval(secs => ${bounds.longPendingMs / 1_000})
      group by kind order by kind`,
  }));
}

/** What went wrong last, the newest first. */
export async function listPushFailures(sql: Sql, limit: number): Promise<PushFailureRecord[]> {
  return sql<PushFailureRecord[]>`
    select l.at, a.nick, l.kind, l.event, l.category, l.code
    from push_log l join account a on a.id = l.account_id
    order by l.at desc, l.id desc limit ${Math.min(limit, MAX_EVENTS)}`;
}
