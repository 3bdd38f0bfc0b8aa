import type { CallerFormat } from './core/caller-format.ts';
import { card, messageForm, type MessageForm } from './core/message-form.ts';
import { moodUnlessShown } from './core/render-text.ts';
import { firstStringOf, isObject, numberOf, objectOf, stringOf, type JsonObject } from './core/values.ts';

/** At this priority or a higher one, Gotify's own clients sound an alarm. */
const HIGH_PRIORITY = 8;

/** A message to a Gotify server, as JSON or as an HTTP form. Many programs can send it. */
export const gotify: CallerFormat = {
  name: 'gotify',
  matches: ({ body }) => typeof body['message'] === 'string' && isObject(body['extras']),
  read: ({ body }) => readGotify(body),
};

function readGotify(body: JsonObject): MessageForm {
  const [title, text] = [stringOf(body['title']), stringOf(body['message'])];
  const notification = objectOf(objectOf(body['extras'])['client::notification']);
  const isHigh = (numberOf(body['priority']) ?? 0) >= HIGH_PRIORITY;
  return messageForm({
    cards: [
      card({
        title,
        url: firstStringOf(objectOf(notification['click'])['url']),
        mood: moodUnlessShown(isHigh ? 'warning' : null, text),
        text,
        image: firstStringOf(notification['bigImageUrl']),
      }),
    ],
  });
}
