import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { SessionOrTokenId } from '../../model/ids.ts';
import { scopes } from '../../model/scopes.ts';
import { lockActiveAccount } from '../../storage/accounts/accounts.ts';
import {
  endSession,
  endSessionsOfAccounts,
  listSessionsOrTokens,
  type ListedSessionOrToken,
} from '../../storage/accounts/session-list.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { requireAccount } from '../core/caller.ts';
import { defineOperation } from '../core/operation.ts';
import { limitSchema, pageOf, afterNumberSchema, nextNumberSchema } from '../core/page.ts';
import { withUnknownCommitInvalidation } from './session-revocation.ts';
import { createdAtField } from '../core/schemas.ts';

/** A session or a bot's token, without its secret. */
export const listedSessionOrTokenSchema = z.object({
  id: z.int().describe('Its number.'),
  label: z.string().describe('Name of the session, for people.'),
  scopes: z
    .array(z.enum(scopes))
    .nullable()
    .describe("Scopes of a bot's token; null: a person's session, which has all."),
  created_at: createdAtField,
  used_at: z.string().describe('Time of the last use, to some minutes.'),
  expires_at: z.string().nullable().describe('End; null: only a call ends it.'),
});

export function serializeSession(session: ListedSessionOrToken): z.infer<typeof listedSessionOrTokenSchema> {
  const { id, label, scopes: own, createdAt, lastUsedAt, expiresAt } = session;
  return {
    id,
    label,
    scopes: own === null ? null : [...own],
    created_at: createdAt.toISOString(),
    used_at: lastUsedAt.toISOString(),
    expires_at: expiresAt?.toISOString() ?? null,
  };
}

export const listOwnSessions = defineOperation({
  name: 'sessions.list',
  summary: "List the caller's sessions by number, a page at a time; of a bot, its tokens.",
  input: z.strictObject({ after: afterNumberSchema, limit: limitSchema }),
  output: z.object({
    sessions: z
      .array(
        listedSessionOrTokenSchema.extend({
          current: z.boolean().describe('Whether it is the one that asks.'),
          app_password: z.boolean().describe('Created by `sessions.create` for a program.'),
        }),
      )
      .describe('The sessions or tokens, by number.'),
    next: nextNumberSchema,
  }),
  who: 'account',
  scope: 'account',
  errors: [],
  run: async ({ database }, { after, limit }, caller) => {
    const { accountId, sessionId } = requireAccount(caller);
    const rows = await translateLostRead(
      database.general.run((sql) => listSessionsOrTokens(sql, { accountId, after, limit: limit + 1 })),
    );
    const { page, next } = pageOf(rows, limit, ({ id }) => id);
    const sessions = page.map((each) => ({
      ...serializeSession(each),
      current: each.id === sessionId,
      app_password: each.isAppPassword,
    }));
    return { sessions, next };
  },
});

export const endOwnSession = defineOperation({
  name: 'sessions.end',
  summary: "End one of the caller's sessions, which may be the current one. Its token stops working.",
  input: z.strictObject({ session: z.int().positive().describe("The session's number.") }),
  output: z.object({ session: z.int().describe("The session's number.") }),
  who: 'account',
  scope: 'account',
  errors: ['not_found'],
  run: async ({ database, bus }, { session }, caller) => {
    const { accountId } = requireAccount(caller);
    const hasEnded = await withUnknownCommitInvalidation({ bus }, (noteSessionsMayEnd) => {
      noteSessionsMayEnd(accountId);
      return database.general.run((sql) => endSession(sql, accountId, session));
    });
    if (!hasEnded) {
      throw new KlatchError('not_found', { sentence: `You have no session ${session}: sessions.list shows yours` });
    }
    bus.publish('sessionsEnded', [session as SessionOrTokenId]);
    return { session };
  },
});

export const endOtherSessions = defineOperation({
  name: 'sessions.end-others',
  summary: "End all of the caller's sessions except the current one.",
  input: z.strictObject({}),
  output: z.object({ ended: z.int().describe('How many were ended.') }),
  who: 'account',
  scope: 'account',
  errors: [],
  run: async ({ database, bus }, _input, caller) => {
    const { accountId, sessionId } = requireAccount(caller);
    const endedSessionIds = await withUnknownCommitInvalidation({ bus }, (noteSessionsMayEnd) => {
      noteSessionsMayEnd(accountId);
      return database.general.transaction(async (tx) => {
        // One of the sessions may be creating an app password at this moment. Because of the lock, the app password is
        // either created before and ends too, or is refused.
        await lockActiveAccount(tx, accountId);
        return endSessionsOfAccounts(tx, [accountId], sessionId);
      });
    });
    if (endedSessionIds.length > 0) bus.publish('sessionsEnded', endedSessionIds);
    return { ended: endedSessionIds.length };
  },
});
