import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { AccountId, ConversationId } from '../../model/ids.ts';
import { listConversations, type OwnConversation } from '../../storage/groups/conversations.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { requireAccount } from '../core/caller.ts';
import { defineOperation, defineTargetedOperation } from '../core/operation.ts';
import { limitSchema, pageOf, afterNumberSchema, nextNumberSchema } from '../core/page.ts';
import type { Services } from '../core/services.ts';
import {
  conversationSchema,
  serializeActor,
  serializeMessagePreview,
  type SerializedConversation,
} from '../core/serializers.ts';
import { conversationNumber } from '../core/schemas.ts';

export const listOwnConversations = defineOperation({
  name: 'conversations.list',
  summary:
    'List your groups and private conversations by number, with the numbers of unread messages, a page at a time.',
  input: z.strictObject({ after: afterNumberSchema, limit: limitSchema }),
  output: z.object({
    conversations: z.array(conversationSchema).describe('Those that the caller is in, by number.'),
    next: nextNumberSchema,
  }),
  who: 'account',
  scope: 'messages:read',
  errors: [],
  run: async ({ database }, { after, limit }, caller) => {
    const { accountId } = requireAccount(caller);
    const request = { accountId, after, limit: limit + 1 };
    const rows = await translateLostRead(database.general.run((sql) => listConversations(sql, request)));
    const { page, next } = pageOf(rows, limit, (conversation) => conversation.id);
    return { conversations: page.map(serializeConversation), next };
  },
});

export const showOwnConversation = defineTargetedOperation({
  name: 'conversations.show',
  summary: 'Show one of your groups or private conversations, with the numbers of unread messages.',
  input: z.strictObject({ conversation: conversationNumber }),
  output: conversationSchema,
  who: 'member',
  on: 'conversation',
  scope: 'messages:read',
  errors: [],
  run: async (services, _input, caller, { conversationId }) =>
    showConversation(services, { accountId: requireAccount(caller).accountId, only: conversationId }),
});

/** A conversation as its member sees it. Throws `not_found` for an account that is no member. */
export async function showConversation(
  { database }: Services,
  request: { accountId: AccountId; only: ConversationId },
): Promise<SerializedConversation> {
  const [found] = await translateLostRead(database.general.run((sql) => listConversations(sql, request)));
  if (found !== undefined) return serializeConversation(found);
  const sentence = `You are in no conversation ${request.only}: look at the list of yours`;
  throw new KlatchError('not_found', { sentence });
}

function serializeConversation(conversation: OwnConversation): SerializedConversation {
  const { firstSeq, lastSeq, readSeq, lastMessageAt, lastMessage, peer, title } = conversation;
  return {
    id: conversation.id,
    kind: conversation.kind,
    title: title ?? peer?.name ?? '',
    about: conversation.about,
    public: conversation.public,
    archived: conversation.archived,
    role: conversation.role,
    members: conversation.members,
    peer: peer === null ? null : serializeActor(peer),
    created_at: conversation.createdAt.toISOString(),
    first_seq: firstSeq,
    last_seq: lastSeq,
    last_rev: conversation.lastRev,
    last_at: lastMessageAt?.toISOString() ?? null,
    last_message: lastMessage === null ? null : serializeMessagePreview(lastMessage),
    read_seq: readSeq,
    // Unread messages that retention removed do not count.
    unread: Math.max(0, lastSeq - Math.max(readSeq, firstSeq - 1)),
    unread_mentions: conversation.unreadMentions,
    notifications: { level: conversation.level, muted_until: conversation.mutedUntil?.toISOString() ?? null },
  };
}
