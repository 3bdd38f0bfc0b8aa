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
import { nickField } from '../core/schemas.ts';

const MAX_PUSH_EVENTS = 100;
const QUERY_TIMEOUT_MS = 2_000;

const pushCategorySchema = z.string().describe('Why; docs/push.md has them all.');
export const vendorStatusSchema = z.int().nullable().describe("The vendor's status, where it gave one.");

const vendorSchema = z.object({
  kind: z.enum(deviceKinds).describe('The kind of the devices that it serves.'),
  configured: z.boolean().describe('Whether it is set up.'),
  problem: z.string().nullable().describe('Why nothing can be sent although it is configured; null: it can.'),
  devices: z.int().nullable().describe('Registered ones; null: the database is away.'),
  pending: z.int().nullable().describe('Pushes that wait, of all nodes; null: the database is away.'),
  due: z.int().nullable().describe('Those of them whose time has come.'),
  oldest_pending_ms: z.int().nullable().describe('How long the oldest has waited.'),
  in_flight: z.int().describe('Of this node, as all below; counted since its start.'),
  sent: z.int().describe('Pushes that the vendor took.'),
  failed: z.int().describe('Attempts that failed and that the server repeats.'),
  removed: z.int().describe('Devices that the vendor did not know any more.'),
  refused: z.int().describe('Pushes that the vendor refused, and no repeat helps.'),
  expired: z.int().describe('Given up after push.ttl.'),
  last_error: z
    .object({ category: pushCategorySchema, code: vendorStatusSchema, at: z.string().describe('Time of the failure.') })
    .nullable()
    .describe('The last failed attempt; null: none failed.'),
  rests_until: z
    .string()
    .nullable()
    .describe('End of a pause that a failure of the whole vendor caused; null: pushes are sent.'),
});

export const pushStatus = defineOperation({
  name: 'push.status',
  summary: 'Show the state of pushes to devices, by vendor, with the last failures.',
  input: z.strictObject({
    events: z
      .int()
      .min(0)
      .max(MAX_PUSH_EVENTS)
      .default(20)
      .describe('How many of the last events; they are kept for retention.push-log.'),
  }),
  output: z.object({
    content: z.enum(['full', 'sender', 'none']).describe('The contents of a push: `push.content`.'),
    vendors: z.array(vendorSchema).describe('The vendors of pushes, also those that are not set up.'),
    events: z
      .array(
        z.object({
          at: z.string().describe('Time of the failure.'),
          user: nickField,
          kind: z.enum(deviceKinds).describe('The kind of the device.'),
          event: z
            .enum(['removed', 'expired', 'rejected'])
            .describe(
              'removed: the vendor does not know the device any more; expired: not accepted in time; rejected: never accepted.',
            ),
          category: pushCategorySchema,
          code: vendorStatusSchema,
        }),
      )
      .nullable()
      .describe('The newest first; null: the database is away.'),
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

/**
 * The part of the push status that is in the database; null while the database is unavailable. The state of the push
 * vendors is in this process's memory.
 */
async function readStoredPushStatus(
  { database }: Services,
  maxEvents: number,
): Promise<{ deviceCountsByApp: readonly DeviceCount[]; events: readonly PushFailureRecord[] } | null> {
  try {
    return await database.general.run(
      async (sql) => ({
        deviceCountsByApp: await countDevicesByApp(sql),
        events: await listPushFailures(sql, maxEvents),
      }),
      QUERY_TIMEOUT_MS,
    );
  } catch (error) {
    if (error instanceof DatabaseUnavailableError || error instanceof CommitUnknownError) return null;
    throw error;
  }
}

function serializeVendor(report: VendorReport, devices: readonly DeviceCount[] | null): z.infer<typeof vendorSchema> {
  const { kind, lastError, oldestPendingMs } = report;
  const countsOfKind = devices?.filter((each) => each.kind === kind) ?? null;
  return {
    kind,
    configured: report.configured,
    problem: report.problem,
    devices: countsOfKind?.reduce((sum, each) => sum + each.devices, 0) ?? null,
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
