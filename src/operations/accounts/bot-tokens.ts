import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { SessionOrTokenId } from '../../model/ids.ts';
import { scopes } from '../../model/scopes.ts';
import { lockActiveAccount } from '../../storage/accounts/accounts.ts';
import { countSessionsOrTokens, endSession, listSessionsOrTokens } from '../../storage/accounts/session-list.ts';
import { insertSessionOrToken } from '../../storage/accounts/sessions.ts';
import { userReference } from '../core/account-reference.ts';
import { requireOwnBot } from './bots.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { requireAccount } from '../core/caller.ts';
import { defineOperation } from '../core/operation.ts';
import { limitSchema, pageOf, afterNumberSchema, nextNumberSchema } from '../core/page.ts';
import { withUnknownCommitInvalidation } from '../auth/session-revocation.ts';
import { listedSessionOrTokenSchema, serializeSession } from '../auth/session-list.ts';
import { newSessionToken } from '../core/session-cache.ts';
import { sessionOrDeviceLabelSchema } from '../auth/sign-in.ts';
import { nickField } from '../core/schemas.ts';

/** At most this many tokens for one bot, as its program may run in many places. */
const MAX_TOKENS_PER_BOT = 100;
const MIN_TOKEN_LIFETIME_S = 60;
const MAX_TOKEN_LIFETIME_S = 10 * 366 * 24 * 60 * 60;

const tokenScopesSchema = z.array(z.enum(scopes)).describe('Scopes of the token.');
const botTokenSchema = listedSessionOrTokenSchema.omit({ scopes: true }).extend({ scopes: tokenScopesSchema });

export const createBotToken = defineOperation({
  name: 'tokens.create',
  summary: "Create a token for one of the caller's bots. Only this answer shows it.",
  input: z.strictObject({
    bot: userReference,
    scopes: z
      .array(z.enum(scopes))
      .min(1, 'give at least one scope')
      .max(scopes.length)
      .describe('Scopes of the token.'),
    label: sessionOrDeviceLabelSchema.describe('Name of the token, for people.'),
    expires_in_s: z
      .int()
      .min(MIN_TOKEN_LIFETIME_S)
      .max(MAX_TOKEN_LIFETIME_S)
      .optional()
      .describe('Not given: until it is revoked.'),
  }),
  output: z.object({
    id: z.int().describe("The token's number, for `tokens.revoke`."),
    bot: nickField,
    token: z.string().describe('For `Authorization: Bearer` and `live.authenticate`.'),
    scopes: tokenScopesSchema,
    label: z.string().describe('Name of the token, for people.'),
    expires_at: z.string().nullable().describe('End; null: only a revocation ends it.'),
  }),
  who: 'person',
  scope: null,
  errors: ['quota_exceeded', 'not_found'],
  run: async ({ database }, { bot, scopes: wanted, label, expires_in_s: lifetimeS }, caller) => {
    const { accountId: ownerId } = requireAccount(caller);
    const requestedScopes = scopes.filter((scope) => wanted.includes(scope));
    const expiresAt = lifetimeS === undefined ? null : new Date(Date.now() + lifetimeS * 1_000);
    const { token, hash: tokenHash } = newSessionToken('bot');
    return database.general.transaction(async (tx) => {
      const { id: accountId, nick } = await requireOwnBot(tx, ownerId, bot);
      // The bot may have been removed after it was looked up and before its lock was taken.
      if ((await lockActiveAccount(tx, accountId)) === null) {
        throw new KlatchError('not_found', { sentence: `You have no bot ${bot}: bots.list shows yours` });
      }
      if ((await countSessionsOrTokens(tx, accountId)) >= MAX_TOKENS_PER_BOT) {
        const sentence = `A bot has at most ${MAX_TOKENS_PER_BOT} tokens: revoke one first`;
        throw new KlatchError('quota_exceeded', { sentence });
      }
      const id = await insertSessionOrToken(tx, { accountId, tokenHash, label, scopes: requestedScopes, expiresAt });
      return { id, bot: nick, token, scopes: requestedScopes, label, expires_at: expiresAt?.toISOString() ?? null };
    });
  },
});

export const listBotTokens = defineOperation({
  name: 'tokens.list',
  summary: "List the tokens of one of the caller's bots by number, a page at a time.",
  input: z.strictObject({ bot: userReference, after: afterNumberSchema, limit: limitSchema }),
  output: z.object({
    tokens: z.array(botTokenSchema).describe('The tokens of the bot, by number.'),
    next: nextNumberSchema,
  }),
  who: 'person',
  scope: null,
  errors: ['not_found'],
  run: async ({ database }, { bot, after, limit }, caller) => {
    const { accountId: ownerId } = requireAccount(caller);
    const rows = await translateLostRead(
      database.general.run(async (sql) => {
        const { id: accountId } = await requireOwnBot(sql, ownerId, bot);
        return listSessionsOrTokens(sql, { accountId, after, limit: limit + 1 });
      }),
    );
    const { page, next } = pageOf(rows, limit, ({ id }) => id);
    return { tokens: page.map((each) => ({ ...serializeSession(each), scopes: [...(each.scopes ?? [])] })), next };
  },
});

export const revokeBotToken = defineOperation({
  name: 'tokens.revoke',
  summary: "End a token of one of the caller's bots, by its number.",
  input: z.strictObject({ bot: userReference, token: z.int().positive().describe("The token's number.") }),
  output: z.object({ bot: nickField, token: z.int().describe("The token's number.") }),
  who: 'person',
  scope: null,
  errors: ['not_found'],
  run: async ({ database, bus }, { bot, token }, caller) => {
    const { accountId: ownerId } = requireAccount(caller);
    const nick = await withUnknownCommitInvalidation({ bus }, (noteSessionsMayEnd) =>
      database.general.run(async (sql) => {
        const ownBot = await requireOwnBot(sql, ownerId, bot);
        noteSessionsMayEnd(ownBot.id);
        if (await endSession(sql, ownBot.id, token)) return ownBot.nick;
        const sentence = `${ownBot.nick} has no token ${token}: tokens.list shows its tokens`;
        throw new KlatchError('not_found', { sentence });
      }),
    );
    bus.publish('sessionsEnded', [token as SessionOrTokenId]);
    return { bot: nick, token };
  },
});
