import type { AccountId } from '../../model/ids.ts';
import type { ProofAddress } from '../../model/proof-address.ts';
import type { Sql, Transaction } from '../db/connection.ts';

/** The owner of an address. */
interface AddressHolder {
  readonly accountId: AccountId;
  readonly deactivated: boolean;
}

/** The account that has an address; null: no account has it. */
export async function findAddressHolder(
  sql: Sql | Transaction,
  { kind, address }: ProofAddress,
): Promise<AddressHolder | null> {
  const [row] = await sql<AddressHolder[]>`
    select a.id as "accountId", a.deactivated_at is not null as deactivated
    from account_address d join account a on a.id = d.account_id
    where d.kind = ${kind} and d.address = ${address}`;
  return row ?? null;
}

/**
 * Gives an address to an account. Rejects with a violation of `account_address_pkey` when an account has it already.
 */
export async function insertAddress(
  tx: Transaction,
  accountId: AccountId,
  { kind, address }: ProofAddress,
): Promise<void> {
  await tx`insert into account_address (kind, address, account_id) values (${kind}, ${address}, ${accountId})`;
}

/** Gives an address to an account, and replaces the account's address of the same kind. */
export async function replaceAddress(tx: Transaction, accountId: AccountId, address: ProofAddress): Promise<void> {
  await tx`delete from account_address where account_id = ${accountId} and kind = ${address.kind}`;
  await insertAddress(tx, accountId, address);
}
