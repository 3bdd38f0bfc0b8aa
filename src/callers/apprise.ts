import type { CallerFormat } from './core/caller-format.ts';
import { moodOfLevel } from './core/levels.ts';
import { card, messageForm, type EncodedFile } from './core/message-form.ts';
import { firstStringOf, objectsOf, stringOf, type JsonObject } from './core/values.ts';

const TYPES: ReadonlySet<unknown> = new Set(['info', 'success', 'warning', 'failure', 'error']);
const FORMATS: ReadonlySet<unknown> = new Set(['text', 'markdown', 'html']);
const MAX_FILES = 100;

/**
 * Apprise's `json://` and `form://` (`version`, `title`, `message`), and its `apprise://` (`title`, `body`, `format`).
 */
export const apprise: CallerFormat = {
  name: 'apprise',
  matches: ({ body }) =>
    TYPES.has(body['type']) &&
    ((stringOf(body['version']) !== '' && typeof body['message'] === 'string') ||
      (FORMATS.has(body['format']) && typeof body['body'] === 'string')),
  read: ({ body }) => {
    const type = stringOf(body['type']);
    return messageForm({
      cards: [
        card({
          title: stringOf(body['title']),
          text: firstStringOf(body['message'], body['body']),
          // Apprise also sends `info` for a message without a type, so `info` gives the card no mood.
          mood: type === 'info' ? null : moodOfLevel(type),
        }),
      ],
      files: objectsOf(body['attachments'], MAX_FILES).flatMap(readFile),
    });
  },
};

function readFile(file: JsonObject, index: number): EncodedFile[] {
  const base64 = stringOf(file['base64']);
  return base64 === '' ? [] : [{ name: firstStringOf(file['filename'], `file${index + 1}`), base64 }];
}
