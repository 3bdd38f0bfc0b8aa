import { setTimeout as wait } from 'node:timers/promises';
import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { messageId, parseMessageId, type LogEpoch, type Seq } from '../../model/ids.ts';
import type { Sql, Transaction } from '../../storage/db/connection.ts';
import {
  countRedeliveredEvents,
  findHookCursor,
  findHookUnlocked,
  firstRedeliveredSeq,
  redeliverFrom,
  redeliverSelectedUnlessTooMany,
  separatelyRedeliveredSeqs,
  skipBacklog,
  type HookReference,
  type LockedHook,
  type RedeliveryStart,
} from '../../storage/hooks/hook-control.ts';
import { firstSeqSince } from '../../storage/messages/first-seq-since.ts';
import { findHooks } from '../../storage/hooks/hooks.ts';
import { findMessageEpochs } from '../../storage/messages/log-epoch.ts';
import { MAX_RETRY_ROWS } from '../../storage/hooks/retries.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { limitGroupHookChanges, hookByAccess, type HookAccess } from './hook-actor.ts';
import { changeLockedHookAndAnnounce } from './hook-update.ts';
import { parseTimestamp } from '../core/timestamp.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { groupField, hookField, hookNumber } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';
import { pendingSchema } from './hooks.ts';

/** At most this many messages are redelivered by their ids in one request. */
const MAX_REDELIVERED_IDS = 100;
/**
 * A redelivery waits at most this long until earlier results are committed (settled), which takes a few ms as a rule.
 */
const SETTLEMENT_TIMEOUT_MS = 500;
const SETTLEMENT_POLL_MS = 20;
const OUTCOME_UNKNOWN_SENTENCE =
  'The messages may be on their way again: look at the delivery log before you repeat it';

/** The id of a message, or a moment, as text. */
export const redeliveryStartSchema = z.string().max(100).describe('A message id or a time: all from there is sent.');
export const redeliveredIdsSchema = z
  .array(z.string().max(100))
  .min(1)
  .max(MAX_REDELIVERED_IDS)
  .describe('The ids of single messages that are sent again.');

/** The messages to redeliver: all from a message id or moment on (`from`), or single ones by their ids (`only`). */
export type RedeliveryRequest =
  | { readonly from: string; readonly only?: undefined }
  | { readonly only: readonly string[]; readonly from?: undefined };

interface RedeliveryResult {
  /** The id of the first message that is redelivered; null: the group has no message at or after the start. */
  readonly from: string | null;
  /**
   * The number of messages after the start, with those that the hook has not got yet. The hook's filters may leave out
   * some of them.
   */
  readonly messages: number;
  /** The number of events that are sent. */
  readonly events: number;
  /** The number of messages and events that the hook has to deliver now. */
  readonly pending: number;
}

/**
 * Redelivers all messages from a start on, in order and with the events after them; or single messages, which are
 * delivered outside of that order. Messages from before the hook's registration, and those that retention removed, are
 * never redelivered. A start before them moves to the first possible message, and an `only` that names one is refused.
 * Throws `hook_not_found`, `invalid_input` and `too_many_retries`.
 */
export async function redeliverMessages(
  services: Services,
  hook: HookAccess,
  request: RedeliveryRequest,
): Promise<RedeliveryResult> {
  if (request.only !== undefined) await awaitSettlement(services, hook, request.only);
  return changeLockedHookAndAnnounce(services, hook, {
    unknownOutcomeSentence: OUTCOME_UNKNOWN_SENTENCE,
    work: async (tx, lockedHook) => {
      const plan = await planRedelivery(tx, lockedHook, request);
      await startRedelivery(tx, lockedHook, plan);
      return redeliveryResult(tx, lockedHook, plan);
    },
  });
}

/** Says what `redeliverMessages` would send now, and changes nothing. Throws `hook_not_found` and `invalid_input`. */
function previewRedelivery(
  services: Services,
  hook: HookReference,
  request: RedeliveryRequest,
): Promise<RedeliveryResult> {
  return translateLostRead(
    services.database.general.run(async (sql) => {
      const found = await findHookUnlocked(sql, hook);
      if (found === null) throw new KlatchError('hook_not_found');
      return redeliveryResult(sql, found, await planRedelivery(sql, found, request));
    }),
  );
}

/** The messages that a redelivery sends: all from a start on (`start`), or single ones by their seqs (`only`). */
type RedeliveryPlan =
  | { readonly start: RedeliveryStart; readonly only?: undefined }
  | { readonly only: readonly Seq[]; readonly start?: undefined };

