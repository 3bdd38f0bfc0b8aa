import { z } from 'zod';
import { KlatchError } from '../errors.ts';
import { insertAccount } from '../storage/accounts.ts';
import { violates } from '../storage/database-error.ts';
import { defineOperation } from './operation.ts';

/** A nick names an account in commands and mentions. */
export const nickSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/, 'a nick has 1 to 32 letters, digits, dots, dashes or underscores')
  .transform((nick) => nick.toLowerCase());

/** One line of text for people to read. */
export const titleSchema = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(200, 'has at most 200 characters')
  .regex(/^\P{Cc}*$/u, 'holds no control characters');

export const createUser = defineOperation({
  name: 'users.create',
  summary: 'Create an account for a person.',
  input: z.strictObject({ nick: nickSchema, name: titleSchema.optional(), admin: z.boolean().default(false) }),
  output: z.object({ id: z.int(), nick: z.string(), name: z.string(), role: z.enum(['admin', 'user']) }),
  allows: (caller) => caller.kind === 'system',
  run: async ({ database }, { nick, name = nick, admin }) => {
    const role = admin ? ('admin' as const) : ('user' as const);
    try {
      const id = await database.general.run((sql) => insertAccount(sql, { kind: 'user', nick, name, role }));
      return { id, nick, name, role };
    } catch (error) {
      if (violates(error, 'account_nick_key')) throw new KlatchError('nick_taken', { cause: error });
      throw error;
    }
  },
});
