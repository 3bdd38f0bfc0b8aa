import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { deliveryOutcomes, type DeliveryOutcome } from '../../model/delivery-outcome.ts';
import { messageId, parseMessageId, type ConversationId, type Rev, type Seq } from '../../model/ids.ts';
import { readLogPage, type LogFilter, type LoggedAttempt, type LogPosition } from '../../storage/hooks/delivery-log.ts';
import type { HookReference } from '../../storage/hooks/hook-control.ts';
import { findHooks } from '../../storage/hooks/hooks.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { parseTimestamp } from '../core/timestamp.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { pageOf, pageLimit } from '../core/page.ts';
import { categoryField, groupField, hookField, hookNumber, statusField } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';

/** At most this many rows of a delivery log are returned by one request. */
export const MAX_LOG_PAGE_SIZE = 100;

/** One row of a delivery log. */
export const loggedAttemptSchema = z.object({
  message_id: z.string().describe('The id of the message, of a batch that of the first one.'),
  seq: z.int().describe('The place of the message in its conversation, of a batch that of the first one.'),
  last_seq: z.int().describe('The last message of a batch, or of what was skipped; else the same as `seq`.'),
  rev: z.int().optional().describe('Of an event, whose `seq` is that of the message that was changed.'),
  last_rev: z.int().optional().describe('The last event of a batch; else the same as `rev`.'),
  attempt: z.int().describe('The number of the attempt, from 1; 0: nothing was sent.'),
  at: z.string().describe('End of the attempt.'),
  outcome: z.string().describe('`delivered`, `failed`, `unregistered`, `dead_lettered`, `skipped` or `expired`.'),
  category: categoryField,
  code: statusField,
  duration_ms: z.int().describe('How long it took.'),
});

/** A row of a delivery log as every interface shows it. */
export function serializeAttempt(
  conversationId: ConversationId,
  { firstSeq, lastSeq, logEpoch, rev, lastRev, attempt, at, outcome, category, code, durationMs }: LoggedAttempt,
): z.infer<typeof loggedAttemptSchema> {
  return {
    message_id: messageId(conversationId, firstSeq, logEpoch),
    seq: firstSeq,
    last_seq: lastSeq,
    ...(rev === 0 ? {} : { rev, last_rev: lastRev ?? rev }),
    attempt,
    at: at.toISOString(),
    outcome,
    category,
    code,
    duration_ms: durationMs,
  };
}

/**
 * Parses a place in a delivery log: the time, first seq and attempt of the last row that was shown, such as
 * `2026-11-20T08:00:00.000Z_42_1`. For a row of an event, its rev follows. The place may also be only a time. Null: the
 * text is no place.
 */
function parseDeliveryLogCursor(text: string): LogPosition | null {
  const pattern = /^([^_]{1,40})(?:_(\d{1,15})_(\d{1,9})(?:_r(\d{1,15}))?)?$/;
  const [, time = '', seq = '0', attempt = '0', rev = '0'] = pattern.exec(text) ?? [];
  const at = parseTimestamp(time);
  return at === null ? null : { at, firstSeq: Number(seq) as Seq, rev: Number(rev) as Rev, attempt: Number(attempt) };
}

function formatLogPosition({ at, firstSeq, rev, attempt }: LogPosition): string {
  return `${at.toISOString()}_${firstSeq}_${attempt}${rev === 0 ? '' : `_r${rev}`}`;
}

/** The request for a page of a delivery log: at most `limit` rows before a place, newest first. */
export interface HookLogPageRequest {
  readonly before: string | undefined;
  readonly limit: number;
}

/** A page of a delivery log. `next` is the place to give as `before` for the next page; null: this is the last page. */
export interface HookLogPage {
  readonly attempts: z.infer<typeof loggedAttemptSchema>[];
  readonly next: string | null;
}

