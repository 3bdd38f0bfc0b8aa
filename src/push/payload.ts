import { truncateToJsonBytes } from './truncate.ts';
import type { PushNotification } from './vendors/vendor.ts';

/** What a note may show of its title, in bytes of JSON: the text is what the room is for. */
const MAX_TITLE_BYTES = 400;

/** The words of a note as they fit into a payload. */
interface PayloadText {
  readonly title: string;
  readonly text: string | null;
}

/**
 * The JSON of a note in at most `maxBytes`, whatever its text: `render` puts the words where the vendor wants them,
 * each once.
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

/** What the messages of one conversation replace one another by. */
export function collapseKey({ conversationId }: PushNotification): string {
  return `c${conversationId}`;
}

/** Whole seconds until a note is worth nothing any more, at most a vendor's bound. */
export function secondsUntilExpiry({ expiresAt }: PushNotification, maxS: number): number {
  return Math.max(0, Math.min(maxS, Math.floor((expiresAt.getTime() - Date.now()) / 1000)));
}
