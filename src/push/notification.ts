import type { PushConfig } from '../config/services.ts';
import {
  OLDER_MESSAGE_CHARACTERS,
  MAX_CANDIDATE_MESSAGES_PER_PUSH,
  type PushCandidateMessage,
  type NotifiedContent,
} from '../storage/push/push-content.ts';
import type { PushNotification } from './vendors/vendor.ts';

/** The inputs of a notification besides its contents. */
interface NotificationRenderOptions {
  readonly content: PushConfig['content'];
  /** The title of a push without contents. */
  readonly projectName: string;
  readonly pushExpiresAfterMs: number;
}

/**
 * Builds a device's notification from the newest of several messages. For an owner who wants only mentions it uses the
 * newest message that mentions the owner, if there is one.
 */
export function buildNotification(
  { claim, title, messages, ageMs }: NotifiedContent,
  rules: NotificationRenderOptions,
): PushNotification {
  const { conversationId, firstSeq, lastSeq, nick, level, unreadInAllConversations } = claim;
  const mentioning = messages.filter(({ mentions }) => mentions.includes(nick));
  const shown = (level === 'mentions' ? mentioning[0] : undefined) ?? messages[0]!;
  return {
    conversationId,
    firstSeq,
    lastSeq,
    ...renderTitleAndText(shown, title, rules),
    accountUnreadCount: unreadInAllConversations,
    urgent: title === null || mentioning.length > 0,
    expiresAt: new Date(Date.now() + rules.pushExpiresAfterMs - ageMs),
  };
}

/**
 * Whether the device's owner wants the push: the owner may have chosen only mentions since the row was written.
 * Truncated or older text may contain a mention, and counts as one.
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
  const where = title ?? sender;
  if (content === 'sender') return { title: where, text: title === null ? null : sender };
  const body = text.trim() === '' ? files.join(', ') : text;
  return { title: where, text: title === null ? body : `${sender}: ${body}` };
}
