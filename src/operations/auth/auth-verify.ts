import { setTimeout as wait } from 'node:timers/promises';
import * as z from 'zod';
import { CODE_PATTERN } from '../../activation/activation-code.ts';
import { KlatchError } from '../../errors.ts';
import {
  consumeVerifiedActivation,
  findCodeVerifier,
  refundAttempt,
  markVerified,
  consumeAttempt,
  type ConsumedAttempt,
} from '../../storage/accounts/activations.ts';
import { findAddressHolder } from '../../storage/accounts/addresses.ts';
import type { SourceKey } from '../../model/source-key.ts';
import type { SessionLifetime } from '../../storage/accounts/sessions.ts';
import { consumeSignInLink } from '../../storage/accounts/sign-in-links.ts';
import { MAX_CODE_ATTEMPTS } from './auth-start.ts';
import { callerSource } from '../core/caller.ts';
import { BROWSER_SESSION_IDLE_S } from '../core/session-cookie.ts';
import { defineOperation } from '../core/operation.ts';
import type { Services } from '../core/services.ts';
import { withUnknownCommitInvalidation } from './session-revocation.ts';
import {
  accountDeactivated,
  chooseLifetime,
  expiresInSchema,
  hashOpaqueToken,
  sessionOrDeviceLabelSchema,
  parseLinkToken,
  openSession,
  publishEndedSurplusSessions,
  signedInSchema,
  type NewSessionOptions,
  type SignedIn,
} from './sign-in.ts';

const MAX_LINK_LENGTH = 2_048;
/**
 * The least age of an activation at which the gate's verifier of its code is read from the database. A gate that
 * answers before it calls the telephone has given the verifier by then.
 */
const VERIFIER_READ_MIN_AGE_MS = 1_000;

export const transactionSchema = z.string().min(1).max(100).describe('The name of the sign-in, as auth.start gave it.');

const signUpRequiredSchema = z.object({
  status: z.literal('sign_up').describe("The address is proven and nobody's yet: auth.sign-up makes its account."),
  transaction: z.string().describe('The same transaction, for `auth.sign-up`.'),
});

const verifyInputSchema = z
  .strictObject({
    transaction: transactionSchema.optional(),
    code: z.string().trim().regex(CODE_PATTERN, 'a code has six digits').optional().describe('The code that was sent.'),
    link: z
      .string()
      .min(1)
      .max(MAX_LINK_LENGTH)
      .optional()
      .describe('The whole link that an administrator made, or what is behind its #.'),
    label: sessionOrDeviceLabelSchema.optional().describe('Name of the new session in the list of sessions.'),
    expires_in_s: expiresInSchema
      .optional()
      .describe(
        'After so many seconds the new session ends, as on a computer that others use; not given: when somebody ends it.',
      ),
  })
  .refine(
    ({ transaction, code, link }) =>
      link === undefined ? transaction !== undefined && code !== undefined : (transaction ?? code) === undefined,
    'give transaction and code, or link',
  );
type VerifyInput = z.infer<typeof verifyInputSchema>;

const verifyOutputSchema = z.discriminatedUnion('status', [signedInSchema, signUpRequiredSchema]);
export type VerifyOutput = z.infer<typeof verifyOutputSchema>;

export const verifySignIn = defineOperation({
  name: 'auth.verify',
  summary: 'Sign in with the transaction of auth.start and the code, or with a sign-in link.',
  input: verifyInputSchema,
  output: verifyOutputSchema,
  who: 'anybody',
  scope: null,
  errors: ['activation_expired', 'invalid_code', 'forbidden', 'provider_unavailable', 'rate_limited'],
  run: (services, input, caller) =>
    verifyCodeOrLink(services, input, { source: callerSource(caller), defaultLifetime: null }),
});

/**
 * `auth.verify` for a browser; only `POST /v1/session` calls it. Unless the input has `expires_in_s`, the session ends
 * after a month without use.
 */
export const verifyBrowserSignIn: typeof verifySignIn = {
  ...verifySignIn,
  run: (services, input, caller) =>
    verifyCodeOrLink(services, input, {
      source: callerSource(caller),
      defaultLifetime: { idleTimeoutS: BROWSER_SESSION_IDLE_S },
    }),
};

function verifyCodeOrLink(
  services: Services,
  { transaction, code, link, label, expires_in_s: expiresInS }: VerifyInput,
  { source, defaultLifetime }: { source: SourceKey | null; defaultLifetime: SessionLifetime },
): Promise<VerifyOutput> {
  if (source !== null) services.activations.limitSignInSteps(source);
  const sessionOptions = { label, lifetime: chooseLifetime(expiresInS, defaultLifetime) };
  if (link !== undefined) return signInByLink(services, link, sessionOptions);
  return signInByCode(services, { transaction: transaction!, code: code! }, sessionOptions);
}

