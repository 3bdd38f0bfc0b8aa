import * as z from 'zod';
import type { CodeProvider } from '../../activation/provider.ts';
import type { Config } from '../../config/config.ts';
import { KlatchError } from '../../errors.ts';
import {
  activationProviderNames,
  addressKinds,
  parseProofAddress,
  type ProofAddress,
} from '../../model/proof-address.ts';
import {
  lockAndCountActivations,
  deleteOldestActivationWithoutCode,
  insertActivation,
  type ActivationCounts,
} from '../../storage/accounts/activations.ts';
import { findAddressHolder } from '../../storage/accounts/addresses.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import type { ActivationMetrics } from '../core/activation-codes.ts';
import { callerSource } from '../core/caller.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { requireInvite } from '../groups/invites.ts';
import { inviteLinkOrTokenSchema } from '../groups/join-group.ts';
import { defineOperation } from '../core/operation.ts';
import type { Services } from '../core/services.ts';
import { hashOpaqueToken, newOpaqueToken } from './sign-in.ts';

/**
 * Bounds of one code: the most attempts to enter it, and the time for which it is valid.
 * `RESEND_INTERVAL_PER_NETWORK_MS` after a code, the same network may ask for another one for the same address.
 */
export const MAX_CODE_ATTEMPTS = 3;
const CODE_TTL_MS = 24 * 60 * 60_000;
const RESEND_INTERVAL_PER_NETWORK_MS = 60_000;
/**
 * For each code that the configuration allows in an hour, at most this many activations of that hour without a code are
 * stored. Each is a row, and the oldest one makes room.
 */
const UNSENT_ACTIVATIONS_PER_HOURLY_CODE = 100;
/** A /48 network may begin at most this many times as many activations as one of its /64 networks. */
const NETWORK_TO_SOURCE_LIMIT_FACTOR = 4;
/**
 * For all networks together, an address gets at most this many times the codes that one network may ask for in a day.
 */
const ALL_NETWORKS_ADDRESS_LIMIT_FACTOR = 4;

export const startSignIn = defineOperation({
  name: 'auth.start',
  summary:
    'Send a code to an e-mail address or telephone, for a sign-in or a sign-up. The answer does not show whether an account has the address.',
  input: z.strictObject({
    address: z
      .string()
      .min(1)
      .max(320)
      .describe('An e-mail address, or a telephone number with + and the code of its country.'),
    provider: z
      .enum(activationProviderNames)
      .optional()
      .describe('The provider that sends the code; not given: the first one of `activation.providers` that can.'),
    invite: inviteLinkOrTokenSchema
      .optional()
      .describe('The link of an invitation into a group, or its token, where one is needed to sign up.'),
  }),
  output: z.object({
    transaction: z
      .string()
      .describe(
        'The name of this sign-in, for auth.verify and auth.sign-up. It signs in together with the code: keep it secret.',
      ),
    channel: z.enum(addressKinds).describe('Kind of the address: the way that the code takes.'),
    expires_at: z.string().describe('End of the validity of the code.'),
    resend_at: z.string().describe('Earliest time at which auth.start sends another code to the address.'),
  }),
  who: 'anybody',
  scope: null,
  errors: ['invalid_invite', 'provider_unavailable', 'rate_limited'],
  run: async (services, { address: text, provider: name, invite }, caller) => {
    const { activations, database, config } = services;
    const source = callerSource(caller);
    if (source !== null) activations.limitSignInSteps(source);
    const address = parseProofAddress(text);
    if (typeof address === 'string') throw new KlatchError('invalid_input', { sentence: `address: ${address}` });
    const provider = activations.chooseProvider(address.kind, name);
    if (provider === null) throw unsupportedAddressError(services, address, name);
    if (invite !== undefined) await translateLostRead(database.general.run((sql) => requireInvite(sql, invite)));
    const isInvited = invite !== undefined;
    await activations.requireHealthy(provider);
    const signInTransaction = newOpaqueToken();
    const transactionHash = hashOpaqueToken(signInTransaction);
    const { code, localCheckVerifier } = activations.newCode(provider, transactionHash);
    const sourceHashes = activations.codeAndSourceHasher.hashSource(source);
    const startedActivation = await database.general.transaction(async (tx) => {
      const activationCounts = await lockAndCountActivations(tx, address, sourceHashes);
      const budgets = codeBudgetsOf(activationCounts, config, isInvited);
      enforceCodeLimits(activationCounts, { config, budgets, refused: activations.metrics.refused });
      const { forAccount, isOverBudget, sendsCode } = await decideCodeSending(tx, address, budgets);
      if (
        !sendsCode &&
        activationCounts.withoutCode >= config.limits.codesPerHourPerBudget * UNSENT_ACTIVATIONS_PER_HOURLY_CODE
      )
        await deleteOldestActivationWithoutCode(tx);
      const activationRowFields = { transactionHash, provider: provider.name, ...sourceHashes, forAccount };
      const activationFields = { ...activationRowFields, sendsCode, verifier: sendsCode ? localCheckVerifier : null };
      const activationTimes = await insertActivation(tx, {
        ...address,
        ...activationFields,
        attempts: MAX_CODE_ATTEMPTS,
        validMs: CODE_TTL_MS,
      });
      return { sendsCode, isOverBudget, ...activationTimes };
    });
    activations.metrics.startedActivations += 1;
    if (startedActivation.isOverBudget) activations.recordHourlyBudgetExceeded();
    if (startedActivation.sendsCode)
      activations.sendInBackground(provider, transactionHash, { address: address.address, code, validMs: CODE_TTL_MS });
    return {
      transaction: signInTransaction,
      channel: address.kind,
      expires_at: startedActivation.expiresAt.toISOString(),
      resend_at: new Date(startedActivation.begunAt.getTime() + RESEND_INTERVAL_PER_NETWORK_MS).toISOString(),
    };
  },
});

