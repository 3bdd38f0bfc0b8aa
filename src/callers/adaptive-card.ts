import { isFromGitHost, type CallerFormat, type CallerRequest } from './core/caller-format.ts';
import { CardSequence } from './core/card-sequence.ts';
import { markdownText, withoutEmphasis } from './core/markdown-text.ts';
import { messageForm, type Card, type MessageForm, type Mood } from './core/message-form.ts';
import { defusedText, safeLink } from './core/plain-text.ts';
import { firstStringOf, objectOf, objectsOf, stringOf, parseJsonIfString, type JsonObject } from './core/values.ts';

const MAX_CARDS_READ = 100;
const MAX_ELEMENTS = 500;
const MAX_DEPTH = 10;
const MAX_CELLS = 25;
const CARD_TYPE = 'application/vnd.microsoft.card.';
const CHILD_FIELDS = ['items', 'columns', 'body', 'images'] as const;
const LARGE_SIZES: ReadonlySet<string> = new Set(['medium', 'large', 'extralarge']);
const MAX_ICON_PIXELS = 64;

const MOOD_BY_COLOUR: ReadonlyMap<string, Mood> = new Map<string, Mood>([
  ['attention', 'danger'],
  ['warning', 'warning'],
  ['good', 'good'],
  ['accent', 'info'],
]);

/**
 * The body of a post to a workflow of Microsoft Teams: an object whose attachments are Adaptive Cards, or one card
 * alone.
 */
export const adaptiveCard: CallerFormat = {
  name: 'adaptive-card',
  matches: ({ body }) =>
    body['type'] === 'AdaptiveCard' ||
    objectsOf(body['attachments'], 1).some(({ contentType }) => stringOf(contentType).startsWith(CARD_TYPE)),
  read: readMessage,
};

function readMessage(request: CallerRequest): MessageForm {
  const { body } = request;
  const isCard = body['type'] === 'AdaptiveCard';
  const cardContents = isCard
    ? [body]
    : objectsOf(body['attachments'], MAX_CARDS_READ).map(({ content }) => objectOf(parseJsonIfString(content)));
  const fallbacks = cardContents.flatMap(({ fallbackText, speak }) => [fallbackText, speak]);
  return messageForm({
    text: isCard ? '' : plain(body['text']),
    cards: cardContents.flatMap(readCard),
    fallback: plain(firstStringOf(body['summary'], ...fallbacks)),
    hasStrangersText: isFromGitHost(request),
  });
}

/** Reads the elements of a card in their order. A hero card has its title and its text as fields, not as elements. */
function readCard(content: JsonObject): readonly Card[] {
  const reader = new ElementReader();
  reader.sequence.title = content['type'] === 'AdaptiveCard' ? '' : plain(content['title']);
  for (const name of ['subtitle', 'text']) reader.sequence.addText(plain(content[name]));
  reader.readAll(content['body'], 0);
  for (const name of ['actions', 'buttons']) reader.readActions(content[name]);
  return reader.sequence.cards();
}

class ElementReader {
  readonly sequence = new CardSequence();
  #remainingElements = MAX_ELEMENTS;

  readAll(value: unknown, depth: number): void {
    for (const element of objectsOf(value, MAX_ELEMENTS)) {
      if (depth > MAX_DEPTH || this.#remainingElements <= 0) return;
      this.#remainingElements -= 1;
      this.#read(element, depth);
    }
  }

  readActions(value: unknown): void {
    for (const action of objectsOf(value, MAX_CELLS)) {
      this.sequence.addLink(plain(action['title']), safeLink(firstStringOf(action['url'], action['value'])));
    }
  }

  #read(element: JsonObject, depth: number): void {
    if (this.sequence.isUntitled) this.sequence.mood ??= moodOf(element);
    this.#readOwnContent(element);
    this.readActions(element['selectAction']);
    for (const name of CHILD_FIELDS) this.readAll(element[name], depth + 1);
  }

