import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { AccountId } from '../../model/ids.ts';
import { lockActiveAccount } from '../../storage/accounts/accounts.ts';
import {
  countBotsIncludingRecentlyRemoved,
  findActiveOwnBot,
  insertBot,
  listBotsOfOwner,
} from '../../storage/accounts/bots.ts';
import type { Sql, Transaction } from '../../storage/db/connection.ts';
import { violatesUnique } from '../../storage/db/database-error.ts';
import { deactivateWithBotsOrReactivate } from '../../storage/accounts/profiles.ts';
import { endSessionsOfAccounts } from '../../storage/accounts/session-list.ts';
import { userReference } from '../core/account-reference.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { requireAccount } from '../core/caller.ts';
import { defineOperation } from '../core/operation.ts';
import { limitSchema, pageOf, afterNumberSchema, nextNumberSchema } from '../core/page.ts';
import { withUnknownCommitInvalidation } from '../auth/session-revocation.ts';
import {
  accountField,
  createdAtField,
  nameOrTitleSchema,
  nickField,
  nickSchema,
  accountFields,
} from '../core/schemas.ts';

/** The bot with this nick or number. Throws `not_found`, also if `ownerId` does not own the bot. */
export async function requireOwnBot(
  sql: Sql | Transaction,
  ownerId: AccountId,
  bot: string | number,
): Promise<{ id: AccountId; nick: string }> {
  const found = await findActiveOwnBot(sql, ownerId, bot);
  if (found === null) {
    throw new KlatchError('not_found', { sentence: `You have no bot ${bot}: bots.list shows yours` });
  }
  return found;
}

export const createBot = defineOperation({
  name: 'bots.create',
  summary: 'Create a bot, which belongs to the caller and acts with tokens (tokens.create).',
  input: z.strictObject({
    nick: nickSchema,
    name: nameOrTitleSchema.optional().describe('The name that others see; not given: the nick.'),
  }),
  output: z.object(accountFields),
  who: 'person',
  scope: null,
  errors: ['quota_exceeded', 'nick_taken'],
  run: async ({ database, config }, { nick, name = nick }, caller) => {
    const { accountId: ownerId } = requireAccount(caller);
    const maxBots = config.limits.botsPerUser;
    try {
      return await database.general.transaction(async (tx) => {
        if ((await lockActiveAccount(tx, ownerId)) === null) throw new KlatchError('unauthenticated');
        if ((await countBotsIncludingRecentlyRemoved(tx, ownerId)) >= maxBots) {
          const sentence = `A person has at most ${maxBots} bots (limits.bots-per-user): remove one, which counts for one more day`;
          throw new KlatchError('quota_exceeded', { sentence });
        }
        return { id: await insertBot(tx, { ownerId, nick, name }), nick, name };
      });
    } catch (error) {
      if (violatesUnique(error, 'account_nick_key')) throw new KlatchError('nick_taken', { cause: error });
      throw error;
    }
  },
});

export const listOwnBots = defineOperation({
  name: 'bots.list',
  summary: "List the caller's bots by number, a page at a time.",
  input: z.strictObject({ after: afterNumberSchema, limit: limitSchema }),
  output: z.object({
    bots: z
      .array(
        z.object({
          ...accountFields,
          created_at: createdAtField,
          tokens: z.int().describe('How many tokens it has.'),
        }),
      )
      .describe('The bots of the caller, by number.'),
    next: nextNumberSchema,
  }),
  who: 'person',
  scope: null,
  errors: [],
  run: async ({ database }, { after, limit }, caller) => {
    const { accountId: ownerId } = requireAccount(caller);
    const rows = await translateLostRead(
      database.general.run((sql) => listBotsOfOwner(sql, { ownerId, after, limit: limit + 1 })),
    );
    const { page, next } = pageOf(rows, limit, ({ id }) => id);
    return { bots: page.map(({ createdAt, ...bot }) => ({ ...bot, created_at: createdAt.toISOString() })), next };
  },
});

export const removeBot = defineOperation({
  name: 'bots.remove',
  summary: "Deactivate one of the caller's bots. Its tokens end; its messages stay, and its nick stays in use.",
  input: z.strictObject({ bot: userReference }),
  output: z.object({ bot: nickField, id: accountField }),
  who: 'person',
  scope: null,
  errors: ['not_found'],
  run: async ({ database, bus }, { bot }, caller) => {
    const { accountId: ownerId } = requireAccount(caller);
    const { id, nick, ended } = await withUnknownCommitInvalidation({ bus }, (noteSessionsMayEnd) =>
      database.general.transaction(async (tx) => {
        const ownBot = await requireOwnBot(tx, ownerId, bot);
        noteSessionsMayEnd(ownBot.id);
        await deactivateWithBotsOrReactivate(tx, ownBot.id, true);
        return { ...ownBot, ended: await endSessionsOfAccounts(tx, [ownBot.id]) };
      }),
    );
    if (ended.length > 0) bus.publish('sessionsEnded', ended);
    bus.publish('accountsChanged', [id]);
    return { bot: nick, id };
  },
});
