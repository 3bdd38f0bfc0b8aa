import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { lockActiveAccount } from '../../storage/accounts/accounts.ts';
import { countSessionsOrTokens } from '../../storage/accounts/session-list.ts';
import { insertAppPassword, lockSession } from '../../storage/accounts/sessions.ts';
import { requireAccount } from '../core/caller.ts';
import { defineOperation } from '../core/operation.ts';
import { newSessionToken } from '../core/session-cache.ts';
import { expiresInSchema, sessionOrDeviceLabelSchema } from './sign-in.ts';

export const createAppPassword = defineOperation({
  name: 'sessions.create',
  summary:
    'Create an app password: a session of the caller for a program, which cannot create another one. It is shown here ' +
    'and never again.',
  input: z.strictObject({
    label: sessionOrDeviceLabelSchema.describe('Name for people: the program that will use it.'),
    expires_in_s: expiresInSchema
      .optional()
      .describe('After so many seconds it ends; not given: when somebody ends it.'),
  }),
  output: z.object({
    session: z.int().describe('Its number, for `sessions.end`.'),
    token: z.string().describe('For `Authorization: Bearer` and `live.authenticate`.'),
    label: z.string().describe('Name of the app password, for people.'),
    expires_at: z.string().nullable().describe('End; null: only a call ends it.'),
  }),
  who: 'person',
  scope: null,
  errors: ['quota_exceeded'],
  run: async ({ database, config }, { label, expires_in_s: expiresInS = null }, caller) => {
    const { accountId, sessionId, isAppPassword } = requireAccount(caller);
    if (isAppPassword) {
      const sentence = 'An app password cannot create another one: sign in with a code or a link';
      throw new KlatchError('forbidden', { sentence });
    }
    const maxSessions = config.limits.sessionsPerUser;
    const { token, hash: tokenHash } = newSessionToken('user');
    const { id, expiresAt } = await database.general.transaction(async (tx) => {
      // The database checks the session, since the cached one may be a minute old. A session that has ended must not
      // create an app password, which would outlive it.
      const isValid = (await lockActiveAccount(tx, accountId)) !== null && (await lockSession(tx, sessionId));
      if (!isValid) throw new KlatchError('unauthenticated');
      if ((await countSessionsOrTokens(tx, accountId)) >= maxSessions) {
        const sentence = `A person has at most ${maxSessions} sessions (limits.sessions-per-user): end one first`;
        throw new KlatchError('quota_exceeded', { sentence });
      }
      return insertAppPassword(tx, { accountId, tokenHash, label, expiresInS });
    });
    return { session: id, token, label, expires_at: expiresAt?.toISOString() ?? null };
  },
});
