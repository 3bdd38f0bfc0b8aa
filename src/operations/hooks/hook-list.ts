import * as z from 'zod';
import { changeEventKinds } from '../../model/change-event.ts';
import { hookFormats } from '../../model/hook-format.ts';
import { criteriaByHookState } from '../../model/hook.ts';
import type { AccountId, ConversationId, HookId } from '../../model/ids.ts';
import { readLogPage } from '../../storage/hooks/delivery-log.ts';
import { listHooks, type HookDetails, type ListedHook } from '../../storage/hooks/hook-list.ts';
import { readHourlyRequests } from '../../storage/hooks/hook-stats.ts';
import type { Sql } from '../../storage/db/connection.ts';
import { resolveHookEvenRemoved } from '../core/access.ts';
import { requireAccount } from '../core/caller.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { loggedAttemptSchema, serializeAttempt } from './hook-delivery-log.ts';
import { restorableUntil } from './hook-restore.ts';
import { healthOf, hookHealthSchema, hookStateSchema } from './hooks.ts';
import { defineOperation, defineTargetedOperation } from '../core/operation.ts';
import { limitSchema, pageOf, nextNumberSchema } from '../core/page.ts';
import {
  createdAtField,
  groupField,
  groupReference,
  hookField,
  hookNumber,
  hostField,
  titleField,
} from '../core/schemas.ts';
import type { Services } from '../core/services.ts';

const ATTEMPTS_SHOWN = 10;

/**
 * A removed hook gets no deliveries, so a list shows it as `removed`, and not with a state of health. After some time
 * its row is deleted.
 */
const listedStateSchema = z.enum([...hookStateSchema.options, 'removed']);
const pastRemovalSchema = z.object({
  at: z.string().describe('Time of the removal.'),
  by: z.enum(['client', 'target']).describe("`client`: by the group's DELETE; `target`: by the 410 of its target."),
  restorable_until: z.string().nullable().describe('End of the time in which it can be restored; null: it cannot.'),
});

const listedHookSchema = hookHealthSchema.extend({
  id: hookField,
  group: groupField,
  state: listedStateSchema.describe('State; docs/reverse-webhooks.md explains the states.'),
  host: hostField,
  format: z.enum(hookFormats).describe('How its requests look.'),
  events: z.array(z.enum(changeEventKinds)).describe('Events that it gets besides new messages.'),
  removed: pastRemovalSchema.nullable().describe('Null: it is not removed.'),
});

const HOUR_MS = 3_600_000;
/** The hours that a list counts: the present one and those before it. */
const COUNTED_HOURS = 24;
/** The most hooks on a page with counts of requests, each with up to `COUNTED_HOURS` counts. */
const MAX_HOOKS_WITH_REQUESTS = 100;

/** A hook in a list for the people who manage it. */
const managedHookSchema = listedHookSchema.extend({
  group_title: titleField,
  url: z.string().describe('The whole target. It can contain a secret of the receiver.'),
  description: z.string().nullable().describe('Purpose, for people to read; null: none is given.'),
  order: z.enum(['strict', 'none']).describe('`strict`: one request after the other, in the order of the messages.'),
  last_day: z
    .array(
      z.object({
        at: z.string().describe('Start of the hour, in UTC.'),
        delivered: z.int().describe('Requests, not messages: a batch is one.'),
        failed: z.int().describe('Requests that failed.'),
      }),
    )
    .optional()
    .describe('With `requests`: its requests of this hour and the 23 before it; hours without one are left out.'),
});

const hookPageInput = {
  after: z.int().min(0).max(2_147_483_647).default(0).describe('`next` of the page before; 0: the first.'),
  limit: limitSchema,
  state: listedStateSchema.optional().describe('Only those in this state; not given: all but removed ones.'),
};
const hookPageOutput = z.object({
  hooks: z.array(listedHookSchema).describe('The reverse webhooks, by number.'),
  next: nextNumberSchema,
});

const managedPageInput = {
  ...hookPageInput,
  requests: z
    .boolean()
    .default(false)
    .describe(`Count the requests of the last 24 hours too; then \`limit\` is at most ${MAX_HOOKS_WITH_REQUESTS}.`),
};
const managedPageOutput = z.object({
  hooks: z.array(managedHookSchema).describe('The reverse webhooks, by number.'),
  next: nextNumberSchema,
});
const fitsRequests = ({ requests, limit }: { requests: boolean; limit: number }): boolean =>
  !requests || limit <= MAX_HOOKS_WITH_REQUESTS;
