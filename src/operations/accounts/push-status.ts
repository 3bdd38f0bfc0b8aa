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
  /** Why nothing can be sent although it is configured; null: it can. */
  problem: z.string().nullable(),
  /** Registered ones; null: the database is away. */
  devices: z.int().nullable(),
  /** Pushes that wait, of all nodes; null: the database is away. */
  pending: z.int().nullable(),
  /** Those of them whose time has come. */
  due: z.int().nullable(),
  /** How long the oldest has waited. */
  oldest_pending_ms: z.int().nullable(),
  /** Of this node, as all below; counted since its start. */
  in_flight: z.int(),
  sent: z.int(),
  /** Attempts that are repeated. */
  failed: z.int(),
  /** Devices that the vendor did not know any more. */
  removed: z.int(),
  refused: z.int(),
  /** Given up after push.ttl. */
  expired: z.int(),
  last_error: z.object({ category: z.string(), code: z.int().nullable(), at: z.string() }).nullable(),
  /** Until when nothing is sent because of a problem of the vendor as a whole; null: it is sent. */
  rests_until: z.string().nullable(),
});

export const pushStatus = defineOperation({
  name: 'push.status',
  summary: 'Show the state of pushes to devices, by vendor, with the last failures.',
  input: z.strictObject({
    /** How many of the last events; they are kept for retention.push-log. */
    events: z.int().min(0).max(MAX_EVENTS).default(20),
  }),
  output: z.object({
    /** What a push says: push.content. */
    content: z.enum(['full', 'sender', 'none']),
    vendors: z.array(vendorSchema),
    /** The newest first; null: the database is away. */
    events: z
      .array(
        z.object({
          at: z.string(),
          user: z.string(),
          kind: z.enum(deviceKinds),
          /** removed: the vendor does not know the device any more; expired: not accepted in time; rejected: never accepted. */
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

/** Null while the database is away: how the vendors are doing is known all the same. */
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
