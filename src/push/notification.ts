import type { PushContent } from '../config/config.ts';
import {
  OLDER_MESSAGE_CHARACTERS,
  MAX_CANDIDATE_MESSAGES_PER_PUSH,
  type PushCandidateMessage,
  type NotifiedContent,
} from '../storage/push/push-content.ts';
import type { PushNotification } from './vendors/vendor.ts';

/** What makes a note beside its subject. */
interface NotificationRenderOptions {
  readonly content: PushContent;
  /** The title of a push that is to tell nothing. */
  readonly projectName: string;
  readonly pushExpiresAfterMs: number;
}

/** What a device is told of a subject: of several messages the newest, for one who wants mentions the newest of those. */
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
 * Whether something of it is for the device's owner: who has chosen mentions alone since the row was made is told of
 * those. What was cut, or is further back, may have one.
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
