import { nickSchema } from './schemas.ts';
import { findTargetAccount, type TargetAccount } from '../../storage/groups/members.ts';
import type { Sql, Transaction } from '../../storage/db/connection.ts';
import { KlatchError } from '../../errors.ts';
import * as z from 'zod';

export const userReference = z
  .union([z.int().positive(), nickSchema])
  .describe('The person or bot, by nick or by number.');

/** The account with this number or nick. Throws `not_found`, also for a deactivated account. */
export async function requireActiveAccount(sql: Sql | Transaction, user: string | number): Promise<TargetAccount> {
  const found = await findTargetAccount(sql, user);
  if (found === null || found.deactivated) throw userNotFound(user);
  return found;
}

/** The error for an account that does not exist, or that is deactivated where only an active one will do. */
export function userNotFound(user: string | number): KlatchError {
  const which = typeof user === 'number' ? `number ${user}` : `nick ${user}`;
  const sentence = `There is no user with the ${which}: check the spelling, or search for the person`;
  return new KlatchError('not_found', { sentence });
}