  #readOwnContent(element: JsonObject): void {
    switch (element['type']) {
      case 'FactSet':
        for (const fact of objectsOf(element['facts'], MAX_ELEMENTS)) {
          this.sequence.addField(plain(fact['title'] ?? fact['name']), plain(fact['value']));
        }
        return;
      case 'ActionSet':
        return this.readActions(element['actions']);
      case 'Image':
        return isIcon(element) ? undefined : this.#readImage(element);
      case 'Media':
        return this.#readMedia(element);
      case 'Table':
        return this.#readTable(element);
      case 'CodeBlock':
        return this.sequence.addText(`\`\`\`\n${stringOf(element['codeSnippet'])}\n\`\`\``);
      case 'Badge':
        return this.sequence.addField('', plain(element['text']), true);
      default:
        return this.#readText(element);
    }
  }

  #readImage({ altText, url }: JsonObject): void {
    this.sequence.addImage(plain(altText), safeLink(stringOf(url)));
  }

  #readMedia({ altText, sources }: JsonObject): void {
    for (const { url } of objectsOf(sources, 1)) this.sequence.addLink(plain(altText), safeLink(stringOf(url)));
  }

  #readText(element: JsonObject): void {
    const text = plain(firstStringOf(element['text'], runsText(element['inlines'])));
    if (this.sequence.isUntitled && isHeading(element)) this.sequence.title = withoutEmphasis(text);
    else this.sequence.addText(text);
  }

  #readTable(element: JsonObject): void {
    for (const row of objectsOf(element['rows'], MAX_ELEMENTS)) {
      const cells = objectsOf(row['cells'], MAX_CELLS).map(({ items }) =>
        objectsOf(items, MAX_CELLS)
          .map(({ text, inlines }) => plain(firstStringOf(text, runsText(inlines))))
          .join(' '),
      );
      this.sequence.addText(cells.join(' | '));
    }
  }
}

const lower = (value: unknown): string => stringOf(value).toLowerCase();

function moodOf({ color, style }: JsonObject): Mood | null {
  return MOOD_BY_COLOUR.get(lower(color)) ?? MOOD_BY_COLOUR.get(lower(style)) ?? null;
}

function isHeading({ weight, style, size }: JsonObject): boolean {
  return lower(weight) === 'bolder' || lower(style) === 'heading' || LARGE_SIZES.has(lower(size));
}

/** True for an image that is probably a logo or the picture of a person beside a title, which is not shown. */
function isIcon({ style, size, width, height }: JsonObject): boolean {
  const pixels = [width, height].map((value) => Number.parseInt(stringOf(value), 10));
  return lower(style) === 'person' || lower(size) === 'small' || pixels.some((length) => length <= MAX_ICON_PIXELS);
}

/** The text of a line that is given as a list of pieces, each with a style of its own. */
function runsText(value: unknown): string {
  if (!Array.isArray(value)) return '';
  return value
    .slice(0, MAX_ELEMENTS)
    .map((run: unknown) => stringOf(typeof run === 'string' ? run : objectOf(run)['text']))
    .join('');
}

/**
 * A function such as `{{DATE(2026-03-01T10:02:00Z)}}`. Teams shows the time in the reader's time zone. Klatch shows the
 * time as it was written.
 */
const DATE_FUNCTION = /\{\{(?:DATE|TIME)\(([^(){},]{1,40})[^(){}]{0,20}\)\}\}/g;

const plain = (value: unknown): string =>
  markdownText(stringOf(value), { angleText }).replace(DATE_FUNCTION, (_whole, moment: string) => moment.trim());

/**
 * `<at>Ada</at>` mentions a person in Teams. In Klatch it mentions nobody, since the member with the nick `Ada` may be
 * another person.
 */
function angleText(content: string): string | null {
  if (content === 'at' || content.startsWith('at ')) return defusedText('@');
  return content === '/at' ? '' : null;
}
