import * as z from 'zod';
import { actorByAccess } from './hook-actor.ts';
import { hookChangesSchema } from './hook-update.ts';
import { limitGroupHookRegistrations, registerNewHook } from './hooks.ts';
import { countCodePoints } from '../core/message-text.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { groupReference } from '../core/schemas.ts';

const MAX_DESCRIPTION_LENGTH = 200;
/** Before it is normalised; what is left of it has a bound of its own. */
const MAX_RAW_URL_LENGTH = 8_192;

export const createHook = defineTargetedOperation({
  name: 'hooks.create',
  summary:
    'Register a reverse webhook of a group: each message committed from now on is forwarded to its URL, and each change of one if it asks for `events`.',
  input: z.strictObject({
    group: groupReference,
    url: z.string().max(MAX_RAW_URL_LENGTH),
    description: z
      .string()
      .max(2 * MAX_DESCRIPTION_LENGTH)
      .refine(
        (text) => countCodePoints(text) <= MAX_DESCRIPTION_LENGTH,
        `has more than ${MAX_DESCRIPTION_LENGTH} characters`,
      )
      .optional(),
    order: hookChangesSchema.order,
    batch: hookChangesSchema.batch,
    signature: hookChangesSchema.signature,
    skip: hookChangesSchema.skip,
    events: hookChangesSchema.events,
  }),
  output: z.object({
    id: z.int(),
    group: z.int(),
    /** Shown here, and when it is replaced, only. */
    secret: z.string(),
  }),
  who: 'group-admin',
  on: 'group',
  scope: 'hooks:manage',
  errors: [
    'invalid_hook_url',
    'hook_address_forbidden',
    'no_server_key',
    'hook_exists',
    'too_many_hooks',
    'token_rate_limited',
  ],
  run: async (services, { url, description = null, ...options }, caller, access) => {
    const { order = 'strict', batch = 1, signature = 'v1', skip = [], events = [] } = options;
    const kinds = { skip: [...new Set(skip)], events: [...new Set(events)] };
    const request = { url, description, order, batch, signature, ...kinds };
    const actor = actorByAccess(access, caller);
    limitGroupHookRegistrations(services, actor);
    const { id, secret } = await registerNewHook(services, actor, request);
    return { id, group: access.conversationId, secret };
  },
});
