import { describe, expect, test } from '@jest/globals';
import { boundedCardsJson, MAX_CARDS_BYTES, messageCardsJson } from '../../src/callers/core/message-cards.ts';
import { card, isIgnored, messageForm, type Card, type MessageForm } from '../../src/callers/core/message-form.ts';
import { formats } from '../../src/callers/formats.ts';
import type { MessageCard } from '../../src/model/message-card.ts';
import { fixtureNames, readFixture, requestOf } from './fixtures.ts';

const cardsOf = (form: Partial<MessageForm>): readonly MessageCard[] =>
  JSON.parse(messageCardsJson(messageForm(form)) ?? '[]') as MessageCard[];
const onlyCard = (found: Partial<Card>, form: Partial<MessageForm> = {}): MessageCard | undefined =>
  cardsOf({ ...form, cards: [card({ title: 'Title', ...found })] })[0];
const bytesOf = (json: string | null): number => Buffer.byteLength(json ?? '');

describe('the cards of a message', () => {
  test('have what their form has, and no key for what it lacks', () => {
    const full: Card = {
      title: 'Disk full',
      url: 'https://example.org/disk',
      mood: 'danger',
      author: 'web-1',
      text: 'No room\nat all',
      fields: [
        { name: 'free', value: '0 B', isShort: true },
        { name: '', value: 'since noon', isShort: false },
        { name: ' ', value: '', isShort: true },
      ],
      links: [
        { label: 'Graph', url: 'https://example.org/graph' },
        { label: '', url: 'mailto:ada@example.org' },
      ],
      image: 'http://example.org/disk.png',
      footer: 'monitoring',
      time: '2026-11-22T12:00:00+02:00',
    };
    expect(cardsOf({ cards: [full, card({ title: 'Backup', mood: '#a1b2c3' })] })).toEqual([
      {
        title: 'Disk full',
        url: 'https://example.org/disk',
        mood: 'danger',
        author: 'web-1',
        text: 'No room\nat all',
        fields: [{ name: 'free', value: '0 B', short: true }, { value: 'since noon' }],
        links: [{ label: 'Graph', url: 'https://example.org/graph' }, { url: 'mailto:ada@example.org' }],
        image: 'http://example.org/disk.png',
        footer: 'monitoring',
        time: '2026-11-22T10:00:00.000Z',
      },
      { title: 'Backup', color: '#a1b2c3' },
    ]);
  });

  test('begin with the text that stands before them, unless one of them says it', () => {
    const cards = [card({ title: 'Build failed' })];
    expect(cardsOf({ text: 'Look at this', cards })).toEqual([{ text: 'Look at this' }, { title: 'Build failed' }]);
    expect(cardsOf({ text: ' Build failed\n', cards })).toEqual([{ title: 'Build failed' }]);
  });

  test('are none where they say no more than the text', () => {
    expect(messageCardsJson(messageForm({ text: 'hello' }))).toBeNull();
    expect(messageCardsJson(messageForm({ text: 'hello', cards: [card({ text: 'and more' })] }))).toBeNull();
    expect(messageCardsJson(messageForm({ fallback: 'hello', cards: [card({})] }))).toBeNull();
  });

  test.each([
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'data:text/html,<script>',
    'file:///etc/passwd',
    '//example.org',
    'https://example.org/\u202Egpj.exe',
    'https://exam\u200Bple.org/',
    'https://example.org/a b',
    `https://example.org/${'x'.repeat(3_000)}`,
  ])('leave out the address %j', (url) => {
    expect(onlyCard({ url, image: url, links: [{ label: 'Open', url }] })).toEqual({ title: 'Title' });
  });

  test('hold nothing that is not seen or turns the direction of text', () => {
    const hidden = 'a\u202Eb\u2066c\u200Bd\u0000e\u009Bf\u{E0041}g\uD800h\r\ni\tj';
    const shown = 'abcdefg\uFFFDh\ni\tj';
    const found = { title: hidden, author: hidden, text: hidden, footer: hidden };
    const fields = [{ name: hidden, value: hidden, isShort: false }];
    const links = [{ label: hidden, url: 'https://example.org' }];
    expect(onlyCard({ ...found, fields, links })).toEqual({
      title: shown,
      author: shown,
      text: shown,
      footer: shown,
      fields: [{ name: shown, value: shown }],
      links: [{ label: shown, url: 'https://example.org' }],
    });
  });

  test("mention nobody in strangers' text", () => {
    const found = { title: '@ada', text: 'hi @bob', url: 'https://example.org/@ada' };
    expect(onlyCard(found)).toEqual(found);
    const defused = { title: '@\u2060ada', text: 'hi @\u2060bob', url: 'https://example.org/@ada' };
    expect(onlyCard(found, { hasStrangersText: true })).toEqual(defused);
    // Invisible characters are removed before mentions are disabled, so that they hide none.
    expect(onlyCard({ title: '@\u2060\u200Bada' }, { hasStrangersText: true })).toEqual({ title: '@\u2060ada' });
  });

  test('and their times and colours are what they claim to be', () => {
    expect(onlyCard({ time: 'yesterday', mood: '#12' })).toEqual({ title: 'Title' });
    expect(onlyCard({ time: '0001-01-01T00:00:00Z', mood: '#zzzzzz' })).toEqual({ title: 'Title' });
    expect(onlyCard({ time: '2026-11-22T10:00:00Z' })).toEqual({ title: 'Title', time: '2026-11-22T10:00:00.000Z' });
  });

  test('are as many, with as many fields and links, as the text has of them', () => {
    const many = <Part>(part: Part): Part[] => Array.from({ length: 100 }, () => part);
    const fields = many({ name: 'n', value: 'v', isShort: true });
    const links = many({ label: 'l', url: 'https://example.org' });
    const cards = cardsOf({ cards: many(card({ title: 'T', text: 'x'.repeat(5_000), fields, links })) });
    expect(cards.map((each) => [each.fields!.length, each.links!.length, each.text!.length])).toEqual(
      Array.from({ length: 10 }, () => [25, 10, 4_000]),
    );
    expect(cards[0]!.text).toMatch(/x… \(cut\)$/);
  });
});