const TOO_MANY_FOR_REQUESTS = {
  path: ['limit'],
  error: `must be at most ${MAX_HOOKS_WITH_REQUESTS} with "requests"`,
};

export const listAllHooks = defineOperation({
  name: 'hooks.list-all',
  summary: 'List the reverse webhooks of all groups, a page at a time; removed ones only on request.',
  input: z.strictObject(hookPageInput),
  output: hookPageOutput,
  who: 'administrator',
  scope: null,
  errors: [],
  run: async (services, request) => {
    const { page, next } = await readHookPage(services, request, { conversationId: null, manager: null });
    return { hooks: page.map((hook) => serializeListedHook(services, hook)), next };
  },
});

export const listGroupHooks = defineTargetedOperation({
  name: 'hooks.list',
  summary: 'List the reverse webhooks of a group, a page at a time; removed ones only on request.',
  input: z.strictObject({ group: groupReference, ...managedPageInput }).refine(fitsRequests, TOO_MANY_FOR_REQUESTS),
  output: managedPageOutput,
  who: 'group-admin',
  on: 'group',
  scope: 'hooks:manage',
  errors: [],
  run: (services, request, _caller, { conversationId }) =>
    readManagedHookPage(services, request, { conversationId, manager: null }),
});

export const listManagedHooks = defineOperation({
  name: 'hooks.list-managed',
  summary: 'List the reverse webhooks of all groups that the caller owns or administers, a page at a time.',
  input: z.strictObject(managedPageInput).refine(fitsRequests, TOO_MANY_FOR_REQUESTS),
  output: managedPageOutput,
  who: 'account',
  scope: 'hooks:manage',
  errors: [],
  run: (services, request, caller) =>
    readManagedHookPage(services, request, { conversationId: null, manager: requireAccount(caller).accountId }),
});

interface HookPageRequest {
  readonly after: number;
  readonly limit: number;
  readonly state?: z.infer<typeof listedStateSchema> | undefined;
}

/** The hooks that a list may show; null: those of all groups. */
interface HookSelection {
  readonly conversationId: ConversationId | null;
  readonly manager: AccountId | null;
}

async function readManagedHookPage(
  services: Services,
  request: HookPageRequest & { readonly requests: boolean },
  selection: HookSelection,
): Promise<z.infer<typeof managedPageOutput>> {
  const { page, next } = await readHookPage(services, request, selection);
  const lastDays = request.requests ? await readLastDays(services, page) : null;
  const hooks = page.map((hook) => ({
    ...serializeListedHook(services, hook),
    group_title: hook.title,
    url: hook.url,
    description: hook.description,
    order: hook.order,
    ...(lastDays === null ? {} : { last_day: lastDays.get(hook.id) ?? [] }),
  }));
  return { hooks, next };
}

/** The requests of the counted hours, by hour and by hook. */
async function readLastDays({ database }: Services, hooks: readonly ListedHook[]) {
  const references = hooks.map(({ id, conversationId }) => ({ hookId: id, conversationId }));
  const since = new Date((Math.floor(Date.now() / HOUR_MS) - COUNTED_HOURS + 1) * HOUR_MS);
  const read = (sql: Sql) => readHourlyRequests(sql, references, since);
  const lastDays = new Map<HookId, { at: string; delivered: number; failed: number }[]>();
  for (const { hookId, at, delivered, failed } of await translateLostRead(database.general.run(read))) {
    const hours = lastDays.get(hookId) ?? [];
    hours.push({ at: at.toISOString(), delivered, failed });
    lastDays.set(hookId, hours);
  }
  return lastDays;
}

async function readHookPage(
  services: Services,
  { after, limit, state }: HookPageRequest,
  selection: HookSelection,
): Promise<{ page: readonly ListedHook[]; next: number | null }> {
  const longFailingBefore = new Date(Date.now() - services.config.delivery.parkAfterMs);
  const removed = state === 'removed';
  const stateCriteria = state === undefined || removed ? null : { ...criteriaByHookState[state], longFailingBefore };
  const pageRequest = { after, limit: limit + 1, ...selection, removed, stateCriteria };
  const rows = await translateLostRead(services.database.general.run((sql) => listHooks(sql, pageRequest)));
  return pageOf(rows, limit, (hook) => hook.id);
}

