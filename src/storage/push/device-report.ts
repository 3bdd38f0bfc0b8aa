import type { DeviceKind } from '../../model/device.ts';
import type { ConnectionTarget, Sql, Transaction } from '../db/connection.ts';
import { withReadOnlyTransaction } from '../db/read-only.ts';

/** The number of devices of one app. */
export interface DeviceCount {
  readonly kind: DeviceKind;
  /** Google's project or Apple's bundle; null: the first one of the configuration. */
  readonly app: string | null;
  readonly devices: number;
}

/** A removed device, or a push that failed for good. */
export interface PushFailureRecord {
  readonly at: Date;
  /** The owner of the device. */
  readonly nick: string;
  readonly kind: DeviceKind;
  readonly event: 'removed' | 'expired' | 'rejected';
  readonly category: string;
  readonly code: number | null;
}

/** The maximum number of apps in the report; devices name only apps that are or were configured, so there are few. */
const MAX_APPS = 1_000;
const MAX_LISTED_FAILURES = 100;

/** The number of devices of each kind and app. */
export async function countDevicesByApp(sql: Sql | Transaction): Promise<DeviceCount[]> {
  return (sql as Sql)<DeviceCount[]>`
    select kind, app, count(*)::int as devices from device group by kind, app order by kind, app limit ${MAX_APPS}`;
}

/** The push part of a report about the installation. */
export interface DevicesAndLongPendingReport {
  readonly devices: readonly DeviceCount[];
  /** By kind, pushes that have waited for longer than `longPendingMs`; kinds without such pushes are left out. */
  readonly longPending: readonly { readonly kind: DeviceKind; readonly pushes: number; readonly since: Date }[];
}

/** Reads the report over a connection of its own, in a read-only transaction. */
export async function readPushReport(
  target: ConnectionTarget,
  bounds: { longPendingMs: number; timeoutMs: number },
): Promise<DevicesAndLongPendingReport> {
  return withReadOnlyTransaction(target, bounds.timeoutMs, async (tx) => ({
    devices: await countDevicesByApp(tx),
    longPending: await tx<{ kind: DeviceKind; pushes: number; since: Date }[]>`
      select kind, count(*)::int as pushes, min(created_at) as since from push_pending
      where created_at < now() - make_interval(secs => ${bounds.longPendingMs / 1_000})
      group by kind order by kind`,
  }));
}

/** The last removed devices and failed pushes, the newest first. */
export async function listPushFailures(sql: Sql, limit: number): Promise<PushFailureRecord[]> {
  return sql<PushFailureRecord[]>`
    select l.at, a.nick, l.kind, l.event, l.category, l.code
    from push_log l join account a on a.id = l.account_id
    order by l.at desc, l.id desc limit ${Math.min(limit, MAX_LISTED_FAILURES)}`;
}
