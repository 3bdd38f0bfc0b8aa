import { isFromGitHost, type CallerFormat, type CallerRequest } from './core/caller-format.ts';
import { CardSequence } from './core/card-sequence.ts';
import { colourOfHex } from './core/colours.ts';
import { htmlText } from './core/html-text.ts';
import { markdownText, withoutEmphasis } from './core/markdown-text.ts';
import { messageForm, type MessageForm } from './core/message-form.ts';
import { safeLink } from './core/plain-text.ts';
import { firstStringOf, isObject, objectsOf, stringOf, type JsonObject } from './core/values.ts';

const MAX_SECTIONS = 100;
const MAX_FACTS = 100;
const MAX_ACTIONS = 100;

/**
 * Cards of Office 365 connectors, which Teams accepted until 2026. elastalert, netdata, Gitea, and older versions of
 * Grafana and Uptime Kuma send them.
 */
export const messageCard: CallerFormat = {
  name: 'message-card',
  matches: ({ body }) =>
    body['@type'] === 'MessageCard' ||
    body['type'] === 'MessageCard' ||
    Array.isArray(body['potentialAction']) ||
    ((Array.isArray(body['sections']) || isObject(body['sections'])) &&
      firstStringOf(body['title'], body['summary']) !== ''),
  read: readMessageCard,
};

function readMessageCard(request: CallerRequest): MessageForm {
  const { body } = request;
  const sequence = new CardSequence();
  sequence.title = plain(body['title']);
  sequence.mood = colourOfHex(stringOf(body['themeColor']));
  sequence.addText(plain(body['text']));
  for (const section of objectsOf(body['sections'], MAX_SECTIONS)) readSection(section, sequence);
  readActions(body['potentialAction'], sequence);
  return messageForm({
    cards: sequence.cards(),
    fallback: plain(body['summary']),
    hasStrangersText: isFromGitHost(request),
  });
}

function readSection(section: JsonObject, sequence: CardSequence): void {
  for (const name of ['title', 'activityTitle', 'activitySubtitle'])
    sequence.addText(withoutEmphasis(plain(section[name])));
  for (const name of ['activityText', 'text']) sequence.addText(plain(section[name]));
  for (const { name, value } of objectsOf(section['facts'], MAX_FACTS)) sequence.addField(plain(name), plain(value));
  for (const { image, title } of [section['heroImage'], section['images']].flatMap((value) =>
    objectsOf(value, MAX_FACTS),
  )) {
    sequence.addImage(plain(title), safeLink(stringOf(image)));
  }
  readActions(section['potentialAction'], sequence);
}

/** Reads the actions that open a URL: `OpenUri`, with one URL for each operating system, and the older `ViewAction`. */
function readActions(value: unknown, sequence: CardSequence): void {
  for (const action of objectsOf(value, MAX_ACTIONS)) {
    const { name, targets, target } = action;
    const [first] = objectsOf(targets, 1);
    const url = firstStringOf(first?.['uri'], Array.isArray(target) ? target[0] : target, action['url']);
    sequence.addLink(plain(name), safeLink(url));
  }
}

/** Converts a text of Teams to plain text. It may have Markdown and simple HTML tags together. */
const plain = (value: unknown): string => markdownText(htmlText(stringOf(value)));