const hookInfoSchema = listedHookSchema.extend({
  group_title: titleField,
  url: z.string().describe('The whole target. It can contain a secret of the receiver.'),
  description: z.string().nullable().describe('Purpose, for people to read; null: none is given.'),
  order: z.enum(['strict', 'none']).describe('`strict`: one request after the other, in the order of the messages.'),
  batch: z.int().describe('How many messages a request has at most.'),
  signature: z.enum(['v1', 'v1a', 'both']).describe("Signed with the secret, with the server's keys, or with both."),
  skip: z.array(z.enum(['webhook', 'bot'])).describe('The senders whose messages it does not get.'),
  triggers: z.array(z.string()).describe('It gets only messages that begin with one of these; empty: all of them.'),
  max_age: z.int().nullable().describe('In seconds; null: it gets messages of any age.'),
  old_secret_until: z
    .string()
    .nullable()
    .describe('End of the time in which the secret before the last rotation signs too.'),
  created_at: createdAtField,
  start_seq: z.int().describe('Messages up to this seq were there before the hook.'),
  cursor: z.int().describe('All messages up to this seq are delivered or set aside.'),
  event_cursor: z.int().nullable().describe('The same of events, by rev; null: the hook asks for none.'),
  last_seq: z.int().describe('The newest message of the group.'),
  failures: z.int().describe('Attempts that failed since the last success.'),
  failing_since: z.string().nullable().describe('Time of the first of these failures; null: none.'),
  attempts: z.array(loggedAttemptSchema).describe('The newest ten attempts.'),
});

export const hookInfo = defineTargetedOperation({
  name: 'hooks.info',
  summary: 'Show a reverse webhook except its secret, with its last attempts.',
  input: z.strictObject({ hook: hookNumber }),
  output: hookInfoSchema,
  who: 'group-admin',
  on: 'hook',
  scope: 'hooks:manage',
  errors: [],
  run: async (services, { hook: id }) => {
    const { general } = services.database;
    const [hook, attempts] = await translateLostRead(
      general.run(async (sql) => {
        const found = await resolveHookEvenRemoved(sql, id);
        return [found, await readLogPage(sql, found.id, { before: null, limit: ATTEMPTS_SHOWN })] as const;
      }),
    );
    return {
      ...serializeListedHook(services, hook),
      ...serializeDetails(hook),
      attempts: attempts.map((attempt) => serializeAttempt(hook.conversationId, attempt)),
    };
  },
});

function serializeDetails(hook: HookDetails) {
  return {
    group_title: hook.title,
    url: hook.url,
    description: hook.description,
    order: hook.order,
    batch: hook.batch,
    signature: hook.signature,
    skip: [...hook.skip],
    triggers: [...hook.triggers],
    max_age: hook.maxAgeS,
    old_secret_until: isInFuture(hook.oldSecretUntil) ? hook.oldSecretUntil.toISOString() : null,
    created_at: hook.createdAt.toISOString(),
    start_seq: hook.startAfterSeq,
    cursor: hook.cursor,
    event_cursor: hook.eventCursor,
    last_seq: hook.lastSeq,
    failures: hook.failures,
    failing_since: hook.failingSince?.toISOString() ?? null,
  };
}

function isInFuture(time: Date | null): time is Date {
  return time !== null && time.getTime() > Date.now();
}

function serializeListedHook(services: Services, hook: ListedHook): z.infer<typeof listedHookSchema> {
  const removed = removalOf(services, hook);
  const health = healthOf(services, hook);
  return {
    ...health,
    state: removed === null ? health.state : 'removed',
    id: hook.id,
    group: hook.conversationId,
    host: new URL(hook.url).host,
    format: hook.format,
    events: [...hook.events],
    removed,
  };
}

function removalOf(services: Services, hook: ListedHook): z.infer<typeof pastRemovalSchema> | null {
  const { removedAt: at, removedBy: by } = hook;
  if (at === null || by === null) return null;
  const until = restorableUntil(services, at);
  const isRestorable = by === 'target' && Date.now() < until.getTime();
  return { at: at.toISOString(), by, restorable_until: isRestorable ? until.toISOString() : null };
}
