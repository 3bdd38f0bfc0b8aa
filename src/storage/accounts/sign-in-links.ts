import type { AccountId } from '../../model/ids.ts';
import type { Transaction } from '../db/connection.ts';

/**
 * Inserts the sign-in link of an account, and replaces the previous one. The link is valid for `validMs`, by the
 * database's clock. Returns the time at which it expires.
 */
export async function replaceSignInLink(
  tx: Transaction,
  link: { accountId: AccountId; tokenHash: string; validMs: number },
): Promise<Date> {
  const { accountId, tokenHash, validMs } = link;
  await tx`delete from sign_in_link where account_id = ${accountId}`;
  const [row] = await tx<{ expiresAt: Date }[]>`
    insert into sign_in_link (token_hash, account_id, expires_at)
    values (${tokenHash}, ${accountId}, now() + ${validMs} * interval '1 millisecond')
    returning expires_at as "expiresAt"`;
  return row!.expiresAt;
}

/**
 * Consumes a sign-in link; returns its account, or null when the link has expired or does not exist. Of two parallel
 * calls one waits for the other and gets null. The statement locks the account first, like a deactivation: in the other
 * order the two could deadlock.
 */
export async function consumeSignInLink(tx: Transaction, tokenHash: string): Promise<AccountId | null> {
  const [row] = await tx<{ accountId: AccountId; unexpired: boolean }[]>`
    delete from sign_in_link l using (
      select a.id from account a join sign_in_link k on k.account_id = a.id
      where k.token_hash = ${tokenHash} for no key update of a
    ) owner
    where l.token_hash = ${tokenHash} and l.account_id = owner.id
    returning l.account_id as "accountId", l.expires_at > now() as unexpired`;
  return row?.unexpired === true ? row.accountId : null;
}

/** Deletes the sign-in link of an account that may no longer sign in. */
export async function deleteSignInLinks(tx: Transaction, accountId: AccountId): Promise<void> {
  await tx`delete from sign_in_link where account_id = ${accountId}`;
}
