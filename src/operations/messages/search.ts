import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { MESSAGE_ID_PATTERN, messageId, parseMessageId, type AccountId, type ConversationId } from '../../model/ids.ts';
import { findBotOwner } from '../../storage/accounts/bots.ts';
import { findConversationAndRole } from '../../storage/groups/members.ts';
import { SearchTimeoutError, searchMessagesByWords, type SearchPage } from '../../storage/messages/search.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { notAMember } from '../core/conversation-access.ts';
import { requireAccount } from '../core/caller.ts';
import { defineOperation } from '../core/operation.ts';
import { conversationField, conversationNumber } from '../core/schemas.ts';
import { messageSchema, serializeMessage } from '../core/serializers.ts';
import { pageLimit } from '../core/page.ts';

const MAX_SEARCH_PAGE_SIZE = 50;
const MAX_QUERY_LENGTH = 200;
const MAX_PAGE_BYTES = 512 * 1024;

const messageIdSchema = z.string().regex(MESSAGE_ID_PATTERN, 'must be the id of a message');

const searchPageSchema = z.object({
  messages: z
    .array(messageSchema.extend({ conversation: conversationField }))
    .describe('Those that were found, newest first.'),
  next: z.string().nullable().describe('Pass it as `before` to get the next page; null: this is the last page.'),
});

export const searchMessages = defineOperation({
  name: 'messages.search',
  summary: "Find messages by their words in the caller's conversations, newest first.",
  input: z.strictObject({
    text: z
      .string()
      .min(1)
      .max(MAX_QUERY_LENGTH)
      .describe('Words that a message has to have; "a phrase", or, and -not are understood.'),
    conversation: conversationNumber.optional().describe('In this conversation only.'),
    before: messageIdSchema.optional().describe('Only older messages than this one: the `next` of the page before.'),
    limit: pageLimit(MAX_SEARCH_PAGE_SIZE, 20),
  }),
  output: searchPageSchema,
  who: 'account',
  scope: 'messages:read',
  errors: ['search_timeout', 'rate_limited', 'not_found'],
  run: async ({ database, searchLimiterByPerson }, { text, conversation, before, limit }, caller) => {
    const { accountId, accountKind } = requireAccount(caller);
    const isBot = accountKind === 'bot';
    const owner = isBot ? await translateLostRead(database.general.run((sql) => findBotOwner(sql, accountId))) : null;
    return searchLimiterByPerson.run(owner ?? accountId, async () => {
      const conversationId = (conversation ?? null) as ConversationId | null;
      if (conversationId !== null) {
        const status = await translateLostRead(
          database.general.run((sql) => findConversationAndRole(sql, { conversationId, accountId })),
        );
        if (status === null || status.role === null) throw notAMember(conversationId);
      }
      const position = before === undefined ? null : parseMessageId(before);
      const request = { text, accountId, conversationId, before: position, limit, maxBytes: MAX_PAGE_BYTES };
      const page = await translateLostRead(searchMessagesByWords(database.search, request)).catch(translateTimeout);
      if (page === null) {
        const sentence = 'before: there is no such message; give the id of one, such as `next` of the page before';
        throw new KlatchError('not_found', { sentence });
      }
      return serializePage(page, accountId);
    });
  },
});

function translateTimeout(error: unknown): never {
  throw error instanceof SearchTimeoutError ? new KlatchError('search_timeout', { cause: error }) : error;
}

function serializePage({ found, next }: SearchPage, viewerId: AccountId): z.infer<typeof searchPageSchema> {
  return {
    messages: found.map(({ conversationId, message }) => ({
      conversation: conversationId,
      ...serializeMessage(conversationId, message, viewerId),
    })),
    next: next === null ? null : messageId(next.conversationId, next.seq, next.logEpoch),
  };
}
