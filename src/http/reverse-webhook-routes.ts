import { Router, type Request, type Response } from 'express';
import type { TrustedProxies } from '../model/trusted-proxies.ts';
import { actorByToken, limitGroupHookChanges, hookByToken, type HookAccess } from '../operations/hooks/hook-actor.ts';
import { unregisterHook, applyHookUpdate } from '../operations/hooks/hook-update.ts';
import { readHookLog, type HookLogPage } from '../operations/hooks/hook-delivery-log.ts';
import { sendHookPing } from '../operations/hooks/hook-ping.ts';
import { redeliverMessages, skipHookBacklog } from '../operations/hooks/hook-redeliver.ts';
import {
  readHookHealth,
  limitGroupHookRegistrations,
  queryGroupHookSummaries,
  registerNewHook,
} from '../operations/hooks/hooks.ts';
import { HOOK_MANAGEMENT_LIMITS } from '../operations/core/input-limits.ts';
import type { Services } from '../operations/core/services.ts';
import { bodySizeLimit, readBody } from './body.ts';
import { hookIdOf, parseHookLogRequest, parseRedelivery, parseRegistration, parseHookUpdate } from './hook-input.ts';
import { sendJson, sendMethodNotAllowed, parseBudgetExhaustedError } from './responses.ts';
import type { TokenGrant, TokenAuth, TokenHandler, WithToken } from './token-auth.ts';

/** Serves `/v1/webhooks/:token/reverse` and the paths below it. */
export function reverseWebhookRoutes(services: Services, tokenAuth: TokenAuth, proxies: TrustedProxies): Router {
  const router = Router({ caseSensitive: true });
  const withToken = tokenAuth.withVerifiedToken();
  const readInput = inputReader(services, proxies);
  router
    .route('/:token/reverse')
    .get(
      withToken(async (_req, res, { integration }) => {
        sendJson(res, 200, await queryGroupHookSummaries(services, integration.conversationId));
      }),
    )
    .post(
      withToken(async (req, res, { integration }) => {
        const actor = actorByToken(integration);
        // The rate is checked before the body is read: the body of a registration above the rate is neither read nor
        // parsed.
        limitGroupHookRegistrations(services, actor);
        const request = await readInput(req, res, parseRegistration);
        sendJson(res, 201, await registerNewHook(services, actor, request));
      }),
    )
    .all(withToken(async (req, res) => sendMethodNotAllowed(req, res, ['GET', 'HEAD', 'POST'])));
  addSingleHookRoutes(router, services, { withToken, readInput });
  addDeliveryRoutes(router, services, { withToken, readInput });
  return router;
}

/** Reads a body and parses it, within the size limit and the parse budget of its source. */
type ReadInput = <T>(req: Request, res: Response, parse: (body: Buffer) => T) => Promise<T>;

function inputReader({ config, parseBudget }: Services, proxies: TrustedProxies): ReadInput {
  const size = bodySizeLimit(config.http, HOOK_MANAGEMENT_LIMITS);
  return async (req, res, parse) => {
    const source = proxies.sourceKeyOf(req);
    if (!parseBudget.hasTimeLeft(source)) throw parseBudgetExhaustedError();
    const body = await readBody(req, res, size);
    return parseBudget.run(source, parseBudgetExhaustedError, () => parse(body));
  };
}

/** Dependencies of the routes of one hook. */
interface RouteDeps {
  readonly withToken: WithToken;
  readonly readInput: ReadInput;
}

type HookHandler = (req: Parameters<TokenHandler>[0], res: Response, hook: HookAccess) => Promise<void>;

/** Calls the handler with the hook that a valid token and the number in the path name. */
function withTokenAndHookId(withToken: WithToken, handler: HookHandler): ReturnType<WithToken> {
  return withToken((req, res, { integration }: TokenGrant) =>
    handler(req, res, hookByToken(integration, hookIdOf(req))),
  );
}

/** Routes of one hook: its health, its settings, its removal. */
function addSingleHookRoutes(router: Router, services: Services, { withToken, readInput }: RouteDeps): void {
  router
    .route('/:token/reverse/:id')
    .get(
      withTokenAndHookId(withToken, async (_req, res, hook) => {
        sendJson(res, 200, { status: 'Ok', ...(await readHookHealth(services, hook)) });
      }),
    )
    .patch(
      withTokenAndHookId(withToken, async (req, res, hook) => {
        limitGroupHookChanges(services, hook);
        const update = await readInput(req, res, parseHookUpdate);
        const { health, newSecrets: shown } = await applyHookUpdate(services, hook, update);
        sendJson(res, 200, { status: 'Ok', ...health, ...shown });
      }),
    )
    .delete(
      withTokenAndHookId(withToken, async (_req, res, hook) => {
        await unregisterHook(services, hook);
        sendJson(res, 202, { status: 'Ok' });
      }),
    )
    .all(withToken(async (req, res) => sendMethodNotAllowed(req, res, ['GET', 'HEAD', 'PATCH', 'DELETE'])));
}

/** Routes of a hook's deliveries: ping, delivery log, redelivery. */
function addDeliveryRoutes(router: Router, services: Services, { withToken, readInput }: RouteDeps): void {
  router
    .route('/:token/reverse/:id/ping')
    .post(
      withTokenAndHookId(withToken, async (_req, res, hook) => {
        sendJson(res, 200, (await sendHookPing(services, hook)).result);
      }),
    )
    .all(withToken(async (req, res) => sendMethodNotAllowed(req, res, ['POST'])));
  router
    .route('/:token/reverse/:id/deliveries')
    .get(
      withTokenAndHookId(withToken, async (req, res, hook) => {
        const request = parseHookLogRequest(req);
        sendHookLog(res, await readHookLog(services, hook, request), request.limit);
      }),
    )
    .all(withToken(async (req, res) => sendMethodNotAllowed(req, res, ['GET', 'HEAD'])));
  router
    .route('/:token/reverse/:id/redeliver')
    .post(
      withTokenAndHookId(withToken, async (req, res, hook) => {
        limitGroupHookChanges(services, hook);
        const redelivery = await readInput(req, res, parseRedelivery);
        if (redelivery === 'discard_backlog') {
          sendJson(res, 202, { status: 'Ok', skipped: await skipHookBacklog(services, hook) });
        } else {
          const { from, pending } = await redeliverMessages(services, hook, redelivery);
          sendJson(res, 202, { status: 'Ok', from, pending });
        }
      }),
    )
    .all(withToken(async (req, res) => sendMethodNotAllowed(req, res, ['POST'])));
}

/** Sends a page of a hook's delivery log. The link to the next page is relative, so it does not hold the token. */
function sendHookLog(res: Response, { attempts, next }: HookLogPage, limit: number): void {
  const rows = attempts.map(({ last_seq: last, last_rev: lastRev, ...row }) => ({
    ...row,
    ...(last === row.seq ? {} : { last_seq: last }),
    ...(lastRev === row.rev ? {} : { last_rev: lastRev }),
  }));
  sendJson(res, 200, rows, next === null ? {} : { link: `<?before=${next}&limit=${limit}>; rel="next"` });
}
