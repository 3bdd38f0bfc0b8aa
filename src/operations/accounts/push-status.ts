import * as z from 'zod';
import { deviceKinds } from '../../model/device.ts';
import type { VendorReport } from '../../push/vendor-report.ts';
import { DatabaseUnavailableError, CommitUnknownError } from '../../storage/db/database-error.ts';
import {
  countDevicesByApp,
  listPushFailures,
  type DeviceCount,
  type PushFailureRecord,
} from '../../storage/push/device-report.ts';
import { defineOperation } from '../core/operation.ts';
import type { Services } from '../core/services.ts';

const MAX_EVENTS = 100;
const QUERY_TIMEOUT_MS = 2_000;

const vendorSchema = z.object({
  kind: z.enum(deviceKinds),
  configured: z.boolean(),
  /** Why the vendor cannot be used although it is configured; null: it can. */
  problem: z.string().nullable(),
  /** Registered devices; null: the database is unavailable. */
  devices: z.int().nullable(),
  /** Waiting pushes of all nodes; null: the database is unavailable. */
  pending: z.int().nullable(),
  /** Waiting pushes that are due now. */
  due: z.int().nullable(),
  /** How long the oldest has waited. */
  oldest_pending_ms: z.int().nullable(),
  /** This field and all below count on this node, since its start. */
  in_flight: z.int(),
  sent: z.int(),
  /** Failed attempts that are retried. */
  failed: z.int(),
  /** Devices that the vendor no longer knew. */
  removed: z.int(),
  refused: z.int(),
  /** Pushes given up after push.ttl. */
  expired: z.int(),
  last_error: z.object({ category: z.string(), code: z.int().nullable(), at: z.string() }).nullable(),
  /** The node sends nothing until then, because the vendor as a whole has a problem; null: it sends. */
  rests_until: z.string().nullable(),
});

export const pushStatus = defineOperation({
  name: 'push.status',
  summary: 'Say how the pushes to devices are doing, by vendor, and what went wrong last.',
  input: z.strictObject({
    /** How many of the newest events to return; they are kept for retention.push-log. */
    events: z.int().min(0).max(MAX_EVENTS).default(20),
  }),
  output: z.object({
    /** What a push contains (push.content). */
    content: z.enum(['full', 'sender', 'none']),
    vendors: z.array(vendorSchema),
    /** The newest first; null: the database is unavailable. */
    events: z
      .array(
        z.object({
          at: z.string(),
          user: z.string(),
          kind: z.enum(deviceKinds),
          /**
           * `removed`: the vendor no longer knows the device. `expired`: it did not accept the push in time.
           * `rejected`: a retry would not help.
           */
          event: z.enum(['removed', 'expired', 'rejected']),
          category: z.string(),
          code: z.int().nullable(),
        }),
      )
      .nullable(),
  }),
  who: 'administrator',
  scope: null,
  errors: [],
  run: async (services, { events }) => {
    const { push, config } = services;
    const [reports, stored] = await Promise.all([push.status(), readStoredPushStatus(services, events)]);
    return {
      content: config.push.content,
      vendors: reports.map((report) => serializeVendor(report, stored?.deviceCountsByApp ?? null)),
      events: stored?.events.map(({ nick, at, ...event }) => ({ at: at.toISOString(), user: nick, ...event })) ?? null,
    };
  },
});

/** Null while the database is unavailable; the node knows the state of the vendors without it. */
async function readStoredPushStatus(
  { database }: Services,
  limit: number,
): Promise<{ deviceCountsByApp: readonly DeviceCount[]; events: readonly PushFailureRecord[] } | null> {
  try {
    return await database.general.run(
      async (sql) => ({ deviceCountsByApp: await countDevicesByApp(sql), events: await listPushFailures(sql, limit) }),
      QUERY_TIMEOUT_MS,
    );
  } catch (error) {
    if (error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError) return null;
    throw error;
  }
}

function serializeVendor(report: VendorReport, devices: readonly DeviceCount[] | null): z.infer<typeof vendorSchema> {
  const { kind, lastError, oldestPendingMs } = report;
  const own = devices?.filter((each) => each.kind === kind) ?? null;
  return {
    kind,
    configured: report.configured,
    problem: report.problem,
    devices: own?.reduce((sum, each) => sum + each.devices, 0) ?? null,
    pending: report.pending,
    due: report.due,
    oldest_pending_ms: oldestPendingMs === null ? null : Math.round(oldestPendingMs),
    in_flight: report.inFlight,
    sent: report.sent,
    failed: report.failed,
    removed: report.removed,
    refused: report.refused,
    expired: report.expired,
    last_error: lastError === null ? null : { ...lastError, at: lastError.at.toISOString() },
    rests_until: report.backoffUntil?.toISOString() ?? null,
  };
}
