import { Router, type Request } from 'express';
import { z } from 'zod';
import { KlatchError } from '../errors.ts';
import { checkHook, groupHooks, registerHook, unregisterHook, type HookRequest } from '../operations/hooks.ts';
import { codePoints } from '../operations/message-text.ts';
import type { Services } from '../operations/services.ts';
import { readBody } from './body.ts';
import { parseJson } from './json-body.ts';
import { answer, refuseMethod } from './problems.ts';
import type { TokenAccess } from './token-access.ts';

const MAX_BATCH = 100;
const MAX_DESCRIPTION = 200;
const MAX_INT32 = 2_147_483_647;

const oneOf = <const Value extends string>(values: readonly Value[]) =>
  z.enum(values, { error: `must be one of ${values.join(', ')}` });

const registration = z.object({
  url: z.string().optional(),
  /** The name that the original system's clients use. */
  target_url: z.string().optional(),
  description: z
    .string()
    .refine((text) => codePoints(text) <= MAX_DESCRIPTION, `has more than ${MAX_DESCRIPTION} characters`)
    .nullish(),
  order: oneOf(['strict', 'none']).default('strict'),
  batch: z.int().min(1).max(MAX_BATCH).default(1),
  signature: oneOf(['v1', 'v1a', 'both']).default('v1'),
  skip: z
    .array(oneOf(['webhook', 'bot']))
    .max(2)
    .default([]),
});

/** The routes below `/v1/webhooks/:token/reverse`. */
export function reverseWebhookRoutes(services: Services, access: TokenAccess): Router {
  const router = Router({ caseSensitive: true });
  const withToken = access.confirmed();
  const { maxBodyBytes } = services.config.http;
  router
    .route('/:token/reverse')
    .get(
      withToken(async (_req, res, { integration }) => {
        answer(res, 200, await groupHooks(services, integration.conversationId));
      }),
    )
    .post(
      withToken(async (req, res, { integration }) => {
        const request = parseRegistration(await readBody(req, res, maxBodyBytes));
        answer(res, 201, await registerHook(services, integration, request));
      }),
    )
    .all(withToken(async (req, res) => refuseMethod(req, res, ['GET', 'HEAD', 'POST'])));
  router
    .route('/:token/reverse/:id')
    .get(
      withToken(async (req, res, { integration }) => {
        answer(res, 200, { status: 'Ok', ...(await checkHook(services, integration, hookId(req))) });
      }),
    )
    .delete(
      withToken(async (req, res, { integration }) => {
        await unregisterHook(services, integration, hookId(req));
        answer(res, 202, { status: 'Ok' });
      }),
    )
    .all(withToken(async (req, res) => refuseMethod(req, res, ['GET', 'HEAD', 'DELETE'])));
  return router;
}

/** What is no id of a hook has no hook: 410, as for an unknown one. */
function hookId(req: Request): number {
  const text = req.params['id'] as string;
  const id = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 0;
  if (id < 1 || id > MAX_INT32) throw new KlatchError('hook_not_found');
  return id;
}

function parseRegistration(body: Buffer): HookRequest {
  const json = parseJson(decodeUtf8(body));
  if (json.problem !== undefined) {
    throw new KlatchError('invalid_input', { sentence: `${json.problem}; send such as {"url": "https://…"}` });
  }
  const parsed = registration.safeParse(json.value);
  if (!parsed.success) {
    const sentence = parsed.error.issues.map((i) => `${i.path.join('.') || 'body'}: ${i.message}`).join('; ');
    throw new KlatchError('invalid_input', { sentence });
  }
  const { url, target_url: targetUrl, description, ...rest } = parsed.data;
  const target = url ?? targetUrl;
  if (target === undefined) throw new KlatchError('invalid_input', { sentence: 'url: is required' });
  if (description?.includes('\u0000') === true || description?.isWellFormed() === false) {
    throw new KlatchError('invalid_input', { sentence: 'description: must be valid text without NUL' });
  }
  return { ...rest, url: target, description: description ?? null, skip: [...new Set(rest.skip)] };
}

function decodeUtf8(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch (cause) {
    throw new KlatchError('invalid_input', { sentence: 'The body is not valid utf-8', cause });
  }
}
