import { safeLink } from '../callers/core/plain-text.ts';
import { clippedText, clippedToBytes, shownSender, textWithFiles } from './core/message-text.ts';
import type { ReceiverFormat, ReceiverHook, ReceiverMessage } from './core/receiver-format.ts';

/** ntfy turns a message longer than this into a file, which a phone does not show. */
const MAX_MESSAGE_BYTES = 4_096;
/** ntfy refuses a request body longer than this, even if the message in it is short. */
const MAX_BODY_BYTES = 8_192;
const MAX_TITLE_LENGTH = 250;
const MAX_CLICK_URL_BYTES = 1_024;
const TOPIC = /^[-_A-Za-z0-9]{1,64}$/;

/**
 * The priority and the tag of a message, by the mark that its text begins with. Programs that send alerts to ntfy
 * themselves choose them in this way.
 */
const PRIORITY_MARKS = [
  { mark: '🔴', priority: 5, tag: 'rotating_light' },
  { mark: '🟠', priority: 4, tag: 'warning' },
  { mark: '🟢', priority: 3, tag: 'white_check_mark' },
] as const;
const DEFAULT_PRIORITY = 3;
const FIRST_LINK = /https?:\/\/[^\s<>"\\]{1,1024}/i;
/** Punctuation after a link that does not belong to the link. */
const PUNCTUATION = ".,;:!?)]}'";

/** ntfy's publishing as JSON; ntfy shows the messages on a phone. The hook's address is the address of the topic. */
export const ntfy: ReceiverFormat = {
  name: 'ntfy',
  headers: { 'content-type': 'application/json' },
  urlProblem: (url) =>
    TOPIC.test(topicOf(url))
      ? null
      : 'With format ntfy the address has to end in a topic of at most 64 letters, digits, _ and -, ' +
        'such as https://ntfy.sh/mytopic',
  // ntfy accepts JSON only at the root of its server. The query stays, since it may contain the access token.
  requestUrl: (url) => {
    const root = new URL(url);
    root.pathname = url.pathname.slice(0, url.pathname.lastIndexOf('/') + 1);
    return root.href;
  },
  body: (message, hook) => {
    for (let maxBytes = MAX_MESSAGE_BYTES; ; maxBytes = Math.floor(maxBytes / 2)) {
      const body = JSON.stringify(notification(message, hook, maxBytes));
      // Quotes and control characters take several bytes in JSON, so the message may have to be halved. The other
      // fields take a fraction of MAX_BODY_BYTES.
      if (Buffer.byteLength(body) <= MAX_BODY_BYTES) return body;
    }
  },
  readReply: null,
};

function topicOf({ pathname }: URL): string {
  return pathname.slice(pathname.lastIndexOf('/') + 1);
}

function notification(message: ReceiverMessage, { url }: ReceiverHook, maxBytes: number) {
  const { group } = message;
  const text = textWithFiles(message);
  const sender = shownSender(message);
  const priorityMark = PRIORITY_MARKS.find(({ mark }) => text.startsWith(mark));
  const clickUrl = firstLink(text);
  return {
    topic: topicOf(url),
    title: clippedText(sender === group.title ? sender : `${sender} · ${group.title}`, MAX_TITLE_LENGTH),
    message: clippedToBytes(text, maxBytes),
    priority: priorityMark?.priority ?? DEFAULT_PRIORITY,
    ...(priorityMark === undefined ? {} : { tags: [priorityMark.tag] }),
    ...(clickUrl === '' || Buffer.byteLength(clickUrl) > MAX_CLICK_URL_BYTES ? {} : { click: clickUrl }),
  };
}

/** The first link in a text; empty if there is none. */
function firstLink(text: string): string {
  const link = FIRST_LINK.exec(text)?.[0] ?? '';
  let end = link.length;
  while (end > 0 && PUNCTUATION.includes(link[end - 1]!)) end -= 1;
  return safeLink(link.slice(0, end));
}
