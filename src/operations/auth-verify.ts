import { setTimeout as wait } from 'node:timers/promises';
import * as z from 'zod';
import { CODE } from '../activation/own-code.ts';
import { KlatchError } from '../errors.ts';
import {
  endVerified,
  findVerifier,
  giveAttemptBack,
  markVerified,
  takeAttempt,
  type Attempted,
} from '../storage/activations.ts';
import { findAddressHolder } from '../storage/addresses.ts';
import { consumeSignInLink } from '../storage/sign-in-links.ts';
import { ATTEMPTS } from './auth-start.ts';
import { callerSource } from './caller.ts';
import { defineOperation } from './operation.ts';
import type { Services } from './services.ts';
import { endingSessions } from './session-ends.ts';
import {
  deactivated,
  hashSecretName,
  labelSchema,
  linkToken,
  openSession,
  publishOpened,
  signedInSchema,
  type SignedIn,
} from './sign-in.ts';

const MAX_LINK = 2_048;
/** A gate has answered by then, if it will before the telephone rings. */
const SETTLED_MS = 1_000;

/** The name of a sign-in, as auth.start gave it. */
export const transactionSchema = z.string().min(1).max(100);

const signUpSchema = z.object({
  /** The address is proven and nobody's yet: auth.sign-up makes its account. */
  status: z.literal('sign_up'),
  transaction: z.string(),
});

export const verifySignIn = defineOperation({
  name: 'auth.verify',
  summary: 'Sign in: with the transaction of auth.start and the code that was sent, or with a sign-in link.',
  input: z
    .strictObject({
      transaction: transactionSchema.optional(),
      code: z.string().trim().regex(CODE, 'a code has six digits').optional(),
      /** The whole link that an administrator made, or what is behind its #. */
      link: z.string().min(1).max(MAX_LINK).optional(),
      /** What the new session is called in the list of sessions. */
      label: labelSchema.optional(),
    })
    .refine(
      ({ transaction, code, link }) =>
        link === undefined ? transaction !== undefined && code !== undefined : (transaction ?? code) === undefined,
      'give transaction and code, or link',
    ),
  output: z.discriminatedUnion('status', [signedInSchema, signUpSchema]),
  who: 'anybody',
  scope: null,
  errors: ['activation_over', 'code_wrong', 'forbidden', 'provider_away', 'too_often'],
  run: (services, { transaction, code, link, label }, caller) => {
    const source = callerSource(caller);
    if (source !== null) services.activations.admit(source);
    if (link !== undefined) return signInByLink(services, link, label);
    return signInByCode(services, { transaction: transaction!, code: code! }, label);
  },
});

/** One use: who comes second gets `activation_over`, as with a link that never was. */
async function signInByLink(services: Services, link: string, label: string | undefined): Promise<SignedIn> {
  const { database, config, activations } = services;
  const over = (): KlatchError =>
    new KlatchError('activation_over', { sentence: 'This sign-in link was used, is over, or never existed' });
  const token = linkToken(link);
  if (token === null) throw over();
  const opened = await endingSessions(services, (endsOf) =>
    database.general.transaction(async (tx) => {
      const accountId = await consumeSignInLink(tx, hashSecretName(token));
      if (accountId === null) return null;
      endsOf(accountId);
      return openSession(tx, { accountId, label }, config.limits.sessionsPerUser);
    }),
  );
  if (opened === null) throw over();
  activations.numbers.signedIn.link += 1;
  return publishOpened(services, opened);
}

async function signInByCode(
  services: Services,
  { transaction, code }: { transaction: string; code: string },
  label: string | undefined,
): Promise<SignedIn | z.infer<typeof signUpSchema>> {
  const { database, config, activations } = services;
  const transactionHash = hashSecretName(transaction);
  await requireRightCode(services, transactionHash, code);
  const opened = await endingSessions(services, (endsOf) =>
    database.general.transaction(async (tx) => {
      const address = await markVerified(tx, transactionHash);
      if (address === null) throw new KlatchError('activation_over');
      const holder = await findAddressHolder(tx, address);
      if (holder === null) return null;
      const { accountId } = holder;
      endsOf(accountId);
      await endVerified(tx, transactionHash);
      const session = await openSession(tx, { accountId, label }, config.limits.sessionsPerUser);
      if (session === null) throw deactivated();
      return session;
    }),
  );
  if (opened === null) return { status: 'sign_up', transaction };
  activations.numbers.signedIn.code += 1;
  return publishOpened(services, opened);
}

/**
 * What the gate knows the code by. A telephone may ring before the gate's answer is written down here, so that who is
 * as quick as that waits; everybody does, or the time would tell whether there is a code.
 */
async function gateVerifier(
  { database }: Services,
  transactionHash: string,
  { ageMs, verifier }: Attempted,
): Promise<string | null> {
  if (ageMs >= SETTLED_MS) return verifier;
  await wait(SETTLED_MS - Math.max(0, ageMs));
  return database.general.run((sql) => findVerifier(sql, transactionHash));
}

/** Takes an attempt, then looks at the code. Throws `activation_over`, `code_wrong`, `provider_away`. */
async function requireRightCode(services: Services, transactionHash: string, code: string): Promise<void> {
  const { database, activations } = services;
  const attempted = await database.general.run((sql) => takeAttempt(sql, transactionHash));
  if (attempted === null) throw new KlatchError('activation_over');
  const { kind, provider: name, attemptsLeft } = attempted;
  const provider = activations.choose(kind, name);
  // The configuration was changed since the code was sent.
  if (provider === null) throw new KlatchError('activation_over');
  let isRight: boolean;
  try {
    const verifier =
      provider.judge === null ? attempted.verifier : await gateVerifier(services, transactionHash, attempted);
    isRight = await activations.judge(provider, { transactionHash, verifier, code });
  } catch (error) {
    await database.general.run((sql) => giveAttemptBack(sql, transactionHash, ATTEMPTS));
    throw error;
  }
  if (isRight) return;
  activations.numbers.wrongCodes += 1;
  const left = attemptsLeft === 0 ? 'this was the last attempt, begin again' : `attempts left: ${attemptsLeft}`;
  throw new KlatchError('code_wrong', { sentence: `This is not the code that was sent; ${left}` });
}
