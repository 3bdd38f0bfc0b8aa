import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { ProofAddress } from '../../model/proof-address.ts';
import type { SourceKey } from '../../model/source-key.ts';
import { insertAccount } from '../../storage/accounts/accounts.ts';
import { consumeVerifiedActivation } from '../../storage/accounts/activations.ts';
import { findAddressHolder, insertAddress } from '../../storage/accounts/addresses.ts';
import type { SessionLifetime } from '../../storage/accounts/sessions.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import { violatesUnique } from '../../storage/db/database-error.ts';
import { transactionSchema } from './auth-verify.ts';
import { callerSource } from '../core/caller.ts';
import { BROWSER_SESSION_IDLE_S } from '../core/session-cookie.ts';
import { withEventsAfterCommit, type PendingEvents } from '../core/group-transaction.ts';
import { requireInvite } from '../groups/invites.ts';
import { acceptInvite, inviteLinkOrTokenSchema } from '../groups/join-group.ts';
import { defineOperation } from '../core/operation.ts';
import type { Services } from '../core/services.ts';
import {
  accountDeactivated,
  chooseLifetime,
  expiresInSchema,
  hashOpaqueToken,
  sessionOrDeviceLabelSchema,
  openSession,
  publishEndedSurplusSessions,
  signedInSchema,
  type OpenedSession,
  type NewSessionOptions,
  type SignedIn,
} from './sign-in.ts';
import { nickSchema, nameOrTitleSchema } from '../core/schemas.ts';

interface SignUpRequest extends NewSessionOptions {
  /** The hash of the sign-in transaction (`auth.start`) that proved an address; null: an invitation is the proof. */
  readonly transactionHash: string | null;
  readonly nick: string;
  readonly name: string;
  readonly invite: string | undefined;
}

const signUpInputSchema = z.strictObject({
  transaction: transactionSchema
    .optional()
    .describe('As `auth.verify` answered it. Not given: the invitation is the proof, where the server sends no codes.'),
  nick: nickSchema,
  name: nameOrTitleSchema.optional().describe('The name that others see; not given: the nick.'),
  invite: inviteLinkOrTokenSchema.optional().describe('The link of an invitation into a group, or its token.'),
  label: sessionOrDeviceLabelSchema.optional().describe('As in `auth.verify`.'),
  expires_in_s: expiresInSchema.optional().describe('As in `auth.verify`.'),
});

export const signUp = defineOperation({
  name: 'auth.sign-up',
  summary:
    'Create an account for the address that a transaction has proven, and sign in; with an invitation, join its group. Where the server sends no codes, an invitation is enough.',
  input: signUpInputSchema,
  output: signedInSchema,
  who: 'anybody',
  scope: null,
  errors: [
    'activation_expired',
    'group_archived',
    'invalid_invite',
    'quota_exceeded',
    'nick_taken',
    'registration_closed',
    'rate_limited',
  ],
  run: (services, input, caller) =>
    signUpWith(services, input, { source: callerSource(caller), defaultLifetime: null }),
});

/**
 * `auth.sign-up` for a browser; only `POST /v1/session` calls it. Unless the input has `expires_in_s`, the session ends
 * after a month without use.
 */
export const signUpInBrowser: typeof signUp = {
  ...signUp,
  run: (services, input, caller) =>
    signUpWith(services, input, {
      source: callerSource(caller),
      defaultLifetime: { idleTimeoutS: BROWSER_SESSION_IDLE_S },
    }),
};

async function signUpWith(
  services: Services,
  { transaction, nick, name = nick, invite, label, expires_in_s: expiresInS }: z.infer<typeof signUpInputSchema>,
  { source, defaultLifetime }: { source: SourceKey | null; defaultLifetime: SessionLifetime },
): Promise<SignedIn> {
  const { config, activations } = services;
  if (source !== null) activations.limitSignInSteps(source);
  const { registration } = config;
  if (registration === 'closed' || (registration === 'invite' && invite === undefined)) {
    throw new KlatchError('registration_closed');
  }
  if (transaction === undefined) {
    requireInviteAsProof(services, invite);
    if (source !== null) activations.limitUncodedSignUps(source);
  }
  const lifetime = chooseLifetime(expiresInS, defaultLifetime);
  const transactionHash = transaction === undefined ? null : hashOpaqueToken(transaction);
  const request = { transactionHash, nick, name, label, lifetime, invite };
  try {
    const openedSession = await withEventsAfterCommit(services, (tx, events) =>
      createAccountWithSession(services, { tx, events }, request),
    );
    activations.metrics.signInsByProof.sign_up += 1;
    return publishEndedSurplusSessions(services, openedSession);
  } catch (error) {
    if (violatesUnique(error, 'account_nick_key')) throw new KlatchError('nick_taken', { cause: error });
    // Another sign-up with the same address was faster.
    if (violatesUnique(error, 'account_address_pkey')) throw new KlatchError('activation_expired', { cause: error });
    throw error;
  }
}

/**
 * For a sign-up without a proved address: throws `invalid_input` unless the server sends no codes and an invitation is
 * given. If the server sends codes, a new account needs an address: its owner can then sign in again without help.
 */
function requireInviteAsProof({ activations }: Services, invite: string | undefined): void {
  if (activations.providers.length > 0) {
    const sentence = 'transaction: this server sends codes; begin a sign-up with auth.start, which answers one';
    throw new KlatchError('invalid_input', { sentence });
  }
  if (invite === undefined) {
    const sentence = 'invite: this server sends no codes, so an account needs the link of an invitation into a group';
    throw new KlatchError('invalid_input', { sentence });
  }
}

/**
 * Creates account, address, session and membership in one transaction of the database. If it fails, the invitation and
 * the proof of the address stay valid for another attempt.
 */
async function createAccountWithSession(
  services: Services,
  { tx, events }: { tx: Transaction; events: PendingEvents },
  { transactionHash, nick, name, label, lifetime, invite }: SignUpRequest,
): Promise<OpenedSession> {
  // The invitation is checked before the nick: without a valid invitation, the answer must not show which nicks are
  // taken.
  if (invite !== undefined) await requireInvite(tx, invite);
  const address = transactionHash === null ? null : await consumeProofOfFreeAddress(tx, transactionHash);
  const accountId = await insertAccount(tx, { kind: 'user', nick, name, role: 'user' });
  if (address !== null) await insertAddress(tx, accountId, address);
  if (invite !== undefined) {
    await acceptInvite(services, { tx, events }, { link: invite, account: { id: accountId, nick } });
  }
  const openedSession = await openSession(tx, { accountId, label, lifetime }, services.config.limits.sessionsPerUser);
  if (openedSession === null) throw accountDeactivated();
  return openedSession;
}

/**
 * Uses up a sign-in transaction of `auth.start` and `auth.verify`, and returns the address that it proved. Throws
 * `activation_expired`, also if an account has the address.
 */
async function consumeProofOfFreeAddress(tx: Transaction, transactionHash: string): Promise<ProofAddress> {
  const address = await consumeVerifiedActivation(tx, transactionHash);
  if (address === null) throw new KlatchError('activation_expired');
  if ((await findAddressHolder(tx, address)) !== null) {
    throw new KlatchError('activation_expired', { sentence: 'This address has an account by now: sign in with it' });
  }
  return address;
}
