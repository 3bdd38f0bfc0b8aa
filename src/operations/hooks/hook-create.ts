import * as z from 'zod';
import { actorByAccess } from './hook-actor.ts';
import { hookDescriptionSchema, hookOptionsSchema, newHookOptions } from './hook-options.ts';
import { MAX_URL_CHARACTERS } from './hook-url.ts';
import { limitGroupHookRegistrations, registerNewHook } from './hooks.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { groupField, groupReference, hookField } from '../core/schemas.ts';

/** Bounds the URL before it is normalised; the normalised URL has a bound of its own. */
const MAX_RAW_URL_LENGTH = 8_192;

export const createHook = defineTargetedOperation({
  name: 'hooks.create',
  summary:
    'Register a reverse webhook of a group. It sends each new message to its URL, and the changes of messages that `events` names.',
  input: z.strictObject({
    group: groupReference,
    url: z
      .string()
      .max(MAX_RAW_URL_LENGTH)
      .describe(
        'The target: an absolute http or https URL, without a user, a password, a `#` and port 0. ' +
          `Normalised, it has at most ${MAX_URL_CHARACTERS} characters.`,
      ),
    description: hookDescriptionSchema.optional(),
    ...hookOptionsSchema,
  }),
  output: z.object({
    id: hookField,
    group: groupField,
    secret: z.string().describe('The secret that signs its requests. Only this answer and its rotation show it.'),
    token: z
      .string()
      .optional()
      .describe('With format `mattermost`: what its requests carry as `token`. It follows from the secret.'),
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
    const actor = actorByAccess(access, caller);
    limitGroupHookRegistrations(services, actor);
    const { id, ...shown } = await registerNewHook(services, actor, { url, description, ...newHookOptions(options) });
    return { id, group: access.conversationId, ...shown };
  },
});
