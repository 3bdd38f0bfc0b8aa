import type { IncomingMessage, ServerResponse } from 'node:http';
import { KlatchError } from '../errors.ts';
import type { Log } from '../log.ts';
import { messageId } from '../model/ids.ts';
import type { SourceKey } from '../model/source-key.ts';
import type { TrustedProxies } from '../model/trusted-proxies.ts';
import { POST_LIMITS } from '../operations/input-limits.ts';
import { Rate } from '../operations/rate.ts';
import type { Services } from '../operations/services.ts';
import { awaitTurn, postMessage, type WebhookMessage } from '../operations/webhooks.ts';
import { bodySize, readBody } from './body.ts';
import { endInTime } from './deadline.ts';
import { readFields } from './form-fields.ts';
import { answer, showError, sourceLimited } from './problems.ts';
import { mayHaveFiles, postForm, readForm } from './send-form.ts';
import { hopsOf, idempotencyKey } from './send-headers.ts';
import { isMultipartForm, parseFields, parseSend } from './send-input.ts';
import type { Admission } from './token-access.ts';

const GROUPS_WITH_A_RATE = 100_000;
const PLAIN_PATH = /^\/v1\/webhooks\/([\w-]{16,128})\/?$/;

/** Handles a post whose token is known, from its body to its answer. Rejects with what it could not do. */
export type Send = (req: IncomingMessage, res: ServerResponse, admission: Admission) => Promise<void>;

export function createSend(services: Services, proxies: TrustedProxies): Send {
  const { parseBudget, config } = services;
  const { limits, http } = config;
  const size = bodySize(http, POST_LIMITS);
  const rate = new Rate<number>({ perSecond: limits.tokenRate, burst: limits.tokenBurst, keys: GROUPS_WITH_A_RATE });
  // Each of the two steps of a form has a turn of its own, and is counted: one step after a wait was counted for nobody.
  const read = async (req: IncomingMessage, body: Buffer, source: SourceKey): Promise<WebhookMessage> => {
    const inTurn = <T>(work: () => T | Promise<T>): Promise<T> => parseBudget.run(source, sourceLimited, work);
    const type = req.headers['content-type'];
    const fields = isMultipartForm(body, type) ? await inTurn(() => readFields(body, type)) : null;
    return inTurn(() => {
      const input = fields === null ? parseSend(body, type, limits) : parseFields(fields, false, limits);
      const hops = hopsOf(req.headers, limits.hops);
      return { ...input, ...idempotencyKey(req.headers, body), hops, attachments: [] };
    });
  };
  return async (req, res, access) => {
    if (access.integration.archived) throw new KlatchError('group_archived');
    const source = proxies.sourceOf(req);
    // Before the body is read as well: to decompress it costs something, too.
    if (!parseBudget.admits(source)) throw sourceLimited();
    await awaitTurn(rate, access.integration, limits.tokenWaitMs);
    const refused = (error: unknown): Promise<never> => refuse(services, access, error);
    const receiving = mayHaveFiles(req) ? readForm(services, { req, res, source }, access) : readBody(req, res, size);
    const received = await receiving.catch(refused);
    const seq = Buffer.isBuffer(received)
      ? await postMessage(services, access, await read(req, received, source).catch(refused))
      : await postForm(services, access, received);
    const id = messageId(access.integration.conversationId, seq);
    // One body that passes every known caller's check.
    answer(res, 200, { status: 'Ok', ok: true, success: true, id });
  };
}

/**
 * A post that cannot be read never comes to the log, which admits all others by the database: it is admitted here, so
 * that a token which was rotated on another node is told nothing about its bodies. Rejects in any case.
 */
async function refuse({ tokens }: Services, { token }: Admission, error: unknown): Promise<never> {
  if (!(error instanceof KlatchError) || error.status === 503) throw error;
  // What is wrong with the body is known also while the database is away.
  const integration = await tokens.confirm(token).catch(() => undefined);
  if (integration === null) throw new KlatchError('wrong_token');
  if (integration?.archived === true) throw new KlatchError('group_archived');
  throw error;
}

/**
 * What nearly every request is, without a way through Express, which is a fifth of a post's cost (43 against 34 µs): a
 * plain path, a token that is remembered. Returns false, having done nothing, for anything else: Express then has it.
 */
export function directSend(services: Services, send: Send): (req: IncomingMessage, res: ServerResponse) => boolean {
  const { tokens, config, log } = services;
  const { requestTimeoutMs } = config.http;
  // What answers a browser's preflight is Express's.
  if (config.http.cors.length > 0) return () => false;
  return (req, res) => {
    if (req.method !== 'POST' || req.headers.host === undefined) return false;
    const token = PLAIN_PATH.exec(req.url!)?.[1];
    const integration = token === undefined ? undefined : tokens.remembered(token);
    if (integration === undefined) return false;
    endInTime(req, res, requestTimeoutMs);
    send(req, res, { token: token!, integration }).catch((error: unknown) => sendProblem(res, error, log));
    return true;
  };
}

/** A wrong token on send carries `status` beside the message, as the original system's clients expect. */
export function sendProblem(res: ServerResponse, error: unknown, log: Log): void {
  const wrongToken = error instanceof KlatchError && error.code === 'wrong_token';
  showError(res, error, { log, extra: wrongToken ? { status: 'failure' } : {} });
}
