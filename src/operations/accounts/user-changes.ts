import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { AccountId } from '../../model/ids.ts';
import { parseProofAddress } from '../../model/proof-address.ts';
import { findAddressHolder, replaceAddress } from '../../storage/accounts/addresses.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import { CommitUnknownError, violates } from '../../storage/db/database-error.ts';
import { findTargetAccount, type TargetAccount } from '../../storage/groups/members.ts';
import { setDeactivated, updateProfile } from '../../storage/accounts/profiles.ts';
import { endSessions } from '../../storage/accounts/session-list.ts';
import { deleteSignInLinks } from '../../storage/accounts/sign-in-links.ts';
import { userNotFound, requireActiveAccount } from '../core/account-reference.ts';
import { defineOperation } from '../core/operation.ts';
import { serializeProfile, profileSchema } from './profile.ts';
import type { Services } from '../core/services.ts';
import { nickSchema, titleSchema } from '../core/schemas.ts';

const ADDRESS_TAKEN = 'address: it belongs to another account';

const stateSchema = z.object({ user: z.string(), id: z.int(), deactivated: z.boolean() });

export const updateUser = defineOperation({
  name: 'accounts.update',
  summary:
    'Change an account: its name, whether the person is an administrator of the installation, the address to sign in with.',
  input: z
    .strictObject({
      user: nickSchema,
      name: titleSchema.optional(),
      admin: z.boolean().optional(),
      /** An e-mail address or telephone number: it takes the place of the one of its kind. */
      address: z.string().min(1).max(320).optional(),
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
    const proof = address === undefined ? null : parseProofAddress(address);
    if (typeof proof === 'string') throw new KlatchError('invalid_input', { sentence: `address: ${proof}` });
    const role = admin === undefined ? undefined : admin ? ('admin' as const) : ('user' as const);
    return changeAccounts(services, async (tx) => {
      const { id } = await requireActiveAccount(tx, user);
      const profile = await updateProfile(tx, id, { name, role });
      if (profile === null) throw userNotFound(user);
      if (profile.kind === 'bot' && (role !== undefined || proof !== null)) {
        throw new KlatchError('invalid_input', { sentence: `${user} is a bot: it has neither a role nor an address` });
      }
      if (proof !== null) {
        const holder = await findAddressHolder(tx, proof);
        if (holder !== null && holder.accountId !== id) {
          throw new KlatchError('invalid_input', { sentence: ADDRESS_TAKEN });
        }
        await replaceAddress(tx, id, proof);
      }
      return { result: serializeProfile(profile), changed: [id] };
    });
  },
});

export const deactivateUser = defineOperation({
  name: 'accounts.deactivate',
  summary:
    'Take an account out of use, and the bots that it owns: their sessions and tokens end, what they have written stays.',
  input: z.strictObject({ user: nickSchema }),
  output: stateSchema,
  who: 'administrator',
  scope: null,
  errors: ['not_found'],
  run: (services, { user }) =>
    changeAccounts(services, async (tx) => {
      const { id, nick } = await requireAccount(tx, user);
      // Who signs in at this moment holds the account's lock: this waits, and then finds the session.
      const changed = await setDeactivated(tx, id, true);
      const ended = await endSessions(tx, [id, ...changed]);
      await deleteSignInLinks(tx, id);
      return { result: { user: nick, id, deactivated: true }, changed, ended };
    }),
});

export const activateUser = defineOperation({
  name: 'accounts.activate',
  summary: 'Take an account back into use. Its bots stay as they are: each is activated by its own nick.',
  input: z.strictObject({ user: nickSchema }),
  output: stateSchema,
  who: 'administrator',
  scope: null,
  errors: ['not_found'],
  run: (services, { user }) =>
    changeAccounts(services, async (tx) => {
      const { id, nick } = await requireAccount(tx, user);
      const changed = await setDeactivated(tx, id, false);
      return { result: { user: nick, id, deactivated: false }, changed };
    }),
});

interface AccountChange<T> {
  readonly result: T;
  readonly changed: readonly AccountId[];
  readonly ended?: Awaited<ReturnType<typeof endSessions>>;
}

/** One transaction, after which everybody hears of it; also where its answer was lost, for it may have been done. */
async function changeAccounts<T>(
  { database, bus }: Services,
  work: (tx: Transaction) => Promise<AccountChange<T>>,
): Promise<T> {
  const publish = ({ changed, ended = [] }: Omit<AccountChange<T>, 'result'>): void => {
    if (ended.length > 0) bus.publish('sessionsEnded', ended);
    if (changed.length > 0) bus.publish('accountsChanged', changed);
  };
  let made: AccountChange<T> | null = null;
  try {
    made = await database.general.transaction(async (tx) => (made = await work(tx)));
  } catch (error) {
    if (error instanceof CommitUnknownError && made !== null) publish(made);
    if (violates(error, 'account_address_pkey')) {
      throw new KlatchError('invalid_input', { sentence: ADDRESS_TAKEN, cause: error });
    }
    throw error;
  }
  publish(made);
  return made.result;
}

/** The account of a nick, a deactivated one too. Throws `not_found`. */
async function requireAccount(tx: Transaction, user: string): Promise<TargetAccount> {
  const found = await findTargetAccount(tx, user);
  if (found === null) throw userNotFound(user);
  return found;
}