/** A page of the delivery log of a group's hook. Throws `hook_not_found` and `invalid_input`. */
export async function readHookLog(
  services: Services,
  hook: HookReference,
  request: HookLogPageRequest,
): Promise<HookLogPage> {
  const position = positionOf(request);
  const { conversationId, hookId } = hook;
  const rows = await translateLostRead(
    services.database.general.run(async (sql) => {
      const [found] = await findHooks(sql, conversationId, hookId);
      if (found === undefined) throw new KlatchError('hook_not_found');
      return readLogPage(sql, hookId, { before: position, limit: request.limit + 1 });
    }),
  );
  return serializeLogPage(conversationId, rows, request.limit);
}

function positionOf({ before }: HookLogPageRequest): LogPosition | null {
  if (before === undefined) return null;
  const position = parseDeliveryLogCursor(before);
  if (position !== null) return position;
  const sentence = 'before: must be the place that the page before ended at, or a time such as "2026-11-20T08:00:00Z"';
  throw new KlatchError('invalid_input', { sentence });
}

function serializeLogPage(conversationId: ConversationId, rows: readonly LoggedAttempt[], limit: number): HookLogPage {
  const { page, next } = pageOf(rows, limit, formatLogPosition);
  return { attempts: page.map((row) => serializeAttempt(conversationId, row)), next };
}

interface LogFilterInput {
  readonly outcome?: readonly DeliveryOutcome[] | undefined;
  readonly since?: string | undefined;
  readonly message?: string | undefined;
}

/** Throws `invalid_input` for a time that is none, and for a message of another group. */
function logFilterOf(conversationId: ConversationId, { outcome, since, message }: LogFilterInput): LogFilter {
  const sinceTime = since === undefined ? null : parseTimestamp(since);
  if (since !== undefined && sinceTime === null) {
    const sentence = 'since: must be a time with its zone such as "2026-11-20T08:00:00Z"';
    throw new KlatchError('invalid_input', { sentence });
  }
  const position = message === undefined ? null : parseMessageId(message);
  if (message !== undefined && position?.conversationId !== conversationId) {
    const sentence = `message: must be the id of a message of this group, such as "${conversationId}:42"`;
    throw new KlatchError('invalid_input', { sentence });
  }
  return { outcomes: outcome ?? null, since: sinceTime, seq: position?.seq ?? null };
}

export const hookLog = defineTargetedOperation({
  name: 'hooks.log',
  summary: 'Show the delivery log of a reverse webhook, also of a removed one, newest first, a page at a time.',
  input: z.strictObject({
    hook: hookNumber,
    before: z.string().max(100).optional().describe('`next` of the page before, or a time; not given: the newest.'),
    limit: pageLimit(MAX_LOG_PAGE_SIZE, MAX_LOG_PAGE_SIZE),
    outcome: z
      .array(z.enum(deliveryOutcomes))
      .min(1)
      .max(deliveryOutcomes.length)
      .optional()
      .describe('Only attempts with one of these outcomes.'),
    since: z.string().max(40).optional().describe('Only attempts of this time or later.'),
    message: z
      .string()
      .max(100)
      .optional()
      .describe('Only attempts of this message and of its events, by its id. The epoch in the id does not count.'),
  }),
  output: z.object({
    id: hookField,
    group: groupField,
    attempts: z.array(loggedAttemptSchema).describe('The attempts, newest first.'),
    next: z.string().nullable().describe('`before` of the next page; null: this was all.'),
  }),
  who: 'group-admin',
  on: 'hook',
  scope: 'hooks:manage',
  errors: [],
  run: async (services, { hook: id, before, limit, ...filter }, _caller, { conversationId, hookId }) => {
    const position = positionOf({ before, limit });
    const request = { before: position, limit: limit + 1, filter: logFilterOf(conversationId, filter) };
    const rows = await translateLostRead(services.database.general.run((sql) => readLogPage(sql, hookId!, request)));
    return { id, group: conversationId, ...serializeLogPage(conversationId, rows, limit) };
  },
});
