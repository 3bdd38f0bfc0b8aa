import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import { card, messageForm, type Card, type MessageForm } from './core/message-form.ts';
import { clipped } from './core/plain-text.ts';
import { attachmentsIn, parseListIfString, readAttachments, type Attachment } from './core/slack-attachments.ts';
import { blockPieces } from './core/slack-blocks.ts';
import { layoutCard } from './core/slack-layout.ts';
import { mrkdwnText, unformattedText } from './core/slack-mrkdwn.ts';
import { firstStringOf, isObject, stringOf, type JsonObject } from './core/values.ts';

/** A body with a `text` and one of these keys is in the format of Slack or Rocket.Chat. */
const SLACK_KEYS = ['channel', 'icon_emoji', 'link_names', 'mrkdwn', 'mrkdwn_in', 'alias', 'avatar'] as const;
/**
 * The number of entries at the beginning of a list that are searched for an object, since the first ones may be null.
 */
const MAX_ENTRIES_SEARCHED = 10;
/** A `text` longer than this is not compared with the blocks in the same body, and so is always shown. */
const MAX_COMPARED_TEXT_LENGTH = 4_000;
const LIST_IN_STRING = /^\s*\[\s*\{/;

/** Headers of programs that send texts of strangers, and that can send them in Slack's format. */
const GIT_HOST_HEADERS = ['x-gitea-event', 'x-gogs-event', 'x-github-event', 'x-gitlab-event'] as const;
const SENTRY_AGENT = /^sentry\//i;

/** Slack's incoming webhooks, whose bodies Mattermost and Rocket.Chat accept too. */
export const slack: CallerFormat = {
  name: 'slack',
  matches: ({ body }) =>
    hasObjectInList(body['attachments']) ||
    hasObjectInList(body['blocks']) ||
    (typeof body['text'] === 'string' && SLACK_KEYS.some((key) => (body[key] ?? null) !== null)),
  read: readSlack,
};

function hasObjectInList(value: unknown): boolean {
  if (typeof value === 'string') return LIST_IN_STRING.test(value);
  return Array.isArray(value) && value.slice(0, MAX_ENTRIES_SEARCHED).some(isObject);
}

function readSlack({ body, headers }: CallerRequest): MessageForm {
  const attachments = readAttachments(attachmentsIn(body));
  const blocksCard = layoutCard(blockPieces(parseListIfString(body['blocks'])));
  const pretext = attachments[0]?.pretext ?? '';
  const messageText = textOf(body);
  const laidOutCards = [blocksCard, ...attachments.flatMap((each) => (each.hasBlocks ? [each.card] : []))];
  const text = isRepeatedBy(messageText, laidOutCards) ? '' : messageText;
  // The text of the blocks becomes the message's own text, which is shown as a whole. The text of a card would be cut.
  const blocksText = blocksCard.text === '' ? '' : joined([blocksCard.title, blocksCard.text]);
  const cardBelowText = blocksCard.text === '' ? blocksCard : card({ ...blocksCard, title: '', text: '' });
  return messageForm({
    senderLabel: firstStringOf(body['username'], body['alias']) || null,
    iconUrl: firstStringOf(body['icon_url'], body['avatar']) || null,
    text: joined([text, blocksText, isEmptyCard(cardBelowText) ? pretext : '']),
    cards: [
      ...(isEmptyCard(cardBelowText) ? [] : [cardBelowText]),
      ...cardsOf(attachments, isEmptyCard(cardBelowText)),
    ],
    fallback: joined(attachments.map((each) => each.fallback)),
    hasStrangersText:
      GIT_HOST_HEADERS.some((name) => headers[name] !== undefined) || SENTRY_AGENT.test(headers['user-agent'] ?? ''),
  });
}

function textOf(body: JsonObject): string {
  const text = stringOf(body['text']);
  return body['mrkdwn'] === false ? unformattedText(text) : mrkdwnText(text);
}

/**
 * The cards of the attachments, each with its pretext before its text. The first pretext is left out if the message's
 * own text has it.
 */
function cardsOf(attachments: readonly Attachment[], isFirstPretextShown: boolean): Card[] {
  return attachments.map(({ card: each, pretext }, index) =>
    pretext === '' || (index === 0 && isFirstPretextShown) ? each : { ...each, text: joined([pretext, each.text]) },
  );
}

function isEmptyCard({ title, text, fields, links, image, footer }: Card): boolean {
  return [title, text, image, footer].every((part) => part === '') && fields.length === 0 && links.length === 0;
}

function joined(parts: readonly string[]): string {
  return parts
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join('\n');
}

/**
 * True if the cards of the blocks contain each line of `text`, so that `text` is left out. Slack itself shows `text`
 * only in notifications when there are blocks.
 */
function isRepeatedBy(text: string, cards: readonly Card[]): boolean {
  if (text.length > MAX_COMPARED_TEXT_LENGTH) return false;
  const lines = text
    .split('\n')
    .map(bareWords)
    .filter((line) => line !== '');
  if (lines.length === 0) return false;
  const shownLines = new Set(cards.flatMap(textLines).map(bareWords));
  return lines.every((line) => shownLines.has(line));
}

function textLines({ title, text, fields, footer }: Card): string[] {
  const values = fields.flatMap(({ name, value }) => [name, value, `${name} ${value}`]);
  return [title, text, footer, ...values].flatMap((part) => clipped(part, MAX_COMPARED_TEXT_LENGTH).split('\n'));
}

/** A line reduced to its letters and digits, in lower case. */
const bareWords = (line: string): string => line.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');
