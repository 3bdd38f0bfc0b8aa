import * as z from 'zod';
import { durationQuantileBoundMs } from '../../model/hook-stats.ts';
import { readHookStats } from '../../storage/hooks/hook-stats.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { groupField, hookField, hookNumber } from '../core/schemas.ts';
import { hookByAccess } from './hook-actor.ts';

const HOUR_MS = 3_600_000;
/** The database stores the counts of requests for this many hours. */
const MAX_STATS_HOURS = 7 * 24;
const STEP_SECONDS = { '5m': 300, '1h': 3_600, '1d': 86_400 } as const;

export const hookStats = defineTargetedOperation({
  name: 'hooks.stats',
  summary: 'Count the requests to a reverse webhook in the last hours, with their failures and durations.',
  input: z.strictObject({
    hook: hookNumber,
    hours: z.int().min(1).max(MAX_STATS_HOURS).default(24).describe('How many hours up to now are counted.'),
    step: z.enum(['5m', '1h', '1d']).default('1h').describe('Length of the periods that are counted.'),
  }),
  output: z.object({
    id: hookField,
    group: groupField,
    steps: z
      .array(
        z.object({
          at: z.string().describe('Start of the period, in UTC.'),
          delivered: z.int().describe('Requests, not messages: a batch is one.'),
          failed: z.int().describe('Requests that failed.'),
          p50_ms: z.int().nullable().describe('Half of the requests took less than this; null: more than 10 s.'),
          p95_ms: z.int().nullable().describe('The same of 95 in 100.'),
        }),
      )
      .describe('In the order of time; steps without a request are left out.'),
  }),
  who: 'group-admin',
  on: 'hook',
  scope: 'hooks:manage',
  errors: ['hook_not_found'],
  run: async (services, { hook: id, hours, step }, caller, access) => {
    const hook = await hookByAccess(services, access, caller);
    const stepS = STEP_SECONDS[step];
    // The range of time starts at the beginning of a step, so that the first step is complete too.
    const stepMs = stepS * 1_000;
    const since = new Date(Math.floor((Date.now() - hours * HOUR_MS) / stepMs) * stepMs);
    const rows = await translateLostRead(
      services.database.general.run((sql) => readHookStats(sql, hook, { since, stepS })),
    );
    const steps = rows.map(({ at, delivered, failed, durations }) => ({
      at: at.toISOString(),
      delivered,
      failed,
      p50_ms: durationQuantileBoundMs(durations, 0.5),
      p95_ms: durationQuantileBoundMs(durations, 0.95),
    }));
    return { id, group: hook.conversationId, steps };
  },
});
