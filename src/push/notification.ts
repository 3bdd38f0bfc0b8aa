import type { PushConfig } from '../config/services.ts';
import {
  OLDER_MESSAGE_CHARACTERS,
  MAX_CANDIDATE_MESSAGES_PER_PUSH,
  type PushCandidateMessage,
  type NotifiedContent,
} from '../storage/push/push-content.ts';
import type { PushNotification } from './vendors/vendor.ts';

/** The settings from which a notification is built. */
interface NotificationRenderOptions {
  readonly content: PushConfig['content'];
  /** The title of a push if `push.content` hides title and text. */
  readonly projectName: string;
  readonly pushExpiresAfterMs: number;
}

/**
 * Builds a notification for a device. It shows the newest message or, for an owner who wants only mentions, the newest
 * message that mentions the owner, if there is one.
 */
export function buildNotification(
  { claim, title, messages, ageMs }: NotifiedContent,
  options: NotificationRenderOptions,
): PushNotification {
  const { conversationId, firstSeq, lastSeq, nick, level, unreadInAllConversations } = claim;
  const mentioning = messages.filter(({ mentions }) => mentions.includes(nick));
  const shown = (level === 'mentions' ? mentioning[0] : undefined) ?? messages[0]!;
  return {
    conversationId,
    firstSeq,
    lastSeq,
    ...renderTitleAndText(shown, title, options),
    accountUnreadCount: unreadInAllConversations,
    urgent: title === null || mentioning.length > 0,
    expiresAt: new Date(Date.now() + options.pushExpiresAfterMs - ageMs),
  };
}

/**
 * True if the device's owner wants the push. The owner may have chosen "only mentions" after the row was written. If
 * not all texts are read completely, the rest may contain a mention, and the owner gets the push.
 */
export function isWantedByOwner({ claim: { level, nick }, messages }: NotifiedContent): boolean {
  if (level !== 'mentions' || messages.length >= MAX_CANDIDATE_MESSAGES_PER_PUSH) return true;
  return messages.some(({ text, mentions }) => text.length >= OLDER_MESSAGE_CHARACTERS || mentions.includes(nick));
}

function renderTitleAndText(
  { sender, text, files }: PushCandidateMessage,
  title: string | null,
  { content, projectName }: NotificationRenderOptions,
): Pick<PushNotification, 'title' | 'text'> {
  if (content === 'none') return { title: projectName, text: null };
  const conversationTitle = title ?? sender;
  if (content === 'sender') return { title: conversationTitle, text: title === null ? null : sender };
  const body = text.trim() === '' ? files.join(', ') : text;
  return { title: conversationTitle, text: title === null ? body : `${sender}: ${body}` };
}