describe('cards that are too large', () => {
  const wide = (mark: string): Card =>
    card({ title: mark, text: '👋'.repeat(2_000), fields: [{ name: 'n', value: '€'.repeat(4_000), isShort: false }] });

  test('lose the last ones', () => {
    const json = messageCardsJson(messageForm({ cards: ['a', 'b', 'c', 'd', 'e'].map(wide) }));
    expect(bytesOf(json)).toBeLessThanOrEqual(MAX_CARDS_BYTES);
    const cards = JSON.parse(json!) as MessageCard[];
    expect(cards.map(({ title }) => title)).toEqual(['a', 'b', 'c']);
    expect(bytesOf(json) + bytesOf(JSON.stringify(cards[0]))).toBeGreaterThan(MAX_CARDS_BYTES);
  });

  test('lose the last fields and links of the first one that does not fit', () => {
    const fields = Array.from({ length: 25 }, (_, i) => ({ name: `${i}`, value: '"\\'.repeat(2_000), isShort: false }));
    const links = [{ label: 'Open', url: 'https://example.org' }];
    const json = messageCardsJson(messageForm({ cards: [card({ title: 'a', fields, links }), wide('b')] }));
    expect(bytesOf(json)).toBeLessThanOrEqual(MAX_CARDS_BYTES);
    const [first, ...rest] = JSON.parse(json!) as MessageCard[];
    expect(rest).toEqual([]);
    expect(first!.fields!.map(({ name }) => name)).toEqual(['0', '1', '2', '3', '4', '5', '6', '7']);
    expect(first!.links).toEqual(links);
  });

  test('fit up to the last byte', () => {
    const ofSize = (size: number): MessageCard[] => [{ title: 'a' }, { title: 'x'.repeat(size) }];
    const room = MAX_CARDS_BYTES - bytesOf(JSON.stringify(ofSize(0)));
    expect(boundedCardsJson(ofSize(room))).toHaveLength(MAX_CARDS_BYTES);
    expect(boundedCardsJson(ofSize(room + 1))).toBe('[{"title":"a"}]');
  });

  test('in the largest form that there can be keep to the bound', () => {
    const longest = '@€'.repeat(10_000);
    const address = `https://example.org/${'€'.repeat(2_000)}`;
    const each = card({
      title: longest,
      author: longest,
      text: longest,
      footer: longest,
      url: address,
      image: address,
      fields: Array.from({ length: 30 }, () => ({ name: longest, value: longest, isShort: false })),
      links: Array.from({ length: 30 }, () => ({ label: longest, url: address })),
    });
    const form = { text: longest, cards: Array.from({ length: 30 }, () => each), hasStrangersText: true };
    for (const text of [longest, '']) {
      const json = messageCardsJson(messageForm({ ...form, text }));
      expect(bytesOf(json)).toBeLessThanOrEqual(MAX_CARDS_BYTES);
      expect(JSON.parse(json ?? '[]')).not.toHaveLength(0);
    }
  });
});

const PARTS = ['title', 'url', 'mood', 'color', 'author', 'text', 'fields', 'links', 'image', 'footer', 'time'];

describe.each(formats)('cards of $name', (format) => {
  test.each(fixtureNames(format))('in %s have known parts alone, and none that is empty', (name) => {
    const form = format.read(requestOf(readFixture(format, name)));
    const json = isIgnored(form) ? null : messageCardsJson(form);
    for (const each of JSON.parse(json ?? '[]') as MessageCard[]) {
      expect(PARTS).toEqual(expect.arrayContaining(Object.keys(each)));
      expect(Object.values(each)).not.toHaveLength(0);
      for (const value of Object.values(each)) expect(value).not.toHaveLength(0);
      for (const url of [each.url, each.image, ...(each.links ?? []).map((link) => link.url)])
        expect(url ?? 'https://').toMatch(/^(?:https?:\/\/|mailto:)/);
    }
  });
});
