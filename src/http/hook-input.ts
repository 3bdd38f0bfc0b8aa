import type { Request } from 'express';
import * as z from 'zod';
import { KlatchError } from '../errors.ts';
import {
  hookDescriptionSchema,
  hookOptionChanges,
  hookOptionsSchema,
  newHookOptions,
} from '../operations/hooks/hook-options.ts';
import type { HookChangesAndSecretRotation } from '../operations/hooks/hook-update.ts';
import { MAX_LOG_PAGE_SIZE, type HookLogPageRequest } from '../operations/hooks/hook-delivery-log.ts';
import {
  redeliveryStartSchema,
  redeliveredIdsSchema,
  type RedeliveryRequest,
} from '../operations/hooks/hook-redeliver.ts';
import type { RequestedHook } from '../operations/hooks/hooks.ts';
import { HOOK_MANAGEMENT_LIMITS } from '../operations/core/input-limits.ts';
import { parseJsonRepairingControls } from '../operations/core/parse-json.ts';
import { decodeUtf8 } from './json-body.ts';

/** The most mistakes in a body that the answer names. */
const MAX_REPORTED_ISSUES = 5;
const MAX_INT32 = 2_147_483_647;

const registrationSchema = z.object({
  url: z.string().optional(),
  /** The name of `url` in requests of the original system's clients. */
  target_url: z.string().optional(),
  description: hookDescriptionSchema.nullish(),
  ...hookOptionsSchema,
});

const updateSchema = z.object({
  paused: z.boolean().optional(),
  ...hookOptionsSchema,
  rotate_secret: z.boolean().optional(),
});

const redeliverySchema = z.object({
  from: redeliveryStartSchema.optional(),
  only: redeliveredIdsSchema.optional(),
  discard_backlog: z.literal(true, { error: 'can only be true' }).optional(),
});

/** The number of a hook in the path. Text that cannot be such a number gets the 410 of an unknown hook. */
export function hookIdOf(req: Request): number {
  const text = req.params['id'] as string;
  const id = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 0;
  if (id < 1 || id > MAX_INT32) throw new KlatchError('hook_not_found');
  return id;
}

/** The hook that a registration's body asks for. Throws `invalid_input`. */
export function parseRegistration(body: Buffer): RequestedHook {
  const {
    url,
    target_url: targetUrl,
    description,
    ...options
  } = parseBody(body, registrationSchema, '{"url": "https://…"}');
  const target = url ?? targetUrl;
  if (target === undefined) throw new KlatchError('invalid_input', { sentence: 'url: is required' });
  if (description?.includes('\u0000') === true || description?.isWellFormed() === false) {
    throw new KlatchError('invalid_input', { sentence: 'description: must be valid text without NUL' });
  }
  return { ...newHookOptions(options), url: target, description: description ?? null };
}

/**
 * The changes of a hook that a body asks for. Throws `invalid_input`, also if the body names nothing that can be
 * changed.
 */
export function parseHookUpdate(body: Buffer): HookChangesAndSecretRotation {
  const input = parseBody(body, updateSchema, '{"paused": true}');
  // A body without a known field is refused: otherwise the answer to a misspelt field would look like a success.
  if (Object.keys(input).length === 0) {
    const sentence = `The body names nothing to change: give one or more of ${Object.keys(updateSchema.shape).join(', ')}`;
    throw new KlatchError('invalid_input', { sentence });
  }
  const { rotate_secret: rotateSecret = false, paused, ...options } = input;
  return { ...hookOptionChanges(options), paused, rotateSecret };
}

/**
 * The range or the messages that a body asks to redeliver, or the order to discard the backlog. Throws `invalid_input`.
 */
export function parseRedelivery(body: Buffer): RedeliveryRequest | 'discard_backlog' {
  const { from, only, discard_backlog: discard } = parseBody(body, redeliverySchema, '{"from": "7:42"}');
  const given = [from, only, discard].filter((value) => value !== undefined);
  if (given.length !== 1) {
    const sentence =
      'Give one of "from" (a message id or a time), "only" (a list of message ids) and "discard_backlog" (true)';
    throw new KlatchError('invalid_input', { sentence });
  }
  if (from !== undefined) return { from };
  return only === undefined ? 'discard_backlog' : { only };
}

/** The part of a delivery log that a query asks for; an empty parameter counts as absent. Throws `invalid_input`. */
export function parseHookLogRequest(req: Request): HookLogPageRequest {
  const query = new URLSearchParams(req.url.split('?')[1]);
  const limit = query.get('limit') || null;
  const before = query.get('before') || undefined;
  if (limit !== null && !(/^\d{1,3}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= MAX_LOG_PAGE_SIZE)) {
    const sentence = `limit: must be a whole number from 1 to ${MAX_LOG_PAGE_SIZE}`;
    throw new KlatchError('invalid_input', { sentence });
  }
  return { before, limit: limit === null ? MAX_LOG_PAGE_SIZE : Number(limit) };
}

function parseBody<Schema extends z.ZodType>(body: Buffer, schema: Schema, example: string): z.infer<Schema> {
  const json = parseJsonRepairingControls(decodeUtf8(body), HOOK_MANAGEMENT_LIMITS, 'The body');
  if (json.problem !== undefined) {
    throw new KlatchError('invalid_input', { sentence: `${json.problem}; send such as ${example}` });
  }
  const parsed = schema.safeParse(json.value);
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  const messages = issues.slice(0, MAX_REPORTED_ISSUES).map((i) => `${i.path.join('.') || 'body'}: ${i.message}`);
  if (issues.length > MAX_REPORTED_ISSUES) messages.push(`and ${issues.length - MAX_REPORTED_ISSUES} more`);
  const sentence = messages.join('; ');
  throw new KlatchError('invalid_input', { sentence });
}