async function planRedelivery(
  sql: Sql | Transaction,
  hook: LockedHook,
  { from, only }: RedeliveryRequest,
): Promise<RedeliveryPlan> {
  if (from === undefined) return { only: await requireRedeliverable(sql, hook, only) };
  return { start: await findRedeliveryStart(sql, hook, from) };
}

async function startRedelivery(tx: Transaction, hook: LockedHook, { start, only }: RedeliveryPlan): Promise<void> {
  if (start !== undefined) await redeliverFrom(tx, hook, start);
  else if (!(await redeliverSelectedUnlessTooMany(tx, hook, only))) {
    const sentence = `This reverse webhook has too many messages to repeat: at most ${MAX_RETRY_ROWS} at a time; nothing was done, please repeat it later`;
    throw new KlatchError('too_many_retries', { sentence });
  }
}

async function redeliveryResult(
  sql: Sql | Transaction,
  hook: LockedHook,
  { start, only }: RedeliveryPlan,
): Promise<RedeliveryResult> {
  const firstSeq = start === undefined ? (Math.min(...only) as Seq) : firstRedeliveredSeq(hook, start.seq);
  const [info] = await findHooks(sql, hook.conversationId, hook.hookId);
  return {
    from: firstSeq <= hook.lastSeq ? await idOfMessage(sql, hook, firstSeq) : null,
    messages:
      only === undefined ? Math.max(0, hook.lastSeq - firstSeq + 1) : separatelyRedeliveredSeqs(hook, only).length,
    events: start === undefined ? 0 : await countRedeliveredEvents(sql, hook, start),
    pending: info?.pending ?? 0,
  };
}

/**
 * Waits, for `SETTLEMENT_TIMEOUT_MS` at most, until the cursor of the hook has passed these messages. A message that is
 * delivered but not settled yet could not be told from one that is still to be delivered.
 */
async function awaitSettlement({ database }: Services, hook: HookReference, ids: readonly string[]): Promise<void> {
  const highestSeq = Math.max(...ids.map((id) => Number(parseMessageId(id)?.seq ?? 0)));
  const deadline = performance.now() + SETTLEMENT_TIMEOUT_MS;
  for (;;) {
    const cursor = await translateLostRead(database.general.run((sql) => findHookCursor(sql, hook)));
    if (cursor === null || cursor >= highestSeq || performance.now() >= deadline) return;
    await wait(SETTLEMENT_POLL_MS);
  }
}

async function findRedeliveryStart(sql: Sql | Transaction, hook: LockedHook, from: string): Promise<RedeliveryStart> {
  if (/^\d+:\d+(?:\.\d+)?$/.test(from)) {
    const [seq] = await findSeqs(sql, hook, { key: 'from', ids: [from] });
    return { seq: seq!, since: null };
  }
  const timestamp = parseTimestamp(from);
  if (timestamp === null) {
    const sentence =
      'from: must be the id of a message such as "7:42", or a time with its zone such as "2026-11-20T08:00:00Z"';
    throw new KlatchError('invalid_input', { sentence });
  }
  const { conversationId, startAfterSeq, firstSeq, lastSeq } = hook;
  const after = Math.max(startAfterSeq, firstSeq - 1) as Seq;
  return { seq: await firstSeqSince(sql, { conversationId, after, lastSeq }, timestamp), since: timestamp };
}

/** The seqs of the messages with these ids. Throws `invalid_input` if one of them cannot be sent to the hook. */
async function requireRedeliverable(
  sql: Sql | Transaction,
  hook: LockedHook,
  ids: readonly string[],
): Promise<readonly Seq[]> {
  const seqs = await findSeqs(sql, hook, { key: 'only', ids });
  const seqBeforeHook = seqs.find((seq) => seq <= hook.startAfterSeq);
  if (seqBeforeHook !== undefined) {
    const id = await idOfMessage(sql, hook, seqBeforeHook);
    const sentence = `only: ${id} is older than the reverse webhook, which never gets it; leave it out`;
    throw new KlatchError('invalid_input', { sentence });
  }
  const removedSeq = seqs.find((seq) => seq < hook.firstSeq);
  if (removedSeq !== undefined) {
    const id = await idOfMessage(sql, hook, removedSeq);
    const sentence = `only: ${id} was removed by a retention rule; the group begins with ${await idOfMessage(sql, hook, hook.firstSeq)}`;
    throw new KlatchError('invalid_input', { sentence });
  }
  return seqs;
}

