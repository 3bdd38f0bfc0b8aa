import type { AddressKind, ProofAddress } from '../../model/proof-address.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/**
 * The key of an advisory lock: 'activ' in ASCII. The lock makes all nodes count and begin activations one after the
 * other.
 */
const ACTIVATION_LOCK_KEY = 0x6163746976;

/**
 * The networks of the client that begins an activation, as keyed hashes. The activations of each of the two networks
 * are limited.
 */
interface HashedSource {
  /** The hash of the smaller network (the source): an IPv4 address, or a /64 network of IPv6. */
  readonly sourceHash: string;
  /** The hash of the larger network: the /48 network of an IPv6 source; for IPv4 the same as `sourceHash`. */
  readonly networkHash: string;
}

/**
 * The numbers of earlier activations that limit another one. They include activations without a code, except in
 * `sentToAccounts` and `sentToStrangers`.
 */
export interface ActivationCounts {
  /** Activations of the same address in the last 24 hours. */
  readonly ofAddress: number;
  /** Activations of the same address that began from the same network (`networkHash`) in the last 24 hours. */
  readonly ofAddressByNetwork: number;
  /** Activations of any address that began from the same source (`sourceHash`) in the last hour. */
  readonly ofSource: number;
  /** Activations of any address that began from the same network (`networkHash`) in the last hour. */
  readonly ofNetwork: number;
  /** Codes that were sent to addresses of accounts in the last hour. */
  readonly sentToAccounts: number;
  /** Codes that were sent to other addresses in the last hour. */
  readonly sentToStrangers: number;
  /** Activations of the last hour for which no code was sent. */
  readonly withoutCode: number;
  /** The ms since the last activation of the same address that began from the same network; null: none in 24 hours. */
  readonly sinceSameAddressAndNetworkMs: number | null;
}

/**
 * Counts the activations that decide whether another one may begin. Until the transaction ends no other transaction can
 * begin an activation: the counts still hold when this transaction writes its own.
 */
export async function lockAndCountActivations(
  tx: Transaction,
  { kind, address }: ProofAddress,
  { sourceHash, networkHash }: HashedSource,
): Promise<ActivationCounts> {
  await tx`select pg_advisory_xact_lock(${ACTIVATION_LOCK_KEY})`;
  const [row] = await tx<ActivationCounts[]>`
    with of_address as (
      select sent_at, network_hash from activation
      where kind = ${kind} and address = ${address} and sent_at > clock_timestamp() - interval '24 hours'
    ), in_hour as (
      select
        count(*) filter (where sends_code and for_account)::int as accounts,
        count(*) filter (where sends_code and not for_account)::int as strangers,
        count(*) filter (where not sends_code)::int as unsent
      from activation where sent_at > clock_timestamp() - interval '1 hour'
    )
    select
      (select count(*) from of_address)::int as "ofAddress",
      (select count(*) from of_address where network_hash = ${networkHash})::int as "ofAddressByNetwork",
      (select count(*) from activation
        where source_hash = ${sourceHash} and sent_at > clock_timestamp() - interval '1 hour')::int as "ofSource",
      (select count(*) from activation
        where network_hash = ${networkHash} and sent_at > clock_timestamp() - interval '1 hour')::int as "ofNetwork",
      accounts as "sentToAccounts", strangers as "sentToStrangers", unsent as "withoutCode",
      (select extract(epoch from clock_timestamp() - max(sent_at)) * 1000 from of_address
        where network_hash = ${networkHash})::float8 as "sinceSameAddressAndNetworkMs"
    from in_hour`;
  return row!;
}

/** Removes the oldest activation of the last hour for which no code was sent. */
export async function deleteOldestActivationWithoutCode(tx: Transaction): Promise<void> {
  await tx`
    delete from activation where transaction_hash = (
      select transaction_hash from activation
      where not sends_code and sent_at > clock_timestamp() - interval '1 hour'
      order by sent_at limit 1)`;
}

interface NewActivation extends ProofAddress, HashedSource {
  readonly transactionHash: string;
  readonly provider: string;
  /** Whether the address belongs to an account. */
  readonly forAccount: boolean;
  readonly sendsCode: boolean;
  readonly verifier: string | null;
  readonly attempts: number;
  readonly validMs: number;
}

