import { getHeapStatistics } from 'node:v8';
import * as z from 'zod';
import type { ServerUse } from '../../storage/db/server-group.ts';
import type { CachedDeliveryReport } from '../core/delivery-report-cache.ts';
import { defineOperation } from '../core/operation.ts';
import { groupField, hookField, hostField, categoryField, statusField } from '../core/schemas.ts';

const DATABASE_PING_TIMEOUT_MS = 1_000;

const hookCountsSchema = z.object({
  active: z.int().describe('Hooks whose last attempt succeeded, or that had none.'),
  failing: z.int().describe('Hooks whose last attempt failed.'),
  parked: z.int().describe('Hooks that have failed for so long that they are tried rarely.'),
  paused: z.int().describe('Hooks that somebody paused.'),
});

const deliveriesSchema = z.object({
  age_ms: z
    .int()
    .describe('How old this part is: it is remembered for ten seconds, and for as long as the database is away.'),
  hooks: hookCountsSchema.describe('How many hooks are in each state.'),
  pending_hooks: z.int().describe('Hooks that have something pending.'),
  oldest_pending_at: z
    .string()
    .nullable()
    .describe('Time of the post of the oldest pending message; null: none is pending.'),
  last_errors: z
    .array(
      z.object({
        hook: hookField,
        group: groupField,
        host: hostField,
        at: z.string().describe('Time of the failure.'),
        category: categoryField,
        code: statusField,
      }),
    )
    .describe(
      "The newest first, at most five; of the target the host alone, with its port where that is not the scheme's.",
    ),
});

export const serverStatus = defineOperation({
  name: 'server.status',
  summary: 'Show which server this is, since when it runs, whether it can work, and the state of its deliveries.',
  input: z.strictObject({}),
  output: z.object({
    version: z.string().describe('The version of the program.'),
    started_at: z.string().describe('Start of the process.'),
    pid: z.int().describe('The number of the process.'),
    heap_limit_bytes: z.int().describe('The most that the heap of JavaScript may hold.'),
    listeners: z.array(z.string()).describe('The addresses at which the server listens.'),
    metrics_url: z.string().nullable().describe('Null: switched off.'),
    base_uri: z.string().describe('The address that people and programs are given: `http.base-uri`.'),
    database: z.string().describe('Product and version of the database.'),
    database_servers: z
      .array(
        z.object({
          server: z.string().describe('Its host and port.'),
          used: z.boolean().describe('Whether connections are opened to it.'),
          rejection: z
            .string()
            .nullable()
            .describe('Why it was not used when it was asked last; null: it is used, or was not asked.'),
        }),
      )
      .describe('Where `services.postgresql.host` lists several, in its order; else empty.'),
    ready: z.boolean().describe('Whether the database answered just now.'),
    waiting_posts: z.int().describe('Posts that wait for their commit.'),
    deliveries_in_flight: z.int().describe('Deliveries that were begun by this process and have no outcome yet.'),
    loops: z
      .array(z.object({ hook: hookField, group: groupField }))
      .describe(
        "Reverse webhooks whose receivers seem to answer posts of the group's webhook with further ones (`groups.info`).",
      ),
    deliveries: deliveriesSchema.nullable().describe('Null: not read from the database yet.'),
  }),
  who: 'administrator',
  scope: null,
  errors: [],
  run: async (services) => {
    const { version, startedAt, listeners, config, database, databaseVersion, messageLog } = services;
    const ping = database.ping(DATABASE_PING_TIMEOUT_MS).then(
      () => true,
      () => false,
    );
    const [ready, aged] = await Promise.all([ping, services.deliveryReport.read()]);
    return {
      version,
      started_at: startedAt.toISOString(),
      pid: process.pid,
      heap_limit_bytes: getHeapStatistics().heap_size_limit,
      listeners: [...listeners],
      metrics_url: services.metricsUrl,
      base_uri: config.http.baseUri,
      database: databaseVersion,
      database_servers: serializeServers(database.serverUses),
      ready,
      waiting_posts: messageLog.depth,
      deliveries_in_flight: services.deliveriesInFlight(),
      loops: services.loopingHooks().map(({ hookId, conversationId }) => ({ hook: hookId, group: conversationId })),
      deliveries: aged === null ? null : serializeDeliveries(aged),
    };
  },
});

function serializeServers(uses: readonly ServerUse[]): { server: string; used: boolean; rejection: string | null }[] {
  if (uses.length === 1) return [];
  return uses.map(({ server, isUsed, rejection }) => ({ server, used: isUsed, rejection }));
}

function serializeDeliveries({ report, ageMs }: CachedDeliveryReport): z.infer<typeof deliveriesSchema> {
  return {
    age_ms: Math.round(ageMs),
    hooks: { ...report.hooks },
    pending_hooks: report.pendingHooks,
    oldest_pending_at: report.oldestPendingAt?.toISOString() ?? null,
    last_errors: report.errors.map(({ hookId, conversationId, host, at, category, code }) => {
      return { hook: hookId, group: conversationId, host, at: at.toISOString(), category, code };
    }),
  };
}