async function idOfMessage(sql: Sql | Transaction, { conversationId }: LockedHook, seq: Seq): Promise<string> {
  const epochs = await findMessageEpochs(sql, conversationId, [seq]);
  return messageId(conversationId, seq, epochs.get(seq) ?? (0 as LogEpoch));
}

/**
 * The seqs of messages of the hook's group, by their ids. Throws `invalid_input` for an id of another group, or of a
 * message that is not posted yet. It also throws for a message that a restore lost and whose seq another message has
 * now.
 */
async function findSeqs(
  sql: Sql | Transaction,
  { conversationId, lastSeq }: LockedHook,
  { key: inputField, ids }: { key: 'from' | 'only'; ids: readonly string[] },
): Promise<Seq[]> {
  const positions = ids.map((id) => ({ id, position: parseMessageId(id) }));
  const epochs = await findMessageEpochs(
    sql,
    conversationId,
    positions.flatMap(({ position }) => position?.seq ?? []),
  );
  const seqs = positions.map(({ id, position }) => {
    const isOfGroup = position?.conversationId === conversationId && position.seq <= lastSeq;
    if (isOfGroup && (epochs.get(position.seq) ?? position.logEpoch) === position.logEpoch) return position.seq;
    const what = position !== null ? id : inputField === 'from' ? 'it' : 'one of the ids';
    const sentence = `${inputField}: ${what} is not the id of a message of this group; the delivery log shows such ids`;
    throw new KlatchError('invalid_input', { sentence });
  });
  return [...new Set(seqs)];
}

/**
 * Drops all messages and events that a hook still has to deliver, and resolves to their number. Throws
 * `hook_not_found`.
 */
export async function skipHookBacklog(services: Services, hook: HookAccess): Promise<number> {
  return changeLockedHookAndAnnounce(services, hook, {
    unknownOutcomeSentence: 'The backlog may have been dropped: look at the hook before you repeat it',
    work: async (tx, lockedHook) => (await skipBacklog(tx, lockedHook))?.count ?? 0,
  });
}

export const redeliverHook = defineTargetedOperation({
  name: 'hooks.redeliver',
  summary: 'Send messages to a reverse webhook again: all from a message or time on, or single ones.',
  input: z
    .strictObject({
      hook: hookNumber,
      from: redeliveryStartSchema.optional(),
      only: redeliveredIdsSchema.optional(),
      dry_run: z.boolean().default(false).describe('True: nothing is sent, and the answer says what would be sent.'),
    })
    .refine(({ from, only }) => (from === undefined) !== (only === undefined), 'give one of "from" and "only"'),
  output: z.object({
    id: hookField,
    group: groupField,
    from: z.string().nullable().describe('The id of the first message that is sent; null: there is none.'),
    messages: z
      .int()
      .describe(
        'How many messages there are to send, also those that it has not got yet. Its filters may leave out some.',
      ),
    events: z.int().describe('How many events there are to send.'),
    pending: pendingSchema,
  }),
  who: 'group-admin',
  on: 'hook',
  scope: 'hooks:manage',
  errors: ['hook_not_found', 'too_many_retries', 'token_rate_limited', 'change_unconfirmed'],
  run: async (services, { hook: id, from, only, dry_run: isDryRun }, caller, access) => {
    const hook = await hookByAccess(services, access, caller);
    const request = from === undefined ? { only: only! } : { from };
    if (isDryRun) return { id, group: hook.conversationId, ...(await previewRedelivery(services, hook, request)) };
    limitGroupHookChanges(services, hook);
    return { id, group: hook.conversationId, ...(await redeliverMessages(services, hook, request)) };
  },
});

export const discardHookBacklog = defineTargetedOperation({
  name: 'hooks.discard-backlog',
  summary: 'Drop everything that a reverse webhook still has to deliver; it continues with the next message.',
  input: z.strictObject({ hook: hookNumber }),
  output: z.object({
    id: hookField,
    group: groupField,
    skipped: z.int().describe('Messages and events that it will not get.'),
  }),
  who: 'group-admin',
  on: 'hook',
  scope: 'hooks:manage',
  errors: ['hook_not_found', 'token_rate_limited', 'change_unconfirmed'],
  run: async (services, { hook: id }, caller, access) => {
    const hook = await hookByAccess(services, access, caller);
    limitGroupHookChanges(services, hook);
    return { id, group: hook.conversationId, skipped: await skipHookBacklog(services, hook) };
  },
});