/** Begins an activation; returns its start and its end, by the database's clock. */
export async function insertActivation(
  tx: Transaction,
  activation: NewActivation,
): Promise<{ begunAt: Date; expiresAt: Date }> {
  const { transactionHash, provider, kind, address, sourceHash, networkHash, forAccount, sendsCode, verifier } =
    activation;
  const { attempts, validMs } = activation;
  const [row] = await tx<{ begunAt: Date; expiresAt: Date }[]>`
    insert into activation (transaction_hash, provider, kind, address, source_hash, network_hash, for_account,
      sends_code, verifier, attempts_left, sent_at, expires_at)
    select ${transactionHash}, ${provider}, ${kind}, ${address}, ${sourceHash}, ${networkHash}, ${forAccount},
      ${sendsCode}, ${verifier}, ${attempts}, t.now, t.now + ${validMs} * interval '1 millisecond'
    from (select clock_timestamp() as now) t
    returning sent_at as "begunAt", expires_at as "expiresAt"`;
  return row!;
}

/** Stores the id that the activation gate gave to the code of an activation. */
export async function setProviderReference(sql: Sql, transactionHash: string, verifier: string): Promise<void> {
  await sql`update activation set verifier = ${verifier} where transaction_hash = ${transactionHash}`;
}

/** The data for checking the code of an attempt. */
export interface ConsumedAttempt {
  readonly provider: string;
  readonly kind: AddressKind;
  readonly verifier: string | null;
  /** The number of attempts that remain after this one. */
  readonly attemptsLeft: number;
  /** Time in ms since the activation began. */
  readonly ageMs: number;
}

/**
 * Uses up one of an activation's attempts before the code is checked, so that a hundred parallel requests get no more
 * checks than there are attempts. Null when no attempt is left, the activation has ended, or it never existed.
 */
export async function consumeAttempt(sql: Sql, transactionHash: string): Promise<ConsumedAttempt | null> {
  const [row] = await sql<ConsumedAttempt[]>`
    update activation set attempts_left = attempts_left - 1
    where transaction_hash = ${transactionHash} and attempts_left > 0 and verified_at is null and expires_at > now()
    returning provider, kind, verifier, attempts_left as "attemptsLeft",
      (extract(epoch from clock_timestamp() - sent_at) * 1000)::float8 as "ageMs"`;
  return row ?? null;
}

/**
 * The value with which the server checks the code of an activation; null: it has none yet, or there is no such
 * activation.
 */
export async function findCodeVerifier(sql: Sql, transactionHash: string): Promise<string | null> {
  const [row] = await sql<{ verifier: string | null }[]>`
    select verifier from activation where transaction_hash = ${transactionHash}`;
  return row?.verifier ?? null;
}

/** Gives an activation back an attempt whose code could not be checked. */
export async function refundAttempt(sql: Sql, transactionHash: string, maxAttempts: number): Promise<void> {
  await sql`
    update activation set attempts_left = least(attempts_left + 1, ${maxAttempts}) where transaction_hash = ${transactionHash}`;
}

/**
 * Marks the address as proven, and returns it; null when the activation is verified already, has ended, or never
 * existed.
 */
export async function markVerified(tx: Transaction, transactionHash: string): Promise<ProofAddress | null> {
  const [row] = await tx<ProofAddress[]>`
    update activation set verified_at = now()
    where transaction_hash = ${transactionHash} and verified_at is null and expires_at > now()
    returning kind, address`;
  return row ?? null;
}

/**
 * Returns the address that an activation has proven, and ends the activation. Null: the activation has proven no
 * address, or has ended. Of two parallel calls only one gets the address.
 */
export async function consumeVerifiedActivation(
  tx: Transaction,
  transactionHash: string,
): Promise<ProofAddress | null> {
  // Compares `expires_at` also with `sent_at`, and not only with `now()`, which is the time at which this transaction
  // began. That may be before another call ended the activation, and a call that waited for the other's commit must
  // find it ended.
  const [row] = await tx<ProofAddress[]>`
    update activation set expires_at = sent_at
    where transaction_hash = ${transactionHash} and verified_at is not null and expires_at > now()
      and expires_at > sent_at
    returning kind, address`;
  return row ?? null;
}
