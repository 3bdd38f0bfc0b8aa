import { Router, type Request, type Response } from 'express';
import type { TrustedProxies } from '../model/trusted-proxies.ts';
import { byToken, countHookChange, hookOfGroup, type HookAccess } from '../operations/hook-access.ts';
import { unregisterHook, updateHook } from '../operations/hook-control.ts';
import { hookLog, type LogAnswer } from '../operations/hook-log.ts';
import { pingHook } from '../operations/hook-ping.ts';
import { redeliver, skipHookBacklog } from '../operations/hook-redelivery.ts';
import { checkHook, countRegistration, groupHooks, registerHook } from '../operations/hooks.ts';
import { HOOK_LIMITS } from '../operations/input-limits.ts';
import type { Services } from '../operations/services.ts';
import { bodySize, readBody } from './body.ts';
import { hookIdOf, parseLogRequest, parseRedelivery, parseRegistration, parseUpdate } from './hook-input.ts';
import { answer, refuseMethod, sourceLimited } from './problems.ts';
import type { Admission, TokenAccess, TokenHandler, WithToken } from './token-access.ts';

/** The routes below `/v1/webhooks/:token/reverse`. */
export function reverseWebhookRoutes(services: Services, access: TokenAccess, proxies: TrustedProxies): Router {
  const router = Router({ caseSensitive: true });
  const withToken = access.confirmed();
  const readInput = inputReader(services, proxies);
  router
    .route('/:token/reverse')
    .get(
      withToken(async (_req, res, { integration }) => {
        answer(res, 200, await groupHooks(services, integration.conversationId));
      }),
    )
    .post(
      withToken(async (req, res, { integration }) => {
        const actor = byToken(integration);
        // Before the body: what comes too often is neither read nor parsed.
        countRegistration(services, actor);
        const request = await readInput(req, res, parseRegistration);
        answer(res, 201, await registerHook(services, actor, request));
      }),
    )
    .all(withToken(async (req, res) => refuseMethod(req, res, ['GET', 'HEAD', 'POST'])));
  addHookRoutes(router, services, { withToken, readInput });
  addLogRoutes(router, services, { withToken, readInput });
  return router;
}

/** Reads a body and parses it within the limits and the time of its source. */
type ReadInput = <T>(req: Request, res: Response, parse: (body: Buffer) => T) => Promise<T>;

function inputReader({ config, parseBudget }: Services, proxies: TrustedProxies): ReadInput {
  const size = bodySize(config.http, HOOK_LIMITS);
  return async (req, res, parse) => {
    const source = proxies.sourceOf(req);
    if (!parseBudget.admits(source)) throw sourceLimited();
    const body = await readBody(req, res, size);
    return parseBudget.run(source, sourceLimited, () => parse(body));
  };
}

/** What the routes of one hook are made with. */
interface RouteParts {
  readonly withToken: WithToken;
  readonly readInput: ReadInput;
}

type HookHandler = (req: Parameters<TokenHandler>[0], res: Response, hook: HookAccess) => Promise<void>;

/** The way from a valid token and the number in the path to the hook that they mean. */
function onHook(withToken: WithToken, handler: HookHandler): ReturnType<WithToken> {
  return withToken((req, res, { integration }: Admission) =>
    handler(req, res, hookOfGroup(integration, hookIdOf(req))),
  );
}

/** One hook: its health, its settings, its end. */
function addHookRoutes(router: Router, services: Services, { withToken, readInput }: RouteParts): void {
  router
    .route('/:token/reverse/:id')
    .get(
      onHook(withToken, async (_req, res, hook) => {
        answer(res, 200, { status: 'Ok', ...(await checkHook(services, hook)) });
      }),
    )
    .patch(
      onHook(withToken, async (req, res, hook) => {
        countHookChange(services, hook);
        const update = await readInput(req, res, parseUpdate);
        const { health, secret } = await updateHook(services, hook, update);
        answer(res, 200, { status: 'Ok', ...health, ...(secret === null ? {} : { secret }) });
      }),
    )
    .delete(
      onHook(withToken, async (_req, res, hook) => {
        await unregisterHook(services, hook);
        answer(res, 202, { status: 'Ok' });
      }),
    )
    .all(withToken(async (req, res) => refuseMethod(req, res, ['GET', 'HEAD', 'PATCH', 'DELETE'])));
}

/** What a hook has sent and is to send: ping, delivery log, redelivery. */
function addLogRoutes(router: Router, services: Services, { withToken, readInput }: RouteParts): void {
  router
    .route('/:token/reverse/:id/ping')
    .post(
      onHook(withToken, async (_req, res, hook) => {
        answer(res, 200, (await pingHook(services, hook)).result);
      }),
    )
    .all(withToken(async (req, res) => refuseMethod(req, res, ['POST'])));
  router
    .route('/:token/reverse/:id/deliveries')
    .get(
      onHook(withToken, async (req, res, hook) => {
        const request = parseLogRequest(req);
        answerLog(res, await hookLog(services, hook, request), request.limit);
      }),
    )
    .all(withToken(async (req, res) => refuseMethod(req, res, ['GET', 'HEAD'])));
  router
    .route('/:token/reverse/:id/redeliver')
    .post(
      onHook(withToken, async (req, res, hook) => {
        countHookChange(services, hook);
        const asked = await readInput(req, res, parseRedelivery);
        if (asked === 'discard_backlog') {
          answer(res, 202, { status: 'Ok', skipped: await skipHookBacklog(services, hook) });
        } else answer(res, 202, { status: 'Ok', ...(await redeliver(services, hook, asked)) });
      }),
    )
    .all(withToken(async (req, res) => refuseMethod(req, res, ['POST'])));
}

/** The link to the next page is relative to this one: it does not hold the token. */
function answerLog(res: Response, { attempts, next }: LogAnswer, limit: number): void {
  const rows = attempts.map(({ last_seq: last, ...row }) => (last === row.seq ? row : { ...row, last_seq: last }));
  answer(res, 200, rows, next === null ? {} : { link: `<?before=${next}&limit=${limit}>; rel="next"` });
}
