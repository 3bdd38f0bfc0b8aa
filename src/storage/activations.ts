import type { AddressKind, ProofAddress } from '../model/proof-address.ts';
import type { Sql, Transaction } from './connection.ts';

/** 'activ' in ASCII: activations are counted and begun one after the other, on all nodes. */
const ADVISORY_LOCK = 0x6163746976;

/** How many activations there were already. */
export interface ActivationCounts {
  /** Of this address in 24 hours. */
  readonly ofAddress: number;
  /** By this source in an hour. */
  readonly ofSource: number;
  /** With a code, in an hour, all together. */
  readonly ofAll: number;
  /** The same with those that no code was sent for. */
  readonly begun: number;
  /** Ms since the last one of this address; null when there was none in 24 hours. */
  readonly sinceLastMs: number | null;
}

/**
 * Counts the activations that bound another one. Until the transaction ends nobody else can begin one: what was counted
 * still holds when the new one is written.
 */
export async function countActivations(
  tx: Transaction,
  { kind, address }: ProofAddress,
  sourceHash: string,
): Promise<ActivationCounts> {
  await tx`select pg_advisory_xact_lock(${ADVISORY_LOCK})`;
  const [row] = await tx<ActivationCounts[]>`
    select
      (select count(*) from activation
        where kind = ${kind} and address = ${address} and sent_at > clock_timestamp() - interval '24 hours')::int as "ofAddress",
      (select count(*) from activation
        where source_hash = ${sourceHash} and sent_at > clock_timestamp() - interval '1 hour')::int as "ofSource",
      (select count(*) from activation
        where sends and sent_at > clock_timestamp() - interval '1 hour')::int as "ofAll",
      (select count(*) from activation where sent_at > clock_timestamp() - interval '1 hour')::int as begun,
      (select extract(epoch from clock_timestamp() - max(sent_at)) * 1000 from activation
        where kind = ${kind} and address = ${address} and sent_at > clock_timestamp() - interval '24 hours'
      )::float8 as "sinceLastMs"`;
  return row!;
}

/** An activation to be written. */
export interface NewActivation extends ProofAddress {
  readonly transactionHash: string;
  readonly provider: string;
  readonly sourceHash: string;
  readonly sends: boolean;
  readonly verifier: string | null;
  readonly attempts: number;
  readonly validMs: number;
}

/** Begins an activation; returns when, and until when, by the database's clock. */
export async function insertActivation(
  tx: Transaction,
  activation: NewActivation,
): Promise<{ sentAt: Date; expiresAt: Date }> {
  const { transactionHash, provider, kind, address, sourceHash, sends, verifier, attempts, validMs } = activation;
  const [row] = await tx<{ sentAt: Date; expiresAt: Date }[]>`
    insert into activation (transaction_hash, provider, kind, address, source_hash, sends, verifier, attempts_left,
      sent_at, expires_at)
    select ${transactionHash}, ${provider}, ${kind}, ${address}, ${sourceHash}, ${sends}, ${verifier}, ${attempts},
      t.now, t.now + ${validMs} * interval '1 millisecond'
    from (select clock_timestamp() as now) t
    returning sent_at as "sentAt", expires_at as "expiresAt"`;
  return row!;
}

/** Notes what the gate knows the code by. */
export async function setVerifier(sql: Sql, transactionHash: string, verifier: string): Promise<void> {
  await sql`update activation set verifier = ${verifier} where transaction_hash = ${transactionHash}`;
}

/** What an attempt is judged by. */
export interface Attempted {
  readonly provider: string;
  readonly kind: AddressKind;
  readonly verifier: string | null;
  /** After this one. */
  readonly attemptsLeft: number;
  /** Since it began. */
  readonly ageMs: number;
}

/**
 * Takes one of the attempts before the code is looked at, so that of a hundred at once no more are judged than there
 * are; null when none is left, or the activation is over or never was.
 */
export async function takeAttempt(sql: Sql, transactionHash: string): Promise<Attempted | null> {
  const [row] = await sql<Attempted[]>`
    update activation set attempts_left = attempts_left - 1
    where transaction_hash = ${transactionHash} and attempts_left > 0 and verified_at is null and expires_at > now()
    returning provider, kind, verifier, attempts_left as "attemptsLeft",
      (extract(epoch from clock_timestamp() - sent_at) * 1000)::float8 as "ageMs"`;
  return row ?? null;
}

/** What the code of an activation is checked by at this moment. */
export async function findVerifier(sql: Sql, transactionHash: string): Promise<string | null> {
  const [row] = await sql<{ verifier: string | null }[]>`
    select verifier from activation where transaction_hash = ${transactionHash}`;
  return row?.verifier ?? null;
}

/** Gives an attempt back that nobody could judge. */
export async function giveAttemptBack(sql: Sql, transactionHash: string, most: number): Promise<void> {
  await sql`
    update activation set attempts_left = least(attempts_left + 1, ${most}) where transaction_hash = ${transactionHash}`;
}

/** Notes that the address is proven, and says which; null for who comes second, or too late. */
export async function markVerified(tx: Transaction, transactionHash: string): Promise<ProofAddress | null> {
  const [row] = await tx<ProofAddress[]>`
    update activation set verified_at = now()
    where transaction_hash = ${transactionHash} and verified_at is null and expires_at > now()
    returning kind, address`;
  return row ?? null;
}

/** The address that a transaction has proven, and ends it; null when there is none. Of two at once one gets it. */
export async function endVerified(tx: Transaction, transactionHash: string): Promise<ProofAddress | null> {
  // Not by a clock: who waited for the first one's commit must find it over, whenever it began itself.
  const [row] = await tx<ProofAddress[]>`
    update activation set expires_at = sent_at
    where transaction_hash = ${transactionHash} and verified_at is not null and expires_at > now()
      and expires_at > sent_at
    returning kind, address`;
  return row ?? null;
}
