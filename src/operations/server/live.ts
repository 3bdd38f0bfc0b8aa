import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { ConversationId, Rev } from '../../model/ids.ts';
import type { SourceKey } from '../../model/source-key.ts';
import { MAX_SUBSCRIBED_CONVERSATIONS, requireAccount, type Caller, type LiveSession } from '../core/caller.ts';
import { listMembersOfConversationAmong } from '../../storage/groups/presence.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { SUBSCRIBE_LIMITS } from '../core/input-limits.ts';
import { defineOperation, defineTargetedOperation } from '../core/operation.ts';
import { conversationField, conversationNumber, installationRoleSchema, accountFields } from '../core/schemas.ts';
import { epochSchema, serializeEpoch, serializeFirstSeq, firstKeptSeqSchema } from '../core/serializers.ts';

const MAX_TOKEN_LENGTH = 200;
const MAX_LISTED_ONLINE = 1_000;
const MISSING_TOKEN_SENTENCE =
  'Give the token of a session: this connection was not opened by a page of http.base-uri with its session cookie';

export const authenticateLive = defineOperation({
  name: 'live.authenticate',
  summary:
    'Authenticate a live connection with the token of a session or of a bot, or a page of http.base-uri with its session cookie.',
  input: z.strictObject({
    token: z
      .string()
      .max(MAX_TOKEN_LENGTH)
      .optional()
      .describe('Not given: the session whose cookie came with the handshake counts.'),
  }),
  output: z.object({
    account: z
      .object({ ...accountFields, role: installationRoleSchema })
      .describe('The account of the session or token.'),
    session: z.int().describe("The session's number."),
  }),
  who: 'anybody',
  scope: null,
  errors: ['live_only', 'unauthenticated', 'forbidden', 'quota_exceeded'],
  run: async ({ sessions, sessionCookie }, { token: given }, caller) => {
    const { live, source } = requireLive(caller);
    const token = given ?? (await sessionCookie.tokenAmong(live.handshakeCookies));
    if (token === null) throw new KlatchError('unauthenticated', { sentence: MISSING_TOKEN_SENTENCE });
    const account = await sessions.authenticate(token, { source, live }).catch(async (error: unknown) => {
      if (error instanceof KlatchError && error.code === 'unauthenticated') await live.onTokenRejected();
      throw error;
    });
    live.onAuthenticated(account);
    const { accountId: id, nick, name, role, sessionId } = account;
    return { account: { id, nick, name, role }, session: sessionId };
  },
});

const foregroundSchema = z.boolean().describe('False: the app of this connection is in the background.');
const CONVERSATION_NUMBER_PATTERN = /^[1-9]\d{0,15}$/;

/**
 * An object with a rev for each conversation number. The loop ends at the first mistake. `z.record` would take 12 ms
 * for 20,000 entries, and 250 ms if each of them is wrong.
 */
const revByConversationSchema = z
  .unknown()
  .transform((rawRevs, context): ReadonlyMap<ConversationId, Rev> => {
    const addIssue = (message: string, path: string[] = []): never => {
      context.addIssue({ code: 'custom', message, path, continue: false });
      return z.NEVER;
    };
    if (typeof rawRevs !== 'object' || rawRevs === null || Array.isArray(rawRevs)) return addIssue('must be an object');
    const ids = Object.keys(rawRevs);
    if (ids.length > MAX_SUBSCRIBED_CONVERSATIONS)
      return addIssue(`names more than ${MAX_SUBSCRIBED_CONVERSATIONS} conversations`);
    const revs = new Map<ConversationId, Rev>();
    for (const id of ids) {
      const rev = (rawRevs as Record<string, unknown>)[id];
      if (!CONVERSATION_NUMBER_PATTERN.test(id)) return addIssue('is not the number of a conversation', [id]);
      if (typeof rev !== 'number' || !Number.isSafeInteger(rev) || rev < 0) return addIssue('is not a rev', [id]);
      revs.set(Number(id) as ConversationId, rev as Rev);
    }
    return revs;
  })
  .default(new Map())
  .meta({
    type: 'object',
    propertyNames: { type: 'string', pattern: CONVERSATION_NUMBER_PATTERN.source },
    additionalProperties: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
    default: {},
  });

