import type { AccountId, ConversationId, Rev, Seq } from '../model/ids.ts';
import { serializeChange } from '../operations/core/serializers.ts';
import type { Change } from '../storage/messages/changes.ts';

/** The account that an event is about. */
interface EventAccount {
  readonly id: number;
  readonly nick: string;
  readonly name: string;
}

/**
 * One change of a conversation as a notification for `viewerId`; null: for all accounts except the sender of its
 * message.
 */
export function changeNotification(
  conversation: ConversationId,
  change: Change,
  viewerId: AccountId | null = null,
): string {
  const params = { conversation, ...serializeChange(conversation, change, viewerId) };
  return serializeNotification('conversation.change', params);
}

/** The account has joined a conversation; it gets the changes after this rev. */
export function joinedNotification(conversation: ConversationId, rev: Rev): string {
  return serializeNotification('conversation.joined', { conversation, rev });
}

/** The account has left the conversation; no change of the conversation follows. */
export function leftNotification(conversation: ConversationId): string {
  return serializeNotification('conversation.left', { conversation });
}

/** The account has read up to `seq`, on one of its devices. */
export function readPositionNotification(conversation: ConversationId, seq: Seq): string {
  return serializeNotification('conversation.read', { conversation, seq });
}

/** The account has changed its own settings of the conversation, on one of its devices. */
export function settingsUpdatedNotification(conversation: ConversationId): string {
  return serializeNotification('conversation.updated', { conversation });
}

export function typingNotification(conversation: ConversationId, account: EventAccount): string {
  return serializeNotification('typing', { conversation, account });
}

export function presenceNotification(account: EventAccount, online: boolean): string {
  return serializeNotification('presence', { account, online });
}

/** The account has another nick or name. */
export function accountChangedNotification(account: EventAccount): string {
  return serializeNotification('account.changed', { account });
}

function serializeNotification(method: string, params: object): string {
  return JSON.stringify({ jsonrpc: '2.0', method, params });
}
