import { z } from 'zod';
import type { CodeProvider } from '../activation/provider.ts';
import type { Config } from '../config/config.ts';
import { KlatchError } from '../errors.ts';
import { parseProofAddress, type ProofAddress } from '../model/proof-address.ts';
import { countActivations, insertActivation, type ActivationCounts } from '../storage/activations.ts';
import { findAddressHolder } from '../storage/addresses.ts';
import type { Transaction } from '../storage/connection.ts';
import type { ActivationNumbers } from './activations.ts';
import { callerSource } from './caller.ts';
import { reading } from './database-errors.ts';
import { requireInvite } from './invites.ts';
import { inviteSchema } from './joining.ts';
import { defineOperation } from './operation.ts';
import type { Services } from './services.ts';
import { hashSecretName, newSecretName } from './sign-in.ts';

/** How often a code may be typed, how long it is good for, and when another one may be asked for. */
export const ATTEMPTS = 3;
const CODE_MS = 24 * 60 * 60_000;
const RESEND_MS = 60_000;
/** So many are begun for each code that may be sent, most of them for nobody: each is a row that is kept for a day. */
const BEGUN_PER_CODE = 100;

export const startSignIn = defineOperation({
  name: 'auth.start',
  summary:
    'Send a code to an e-mail address or telephone, to sign in or to sign up with. The answer is the same whether somebody has this address or not.',
  input: z.strictObject({
    /** An e-mail address, or a telephone number with + and the code of its country. */
    address: z.string().min(1).max(320),
    provider: z.enum(['gate', 'email']).optional(),
    /** The link of an invitation into a group, or its token, where one is needed to sign up. */
    invite: inviteSchema.optional(),
  }),
  output: z.object({
    /** The name of this sign-in, for auth.verify and auth.sign-up; whoever has it and the code is in. */
    transaction: z.string(),
    channel: z.enum(['email', 'phone']),
    expires_at: z.string(),
    /** From then on auth.start sends another code to the address. */
    resend_at: z.string(),
  }),
  who: 'anybody',
  scope: null,
  errors: ['invite_invalid', 'provider_away', 'too_often'],
  run: async (services, { address: text, provider: name, invite }, caller) => {
    const { activations, database, config } = services;
    const source = callerSource(caller);
    if (source !== null) activations.admit(source);
    const address = parseProofAddress(text);
    if (typeof address === 'string') throw new KlatchError('invalid_input', { sentence: `address: ${address}` });
    const provider = activations.choose(address.kind, name);
    if (provider === null) throw notServed(services, address, name);
    if (invite !== undefined) await reading(database.general.run((sql) => requireInvite(sql, invite)));
    const isInvited = invite !== undefined;
    await activations.requireHealth(provider);
    const transaction = newSecretName();
    const transactionHash = hashSecretName(transaction);
    const { code, verifier } = activations.newCode(provider, transactionHash);
    const sourceHash = activations.hasher.source(source ?? 'control socket');
    const begun = await database.general.transaction(async (tx) => {
      const counts = await countActivations(tx, address, sourceHash);
      refuseTooMany(counts, config, activations.numbers);
      const sends = await mayHaveCode(tx, address, { config, isInvited });
      const fields = { transactionHash, provider: provider.name, sourceHash, sends, verifier: sends ? verifier : null };
      const times = await insertActivation(tx, { ...address, ...fields, attempts: ATTEMPTS, validMs: CODE_MS });
      return { sends, ...times };
    });
    activations.numbers.begun += 1;
    if (begun.sends)
      activations.sendLater(provider, transactionHash, { address: address.address, code, validMs: CODE_MS });
    return {
      transaction,
      channel: address.kind,
      expires_at: begun.expiresAt.toISOString(),
      resend_at: new Date(begun.sentAt.getTime() + RESEND_MS).toISOString(),
    };
  },
});

/** Whether a code is sent: to who has an active account, and to strangers where they may sign up. */
async function mayHaveCode(
  tx: Transaction,
  address: ProofAddress,
  { config, isInvited }: { config: Config; isInvited: boolean },
): Promise<boolean> {
  const holder = await findAddressHolder(tx, address);
  if (holder !== null) return !holder.deactivated;
  return config.registration === 'open' || (config.registration === 'invite' && isInvited);
}

function refuseTooMany(counts: ActivationCounts, { limits }: Config, { refused }: ActivationNumbers): void {
  const refuse = (reason: keyof ActivationNumbers['refused'], sentence: string): never => {
    refused[reason] += 1;
    throw new KlatchError('too_often', { sentence });
  };
  if (counts.ofSource >= limits.codesPerSource) {
    refuse('source', 'Too many codes were asked for from your network in the last hour; please try again later');
  }
  if (counts.sinceLastMs !== null && counts.sinceLastMs < RESEND_MS) {
    const seconds = Math.ceil((RESEND_MS - counts.sinceLastMs) / 1000);
    refuse('resend', `A code was asked for this address a moment ago; another one can be sent in ${seconds} s`);
  }
  if (counts.ofAddress >= limits.codesPerAddress) {
    refuse(
      'address',
      `At most ${limits.codesPerAddress} codes are sent to one address in 24 hours; try again tomorrow`,
    );
  }
  if (counts.ofAll >= limits.codesPerHour || counts.begun >= limits.codesPerHour * BEGUN_PER_CODE) {
    refuse('installation', 'This server sends no more codes in this hour; please try again later');
  }
}

/** Says what this installation can serve; that is nothing about any address. */
function notServed(
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
    return new KlatchError('invalid_input', { sentence: `provider: ${name} does not send to such addresses here` });
  }
  const sentence =
    kind === 'phone'
      ? 'address: this server sends no codes to telephones; give an e-mail address'
      : 'address: this server sends no codes by e-mail; give a telephone number';
  return new KlatchError('invalid_input', { sentence });
}