export const subscribeLive = defineOperation({
  name: 'live.subscribe',
  summary: 'Subscribe to the changes of your conversations, after those that you already have.',
  input: z.strictObject({
    since: revByConversationSchema.describe('By conversation, up to which rev you have it: `{"7": 43}`.'),
    default: z
      .enum(['now', 'start'])
      .default('now')
      .describe('Where those begin that `since` does not name: with what comes, or with their first change.'),
  }),
  output: z.object({
    conversations: z
      .array(
        z.object({
          id: conversationField,
          rev: z.int().describe('Notifications begin with the change after this one.'),
          first_seq: firstKeptSeqSchema,
          epoch_rev: z
            .int()
            .optional()
            .describe(
              'A client that knows `previous_epoch` drops changes with a greater rev and asks for those after this one.',
            ),
        }),
      )
      .describe('Those that are followed, by number.'),
    ...epochSchema,
    complete: z
      .boolean()
      .describe(
        'False: you are in more than the 20,000 that a connection follows, and those with the highest numbers are left out.',
      ),
  }),
  who: 'account',
  scope: 'messages:read',
  errors: ['live_only'],
  limits: SUBSCRIBE_LIMITS,
  run: async (_services, request, caller) => {
    requireAccount(caller);
    const { live } = requireLive(caller);
    const { conversations, isComplete, ...epochs } = await live.subscribe(request);
    return {
      conversations: conversations.map(({ conversationId: id, rev, firstSeq, epochRev }) => ({
        id,
        rev,
        ...serializeFirstSeq(firstSeq),
        ...(epochs.currentEpoch === 0 ? {} : { epoch_rev: epochRev }),
      })),
      ...serializeEpoch(epochs),
      complete: isComplete,
    };
  },
});

export const setLiveForeground = defineOperation({
  name: 'live.foreground',
  summary:
    'Tell the server whether the app is visible. In the background its account counts as away, and its devices get pushes.',
  input: z.strictObject({ foreground: foregroundSchema }),
  output: z.object({ foreground: foregroundSchema }),
  who: 'person',
  scope: null,
  errors: ['live_only'],
  run: (_services, { foreground }, caller) => {
    const { live } = requireLive(caller);
    live.setForeground(foreground);
    return Promise.resolve({ foreground });
  },
});

export const pingLive = defineOperation({
  name: 'live.ping',
  summary: 'Show the server that the client is alive.',
  input: z.strictObject({}),
  output: z.object({}),
  who: 'anybody',
  scope: null,
  errors: ['live_only'],
  run: (_services, _input, caller) => {
    requireLive(caller);
    return Promise.resolve({});
  },
});

export const listPresence = defineTargetedOperation({
  name: 'presence.list',
  summary: 'List the members of a conversation that are online, by nick.',
  input: z.strictObject({ conversation: conversationNumber }),
  output: z.object({
    accounts: z.array(z.object(accountFields)).describe('Those that are online, by nick.'),
    more: z.boolean().describe('There are more than are listed.'),
  }),
  who: 'member',
  on: 'conversation',
  scope: 'groups:read',
  errors: [],
  run: async ({ database, onlineAccounts }, _input, _caller, { conversationId }) => {
    const request = { conversationId, accounts: onlineAccounts(), limit: MAX_LISTED_ONLINE + 1 };
    const found = await translateLostRead(database.general.run((sql) => listMembersOfConversationAmong(sql, request)));
    return { accounts: found.slice(0, MAX_LISTED_ONLINE), more: found.length > MAX_LISTED_ONLINE };
  },
});

function requireLive(caller: Caller): { readonly live: LiveSession; readonly source: SourceKey } {
  if (caller.kind === 'system' || caller.live === null) throw new KlatchError('live_only');
  return { live: caller.live, source: caller.source };
}
