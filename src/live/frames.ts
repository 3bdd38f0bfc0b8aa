import type { ConversationId, Rev, Seq } from '../model/ids.ts';
import { serializeChange } from '../operations/core/serializers.ts';
import type { Change } from '../storage/messages/changes.ts';

/** Who a signal is about. */
interface EventAccount {
  readonly id: number;
  readonly nick: string;
  readonly name: string;
}

/** One change of a conversation, as a notification. */
export function changeText(conversation: ConversationId, change: Change): string {
  return notification('conversation.change', { conversation, ...serializeChange(conversation, change) });
}

/** The account has come into a conversation; its changes begin behind this one. */
export function joinedText(conversation: ConversationId, rev: Rev): string {
  return notification('conversation.joined', { conversation, rev });
}

/** The account is in the conversation no longer; nothing of it follows. */
export function leftText(conversation: ConversationId): string {
  return notification('conversation.left', { conversation });
}

/** The account has read up to here, on one of its devices. */
export function readText(conversation: ConversationId, seq: Seq): string {
  return notification('conversation.read', { conversation, seq });
}

export function typingText(conversation: ConversationId, account: EventAccount): string {
  return notification('typing', { conversation, account });
}

export function presenceText(account: EventAccount, online: boolean): string {
  return notification('presence', { account, online });
}

function notification(method: string, params: object): string {
  return JSON.stringify({ jsonrpc: '2.0', method, params });
}