/** Whether the server may send further codes in this hour: to addresses that accounts have, and to new addresses. */
interface CodeBudgets {
  readonly hasBudgetForAccounts: boolean;
  readonly hasBudgetForNewAddresses: boolean;
  /** Whether a new address may get a code: registration is open, or it needs an invitation and the request has one. */
  readonly maySignUp: boolean;
}

/**
 * Addresses of accounts and new addresses have separate budgets: so strangers cannot use up the codes that people sign
 * in with.
 */
function codeBudgetsOf(counts: ActivationCounts, config: Config, isInvited: boolean): CodeBudgets {
  const { registration, limits } = config;
  const maySignUp = registration === 'open' || (registration === 'invite' && isInvited);
  return {
    hasBudgetForAccounts: counts.sentToAccounts < limits.codesPerHourPerBudget,
    hasBudgetForNewAddresses: counts.sentToStrangers < limits.codesPerHourPerBudget,
    maySignUp,
  };
}

/**
 * Decides whether a code is sent, and tells whether an account has the address. Addresses of accounts and new addresses
 * have an hourly budget of codes each. If one budget is used up, its addresses get no code, but `auth.start` gives the
 * usual answer. An error would reveal whether an account has the address.
 */
async function decideCodeSending(
  tx: Transaction,
  address: ProofAddress,
  budgets: CodeBudgets,
): Promise<{ forAccount: boolean; isOverBudget: boolean; sendsCode: boolean }> {
  const holder = await findAddressHolder(tx, address);
  const forAccount = holder !== null;
  const isEligible = forAccount ? !holder.deactivated : budgets.maySignUp;
  const isOverBudget = isEligible && !(forAccount ? budgets.hasBudgetForAccounts : budgets.hasBudgetForNewAddresses);
  return { forAccount, isOverBudget, sendsCode: isEligible && !isOverBudget };
}

/**
 * Throws `rate_limited` for reasons that do not depend on whether an account has the address: otherwise the limits
 * would reveal whether one has. Intervals and daily limits are counted for each address and network. So a network that
 * asks for codes for somebody else's address blocks only itself. Only the daily limit of codes to one address, for all
 * networks together, can block other networks.
 */
function enforceCodeLimits(
  counts: ActivationCounts,
  { config, budgets, refused }: { config: Config; budgets: CodeBudgets; refused: ActivationMetrics['refused'] },
): void {
  const { codesPerSourcePerHour, dailyCodesPerAddressAndNetwork } = config.limits;
  const reject = (reason: keyof ActivationMetrics['refused'], sentence: string): never => {
    refused[reason] += 1;
    throw new KlatchError('rate_limited', { sentence });
  };
  if (
    counts.ofSource >= codesPerSourcePerHour ||
    counts.ofNetwork >= codesPerSourcePerHour * NETWORK_TO_SOURCE_LIMIT_FACTOR
  ) {
    reject('source', 'Too many codes were asked for from your network in the last hour; please try again later');
  }
  if (
    counts.sinceSameAddressAndNetworkMs !== null &&
    counts.sinceSameAddressAndNetworkMs < RESEND_INTERVAL_PER_NETWORK_MS
  ) {
    const seconds = Math.ceil((RESEND_INTERVAL_PER_NETWORK_MS - counts.sinceSameAddressAndNetworkMs) / 1000);
    reject('resend', `A code was asked for this address a moment ago; another one can be sent in ${seconds} s`);
  }
  if (counts.ofAddressByNetwork >= dailyCodesPerAddressAndNetwork) {
    reject(
      'address',
      `At most ${dailyCodesPerAddressAndNetwork} codes are sent to one address in 24 hours for one network; try again tomorrow`,
    );
  }
  if (counts.ofAddress >= dailyCodesPerAddressAndNetwork * ALL_NETWORKS_ADDRESS_LIMIT_FACTOR) {
    const sentence = `At most ${dailyCodesPerAddressAndNetwork * ALL_NETWORKS_ADDRESS_LIMIT_FACTOR} codes are sent to one address in 24 hours; try again tomorrow`;
    reject('address', sentence);
  }
  if (!budgets.hasBudgetForAccounts && !(budgets.maySignUp && budgets.hasBudgetForNewAddresses)) {
    reject('installation', 'This server sends no more codes in this hour; please try again later');
  }
}

/**
 * The error for an address that no provider serves. It depends only on the kind of the address and on the
 * configuration.
 */
function unsupportedAddressError(
  { activations }: Services,
  { kind }: ProofAddress,
  name: CodeProvider['name'] | undefined,
): KlatchError {
  const { providers } = activations;
  if (providers.length === 0) {
    const sentence =
      'This server sends no codes: ask its administrator for a sign-in link, which "klatch user invite" makes';
    return new KlatchError('invalid_input', { sentence });
  }
  if (name !== undefined && !providers.some((each) => each.name === name && each.kind === kind)) {
    const sentence = `provider: ${name} does not send to such addresses here; leave it out to let the server choose`;
    return new KlatchError('invalid_input', { sentence });
  }
  const sentence =
    kind === 'phone'
      ? 'address: this server sends no codes to telephones; give an e-mail address'
      : 'address: this server sends no codes by e-mail; give a telephone number';
  return new KlatchError('invalid_input', { sentence });
}
