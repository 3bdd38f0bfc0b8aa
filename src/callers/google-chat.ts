import { isFromGitHost, type CallerFormat, type CallerRequest } from './core/caller-format.ts';
import { CardSequence } from './core/card-sequence.ts';
import { htmlText } from './core/html-text.ts';
import { markdownText } from './core/markdown-text.ts';
import { messageForm, type Card, type MessageForm } from './core/message-form.ts';
import { defusedText, labelledLink, safeLink } from './core/plain-text.ts';
import { firstStringOf, objectOf, objectsOf, stringOf, type JsonObject } from './core/values.ts';

const MAX_CARDS_READ = 100;
const MAX_SECTIONS = 100;
const MAX_WIDGETS = 100;
const MAX_BUTTONS = 25;

/**
 * Google Chat's incoming webhook, with cards of both versions. Grafana, Uptime Kuma, Healthchecks, Gitea and netdata
 * send it.
 */
export const googleChat: CallerFormat = {
  name: 'google-chat',
  matches: ({ body }) =>
    objectsOf(body['cardsV2'], 1).length > 0 ||
    objectsOf(body['cards'], 1).some((each) => 'sections' in each || 'header' in each),
  read: readGoogleChat,
};

function readGoogleChat(request: CallerRequest): MessageForm {
  const { body } = request;
  const cards = [
    ...objectsOf(body['cardsV2'], MAX_CARDS_READ).map((each) => objectOf(each['card'] ?? each)),
    ...objectsOf(body['cards'], MAX_CARDS_READ),
  ];
  return messageForm({
    text: markdownText(stringOf(body['text']), { angleText: angleBracketText }),
    cards: cards.flatMap(readCard),
    fallback: plain(firstStringOf(body['fallbackText'], body['previewText'])),
    hasStrangersText: isFromGitHost(request),
  });
}

function readCard(content: JsonObject): readonly Card[] {
  const sequence = new CardSequence();
  const header = objectOf(content['header']);
  sequence.title = plain(header['title']);
  sequence.addText(plain(header['subtitle']));
  for (const section of objectsOf(content['sections'], MAX_SECTIONS)) {
    sequence.addText(plain(section['header']));
    readWidgets(section['widgets'], sequence);
  }
  readButtons(content['cardActions'], sequence);
  const { primaryButton, secondaryButton } = objectOf(content['fixedFooter']);
  for (const button of [primaryButton, secondaryButton]) readButtons(button, sequence);
  return sequence.cards();
}

function readWidgets(value: unknown, sequence: CardSequence): void {
  for (const widget of objectsOf(value, MAX_WIDGETS)) {
    sequence.addText(plain(objectOf(widget['textParagraph'])['text']));
    readLabelledText(objectOf(widget['decoratedText'] ?? widget['keyValue']), sequence);
    const { imageUrl, altText } = objectOf(widget['image']);
    sequence.addImage(plain(altText), safeLink(stringOf(imageUrl)));
    for (const { title, subtitle } of objectsOf(objectOf(widget['grid'])['items'], MAX_WIDGETS)) {
      sequence.addField(plain(title), plain(subtitle));
    }
    readButtons(objectOf(widget['buttonList'])['buttons'], sequence);
    readButtons(widget['buttons'], sequence);
    readButtons(objectOf(widget['chipList'])['chips'], sequence);
    for (const column of objectsOf(objectOf(widget['columns'])['columnItems'], MAX_BUTTONS))
      readColumn(column, sequence);
  }
}

/** Reads the widgets of a column. Columns are not nested. */
function readColumn(column: JsonObject, sequence: CardSequence): void {
  const widgets = objectsOf(column['widgets'], MAX_WIDGETS);
  readWidgets(
    widgets.filter((widget) => !('columns' in widget)),
    sequence,
  );
}

function readLabelledText(widget: JsonObject, sequence: CardSequence): void {
  const lines = [widget['text'] ?? widget['content'], widget['bottomLabel']].map(plain).filter((line) => line !== '');
  sequence.addField(plain(widget['topLabel']), lines.join('\n'));
  sequence.addLink('', addressOf(widget));
  readButtons(widget['button'], sequence);
}

/** Reads buttons. In the first version of cards, the key says whether a button shows a text or an image. */
function readButtons(value: unknown, sequence: CardSequence): void {
  for (const each of objectsOf(value, MAX_BUTTONS)) {
    const button = objectOf(each['textButton'] ?? each['imageButton'] ?? each);
    const label = firstStringOf(button['text'], button['label'], button['actionLabel'], button['altText']);
    sequence.addLink(plain(label), addressOf(button));
  }
}

function addressOf({ onClick }: JsonObject): string {
  return safeLink(stringOf(objectOf(objectOf(onClick)['openLink'])['url']));
}

const plain = (value: unknown): string => htmlText(stringOf(value));

/** The plain text for `<content>` in the text outside the cards: a URL with a label, or a person. */
function angleBracketText(content: string): string | null {
  const person = /^users\/(\w{1,40})$/.exec(content)?.[1];
  if (person !== undefined) return defusedText(`@${person}`);
  const [address = '', label = ''] = content.split('|', 2);
  const url = safeLink(address);
  return url === '' ? null : labelledLink(label, url);
}
