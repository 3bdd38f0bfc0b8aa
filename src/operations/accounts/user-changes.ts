import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { AccountId } from '../../model/ids.ts';
import { parseProofAddress } from '../../model/proof-address.ts';
import { findAddressHolder, replaceAddress } from '../../storage/accounts/addresses.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import { CommitUnknownError, violatesUnique } from '../../storage/db/database-error.ts';
import { findTargetAccount, type TargetAccount } from '../../storage/groups/members.ts';
import { deactivateWithBotsOrReactivate, updateProfile } from '../../storage/accounts/profiles.ts';
import { endSessionsOfAccounts } from '../../storage/accounts/session-list.ts';
import { deleteSignInLinks } from '../../storage/accounts/sign-in-links.ts';
import { userNotFound, requireActiveAccount } from '../core/account-reference.ts';
import { defineOperation } from '../core/operation.ts';
import { serializeProfile, profileSchema } from './profile.ts';
import type { Services } from '../core/services.ts';
import { accountField, nameOrTitleSchema, nickField, nickSchema } from '../core/schemas.ts';

const ADDRESS_TAKEN_SENTENCE =
  'address: it belongs to another account; give another one, or first give that account another one';

const deactivationStateSchema = z.object({
  user: nickField,
  id: accountField,
  deactivated: z.boolean().describe('Whether the account is deactivated now.'),
});

export const updateUser = defineOperation({
  name: 'accounts.update',
  summary: 'Change an account: its name, its role in the installation, or its address for sign-ins.',
  input: z
    .strictObject({
      user: nickSchema,
      name: nameOrTitleSchema.optional().describe('The name that others see.'),
      admin: z.boolean().optional().describe('Whether the person is an administrator of the installation.'),
      address: z
        .string()
        .min(1)
        .max(320)
        .optional()
        .describe('An e-mail address or telephone number: it takes the place of the one of its kind.'),
    })
    .refine(
      ({ name, admin, address }) => name !== undefined || admin !== undefined || address !== undefined,
      'give name, admin or address',
    ),
  output: profileSchema,
  who: 'administrator',
  scope: null,
  errors: ['not_found'],
  run: async (services, { user, name, admin, address }) => {
    const parsedAddress = address === undefined ? null : parseProofAddress(address);
    if (typeof parsedAddress === 'string')
      throw new KlatchError('invalid_input', { sentence: `address: ${parsedAddress}` });
    const role = admin === undefined ? undefined : admin ? ('admin' as const) : ('user' as const);
    return withAccountChangeEvents(services, async (tx) => {
      const { id } = await requireActiveAccount(tx, user);
      const profile = await updateProfile(tx, id, { name, role });
      if (profile === null) throw userNotFound(user);
      if (profile.kind === 'bot' && (role !== undefined || parsedAddress !== null)) {
        const sentence = `${user} is a bot, which has neither a role nor an address: change only its name`;
        throw new KlatchError('invalid_input', { sentence });
      }
      if (parsedAddress !== null) {
        const holder = await findAddressHolder(tx, parsedAddress);
        if (holder !== null && holder.accountId !== id) {
          throw new KlatchError('invalid_input', { sentence: ADDRESS_TAKEN_SENTENCE });
        }
        await replaceAddress(tx, id, parsedAddress);
      }
      return { result: serializeProfile(profile), changedAccounts: [id] };
    });
  },
});

export const deactivateUser = defineOperation({
  name: 'accounts.deactivate',
  summary: 'Deactivate an account and its bots. Their sessions and tokens end; their messages stay.',
  input: z.strictObject({ user: nickSchema }),
  output: deactivationStateSchema,
  who: 'administrator',
  scope: null,
  errors: ['not_found'],
  run: (services, { user }) =>
    withAccountChangeEvents(services, async (tx) => {
      const { id, nick } = await requireAccountEvenDeactivated(tx, user);
      // A concurrent sign-in holds the lock of the account. This statement waits for the lock, so that the next
      // statement also ends the session of that sign-in.
      const changedAccounts = await deactivateWithBotsOrReactivate(tx, id, true);
      const endedSessions = await endSessionsOfAccounts(tx, [id, ...changedAccounts]);
      await deleteSignInLinks(tx, id);
      return { result: { user: nick, id, deactivated: true }, changedAccounts, endedSessions };
    }),
});

export const reactivateUser = defineOperation({
  name: 'accounts.activate',
  summary: 'Activate an account again. Its bots stay as they are: activate each by its own nick.',
  input: z.strictObject({ user: nickSchema }),
  output: deactivationStateSchema,
  who: 'administrator',
  scope: null,
  errors: ['not_found'],
  run: (services, { user }) =>
    withAccountChangeEvents(services, async (tx) => {
      const { id, nick } = await requireAccountEvenDeactivated(tx, user);
      const changedAccounts = await deactivateWithBotsOrReactivate(tx, id, false);
      return { result: { user: nick, id, deactivated: false }, changedAccounts };
    }),
});

interface AccountChangeResult<T> {
  readonly result: T;
  readonly changedAccounts: readonly AccountId[];
  readonly endedSessions?: Awaited<ReturnType<typeof endSessionsOfAccounts>>;
}

/**
 * Runs one transaction, and publishes the changed accounts and ended sessions after its commit. Publishes them also if
 * the answer to the commit was lost, since the changes may have been made.
 */
async function withAccountChangeEvents<T>(
  { database, bus }: Services,
  work: (tx: Transaction) => Promise<AccountChangeResult<T>>,
): Promise<T> {
  const publish = ({ changedAccounts, endedSessions = [] }: Omit<AccountChangeResult<T>, 'result'>): void => {
    if (endedSessions.length > 0) bus.publish('sessionsEnded', endedSessions);
    if (changedAccounts.length > 0) bus.publish('accountsChanged', changedAccounts);
  };
  let changeResult: AccountChangeResult<T> | null = null;
  try {
    changeResult = await database.general.transaction(async (tx) => (changeResult = await work(tx)));
  } catch (error) {
    if (error instanceof CommitUnknownError && changeResult !== null) publish(changeResult);
    if (violatesUnique(error, 'account_address_pkey')) {
      throw new KlatchError('invalid_input', { sentence: ADDRESS_TAKEN_SENTENCE, cause: error });
    }
    throw error;
  }
  publish(changeResult);
  return changeResult.result;
}

/** The account with this nick, which may be deactivated. Throws `not_found`. */
async function requireAccountEvenDeactivated(tx: Transaction, user: string): Promise<TargetAccount> {
  const found = await findTargetAccount(tx, user);
  if (found === null) throw userNotFound(user);
  return found;
}
