import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { addressKinds } from '../../model/proof-address.ts';
import { violatesUnique } from '../../storage/db/database-error.ts';
import { findProfile, listAddresses, updateProfile, type Profile } from '../../storage/accounts/profiles.ts';
import { userNotFound, userReference } from '../core/account-reference.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { requireAccount } from '../core/caller.ts';
import { defineOperation } from '../core/operation.ts';
import {
  aboutSchema,
  accountField,
  accountKindField,
  createdAtField,
  installationRoleSchema,
  nameField,
  nameOrTitleSchema,
  nickField,
  nickSchema,
} from '../core/schemas.ts';

/** An account as others see it. */
export const profileSchema = z.object({
  id: accountField,
  kind: accountKindField,
  nick: nickField,
  name: nameField,
  about: z.string().nullable().describe("Description that the account's owner wrote; null: none."),
  role: installationRoleSchema,
  created_at: createdAtField,
});

export function serializeProfile({ createdAt, ...profile }: Profile): z.infer<typeof profileSchema> {
  return { ...profile, created_at: createdAt.toISOString() };
}

const ownProfileSchema = profileSchema.extend({
  addresses: z
    .array(
      z.object({
        kind: z.enum(addressKinds).describe('Kind of the address.'),
        address: z.string().describe('The address, in the form in which it is compared.'),
      }),
    )
    .describe('Addresses that the account signs in with; nobody else sees them.'),
});

export const showOwnProfile = defineOperation({
  name: 'profile.show',
  summary: "Show the caller's own account.",
  input: z.strictObject({}),
  output: ownProfileSchema,
  who: 'account',
  scope: 'account',
  errors: [],
  run: async ({ database }, _input, caller) => {
    const { accountId } = requireAccount(caller);
    return translateLostRead(
      database.general.run(async (sql) => {
        const profile = await findProfile(sql, { id: accountId });
        // The account was deactivated after its request was authenticated.
        if (profile === null) throw new KlatchError('unauthenticated');
        return { ...serializeProfile(profile), addresses: await listAddresses(sql, accountId) };
      }),
    );
  },
});

export const changeOwnProfile = defineOperation({
  name: 'profile.update',
  summary: "Change the caller's nick, name or description.",
  input: z
    .strictObject({
      nick: nickSchema.optional(),
      name: nameOrTitleSchema.optional().describe('The name that others see.'),
      about: aboutSchema.nullable().optional().describe("Description that the account's owner wrote; null: none."),
    })
    .refine((input) => Object.values(input).some((value) => value !== undefined), 'give nick, name or about'),
  output: profileSchema,
  who: 'account',
  scope: 'account',
  errors: ['nick_taken'],
  run: async ({ database, bus }, change, caller) => {
    const { accountId } = requireAccount(caller);
    try {
      const profile = await database.general.run((sql) => updateProfile(sql, accountId, change));
      if (profile === null) throw new KlatchError('unauthenticated');
      bus.publish('accountsChanged', [accountId]);
      return serializeProfile(profile);
    } catch (error) {
      if (violatesUnique(error, 'account_nick_key')) throw new KlatchError('nick_taken', { cause: error });
      throw error;
    }
  },
});

export const findAccount = defineOperation({
  name: 'accounts.find',
  summary: 'Find a person or a bot of this installation by nick, or by number.',
  input: z.strictObject({ user: userReference }),
  output: profileSchema,
  who: 'account',
  scope: 'groups:read',
  errors: ['not_found'],
  run: async ({ database }, { user }) => {
    const request = typeof user === 'number' ? { id: user as Profile['id'] } : { nick: user };
    const profile = await translateLostRead(database.general.run((sql) => findProfile(sql, request)));
    if (profile === null) throw userNotFound(user);
    return serializeProfile(profile);
  },
});
