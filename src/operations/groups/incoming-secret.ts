import * as z from 'zod';
import { newHookSecret } from '../../model/hook-secret.ts';
import {
  INCOMING_SECRET_LENGTH_PROBLEM,
  INCOMING_SECRET_SEAL_PURPOSE,
  incomingSecretProblem,
  MAX_INCOMING_SECRET_LENGTH,
} from '../../model/incoming-secret.ts';
import {
  findIncomingSecret,
  updateIncomingSecret,
  type SealedIncomingSecret,
} from '../../storage/groups/integrations.ts';
import { readThenRecheckRole } from '../core/conversation-access.ts';
import { translateCommitUnknown } from '../core/database-errors.ts';
import { withLockedGroup } from '../core/group-transaction.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { groupField, groupReference } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';

const incomingSecretSchema = z.object({
  group: groupField,
  secret: z
    .string()
    .nullable()
    .describe('The secret that signs posts; null: there is none, and the server checks no signatures.'),
  signed_only: z.boolean().describe('Every post has to be signed, also one of a format without signatures.'),
});

const secretSchema = z
  .string()
  .max(MAX_INCOMING_SECRET_LENGTH, { error: INCOMING_SECRET_LENGTH_PROBLEM, abort: true })
  .superRefine((text, context) => {
    const problem = incomingSecretProblem(text);
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  });

export const showIncomingSecret = defineTargetedOperation({
  name: 'groups.show-incoming-secret',
  summary: 'Show the secret that signs posts into a group.',
  input: z.strictObject({ group: groupReference }),
  output: incomingSecretSchema,
  who: 'group-admin',
  on: 'group',
  scope: 'hooks:manage',
  errors: [],
  run: async (services, _input, caller, access) => {
    const { conversationId } = access;
    const sealedSecret = await readThenRecheckRole(
      services,
      { access, caller, on: 'group', requiredRole: 'group-admin' },
      (sql) => findIncomingSecret(sql, conversationId),
    );
    return incomingSecretResponse(services, conversationId, sealedSecret);
  },
});

export const setIncomingSecret = defineTargetedOperation({
  name: 'groups.set-incoming-secret',
  summary: 'Demand signatures of posts into a group, with a given or a new secret.',
  input: z
    .strictObject({
      group: groupReference,
      secret: secretSchema
        .optional()
        .describe(
          'The secret that a program made, such as Sentry. Absent: the present one stays, or a new one is made.',
        ),
      rotate: z.boolean().optional().describe('Make a new secret in the place of the present one.'),
      signed_only: z
        .boolean()
        .optional()
        .describe('Refuse every post without a signature, also of formats that have none. Absent: as before.'),
    })
    .refine(({ secret, rotate }) => secret === undefined || rotate !== true, 'give "secret" or "rotate", not both'),
  output: incomingSecretSchema,
  who: 'group-admin',
  on: 'group',
  scope: 'hooks:manage',
  errors: [],
  run: async (services, { secret, rotate = false, signed_only: signedOnly }, caller, access) => {
    const { sealer } = services;
    const seal = (text: string): string => sealer.seal(INCOMING_SECRET_SEAL_PURPOSE, text);
    const secretChange = withLockedGroup(services, { access, caller, requiredRole: 'group-admin' }, async (group) => {
      const { tx, conversationId } = group;
      const presentSecret = await findIncomingSecret(tx, conversationId);
      const sealed = secret === undefined && !rotate ? presentSecret?.sealed : seal(secret ?? newHookSecret());
      const newSecret = {
        sealed: sealed ?? seal(newHookSecret()),
        signedOnly: signedOnly ?? presentSecret?.signedOnly ?? false,
      };
      await group.addNotice('incoming_secret_set', { signed_only: newSecret.signedOnly });
      group.queueTokenRevokedEvent(await updateIncomingSecret(tx, conversationId, newSecret));
      return newSecret;
    });
    return incomingSecretResponse(services, access.conversationId, await translateSecretCommitUnknown(secretChange));
  },
});

export const removeIncomingSecret = defineTargetedOperation({
  name: 'groups.remove-incoming-secret',
  summary: 'Remove the secret for signatures of posts into a group: the server no longer checks signatures.',
  input: z.strictObject({ group: groupReference }),
  output: z.object({
    group: groupField,
    changed: z.boolean().describe('False: there was none.'),
  }),
  who: 'group-admin',
  on: 'group',
  scope: 'hooks:manage',
  errors: [],
  run: async (services, _input, caller, access) => {
    const removal = withLockedGroup(services, { access, caller, requiredRole: 'group-admin' }, async (group) => {
      const { tx, conversationId } = group;
      if ((await findIncomingSecret(tx, conversationId)) === null) return false;
      await group.addNotice('incoming_secret_removed');
      group.queueTokenRevokedEvent(await updateIncomingSecret(tx, conversationId, null));
      return true;
    });
    return { group: access.conversationId, changed: await translateSecretCommitUnknown(removal) };
  },
});

async function translateSecretCommitUnknown<T>(change: Promise<T>): Promise<T> {
  try {
    return await change;
  } catch (error) {
    const sentence = 'The secret may have been changed: look at it before you repeat it (groups.show-incoming-secret)';
    throw translateCommitUnknown(error, sentence);
  }
}

function incomingSecretResponse(
  { sealer }: Services,
  group: number,
  sealedSecret: SealedIncomingSecret | null,
): z.infer<typeof incomingSecretSchema> {
  const secret = sealedSecret === null ? null : sealer.open(INCOMING_SECRET_SEAL_PURPOSE, sealedSecret.sealed);
  return { group, secret, signed_only: sealedSecret?.signedOnly ?? false };
}
