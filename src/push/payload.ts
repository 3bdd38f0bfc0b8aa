import { truncateToJsonBytes } from './truncate.ts';
import type { PushNotification } from './vendors/vendor.ts';

/** The most bytes of JSON for the title of a notification, so that most of the payload is left for the text. */
const MAX_TITLE_BYTES = 400;

/** The title and the text of a notification, cut so that they fit into a payload. */
interface PayloadText {
  readonly title: string;
  readonly text: string | null;
}

/**
 * Builds the JSON of a notification in at most `maxBytes`, however long its text is. `render` puts title and text where
 * the vendor expects them, each exactly once.
 */
export function buildPayload(
  notification: PushNotification,
  maxBytes: number,
  render: (text: PayloadText) => object,
): string {
  const title = truncateToJsonBytes(notification.title, MAX_TITLE_BYTES);
  const untruncated = { title, text: notification.text?.toWellFormed() ?? null };
  if (untruncated.text === null || untruncated.text.length <= maxBytes) {
    const payload = JSON.stringify(render(untruncated));
    if (untruncated.text === null || Buffer.byteLength(payload) <= maxBytes) return payload;
  }
  const overheadBytes = Buffer.byteLength(JSON.stringify(render({ title, text: '' })));
  return JSON.stringify(
    render({ title, text: truncateToJsonBytes(untruncated.text, Math.max(0, maxBytes - overheadBytes)) }),
  );
}

/**
 * The collapse key of a notification: vendors and devices replace an older notification with the same key. It is the
 * same for all notifications of a conversation.
 */
export function collapseKey({ conversationId }: PushNotification): string {
  return `c${conversationId}`;
}

/** Whole seconds until a notification expires, at most `maxS`. */
export function secondsUntilExpiry({ expiresAt }: PushNotification, maxS: number): number {
  return Math.max(0, Math.min(maxS, Math.floor((expiresAt.getTime() - Date.now()) / 1000)));
}