/** Signs in with a link, which works once. A used link gets `activation_expired`, like a link that never existed. */
async function signInByLink(services: Services, link: string, sessionOptions: NewSessionOptions): Promise<SignedIn> {
  const { database, config, activations } = services;
  const sentence = 'This sign-in link was used, has expired, or never existed: ask for a new one';
  const expiredError = (): KlatchError => new KlatchError('activation_expired', { sentence });
  const token = parseLinkToken(link);
  if (token === null) throw expiredError();
  const openedSession = await withUnknownCommitInvalidation(services, (noteSessionsMayEnd) =>
    database.general.transaction(async (tx) => {
      const accountId = await consumeSignInLink(tx, hashOpaqueToken(token));
      if (accountId === null) return null;
      noteSessionsMayEnd(accountId);
      return openSession(tx, { accountId, ...sessionOptions }, config.limits.sessionsPerUser);
    }),
  );
  if (openedSession === null) throw expiredError();
  activations.metrics.signInsByProof.link += 1;
  return publishEndedSurplusSessions(services, openedSession);
}

async function signInByCode(
  services: Services,
  { transaction, code }: { transaction: string; code: string },
  sessionOptions: NewSessionOptions,
): Promise<VerifyOutput> {
  const { database, config, activations } = services;
  const transactionHash = hashOpaqueToken(transaction);
  await consumeAttemptAndCheckCode(services, transactionHash, code);
  const openedSession = await withUnknownCommitInvalidation(services, (noteSessionsMayEnd) =>
    database.general.transaction(async (tx) => {
      const address = await markVerified(tx, transactionHash);
      if (address === null) throw new KlatchError('activation_expired');
      const holder = await findAddressHolder(tx, address);
      if (holder === null) return null;
      const { accountId } = holder;
      noteSessionsMayEnd(accountId);
      await consumeVerifiedActivation(tx, transactionHash);
      const session = await openSession(tx, { accountId, ...sessionOptions }, config.limits.sessionsPerUser);
      if (session === null) throw accountDeactivated();
      return session;
    }),
  );
  if (openedSession === null) return { status: 'sign_up', transaction };
  activations.metrics.signInsByProof.code += 1;
  return publishEndedSurplusSessions(services, openedSession);
}

/**
 * The verifier with which the activation gate checks the code. The telephone may ring before the verifier is stored, so
 * the verifier of a new activation is read only after a wait. The wait is the same if no code was sent, so that its
 * time does not show whether there is a code.
 */
async function readVerifierAfterMinAge(
  { database }: Services,
  transactionHash: string,
  { ageMs, verifier }: ConsumedAttempt,
): Promise<string | null> {
  if (ageMs >= VERIFIER_READ_MIN_AGE_MS) return verifier;
  await wait(VERIFIER_READ_MIN_AGE_MS - Math.max(0, ageMs));
  return database.general.run((sql) => findCodeVerifier(sql, transactionHash));
}

/**
 * Uses up an attempt, and then checks the code. Throws `activation_expired`, `invalid_code` and `provider_unavailable`.
 */
async function consumeAttemptAndCheckCode(services: Services, transactionHash: string, code: string): Promise<void> {
  const { database, activations } = services;
  const attempted = await database.general.run((sql) => consumeAttempt(sql, transactionHash));
  if (attempted === null) throw new KlatchError('activation_expired');
  const { kind, provider: name, attemptsLeft } = attempted;
  const provider = activations.chooseProvider(kind, name);
  // The provider was removed from the configuration after it had sent the code.
  if (provider === null) throw new KlatchError('activation_expired');
  let isCorrect: boolean;
  try {
    const verifier =
      provider.verifyCode === null
        ? attempted.verifier
        : await readVerifierAfterMinAge(services, transactionHash, attempted);
    isCorrect = await activations.checkCode(provider, { transactionHash, verifier, code });
  } catch (error) {
    await database.general.run((sql) => refundAttempt(sql, transactionHash, MAX_CODE_ATTEMPTS));
    throw error;
  }
  if (isCorrect) return;
  activations.metrics.incorrectCodeAttempts += 1;
  const attemptsLeftText =
    attemptsLeft === 0 ? 'this was the last attempt, begin again' : `attempts left: ${attemptsLeft}`;
  throw new KlatchError('invalid_code', { sentence: `This is not the code that was sent; ${attemptsLeftText}` });
}
