import { truncateToJsonBytes } from './truncate.ts';
import type { PushNotification } from './vendors/vendor.ts';

/** Bytes of JSON for the title of a notification: most of the room is for the text. */
const MAX_TITLE_BYTES = 400;

/** The words of a notification, cut to fit into a payload. */
interface PayloadText {
  readonly title: string;
  readonly text: string | null;
}

/**
 * The JSON of a notification in at most `maxBytes`, whatever its text: `render` puts the words where the vendor expects
 * them, each once.
 */
export function buildPayload(
  notification: PushNotification,
  maxBytes: number,
  render: (text: PayloadText) => object,
): string {
  const title = truncateToJsonBytes(notification.title, MAX_TITLE_BYTES);
  const whole = { title, text: notification.text?.toWellFormed() ?? null };
  if (whole.text === null || whole.text.length <= maxBytes) {
    const payload = JSON.stringify(render(whole));
    if (whole.text === null || Buffer.byteLength(payload) <= maxBytes) return payload;
  }
  const overheadBytes = Buffer.byteLength(JSON.stringify(render({ title, text: '' })));
  return JSON.stringify(
    render({ title, text: truncateToJsonBytes(whole.text, Math.max(0, maxBytes - overheadBytes)) }),
  );
}

/** The key by which the notifications of one conversation replace each other. */
export function collapseKey({ conversationId }: PushNotification): string {
  return `c${conversationId}`;
}

/** Whole seconds until a notification expires, at most a vendor's bound. */
export function secondsUntilExpiry({ expiresAt }: PushNotification, maxS: number): number {
  return Math.max(0, Math.min(maxS, Math.floor((expiresAt.getTime() - Date.now()) / 1000)));
}
