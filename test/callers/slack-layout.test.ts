import { describe, expect, test } from '@jest/globals';
import { isIgnored } from '../../src/callers/core/message-form.ts';
import { renderText } from '../../src/callers/core/render-text.ts';
import { blockPieces } from '../../src/callers/core/slack-blocks.ts';
import { layoutCard } from '../../src/callers/core/slack-layout.ts';
import { slack } from '../../src/callers/slack.ts';

const mrkdwn = (text: string): object => ({ type: 'mrkdwn', text });
const section = (text: string): object => ({ type: 'section', text: mrkdwn(text) });
const fields = (...texts: string[]): object => ({ type: 'section', fields: texts.map(mrkdwn) });
const context = (text: string): object => ({ type: 'context', elements: [mrkdwn(text)] });
const button = (url: string): object => ({ type: 'actions', elements: [{ type: 'button', text: mrkdwn('b'), url }] });

const read = (body: Record<string, unknown>): string => {
  const form = slack.read({ body, headers: {}, query: new URLSearchParams() });
  return isIgnored(form) ? '' : renderText(form);
};

describe('blocks as a card', () => {
  test('keep their order: what a card cannot have in that place is text', () => {
    const found = layoutCard(
      blockPieces([
        fields('*A:*\n1', '*B*: 2'),
        context('above'),
        section('text'),
        fields('*C*\n3'),
        button('https://example.org/'),
        context('below'),
      ]),
    );
    expect(found.text).toBe('A: 1 · B: 2\nabove\ntext');
    expect(found.fields).toEqual([{ name: 'C', value: '3', isShort: true }]);
    expect(found.links).toEqual([{ label: 'b', url: 'https://example.org/' }]);
    expect(found.footer).toBe('below');
  });

  test('lose nothing to the bounds of a card', () => {
    const body = { blocks: Array.from({ length: 40 }, (_, index) => fields(`*F${index}*\n${index}`)) };
    const text = read(body);
    expect(text).toContain('F0: 0');
    expect(text).toContain('F39: 39');
    const pictures = [1, 2].map((n) => ({ type: 'image', image_url: `https://example.org/${n}.png`, alt_text: '' }));
    expect(read({ blocks: pictures })).toBe('https://example.org/1.png\nhttps://example.org/2.png');
    const long = 'a long line of text\n'.repeat(900);
    expect(
      read({
        blocks: [
          { type: 'header', text: mrkdwn('Title') },
          { type: 'markdown', text: long },
        ],
      }),
    ).toBe(`Title\n${long.trim()}`);
  });

  test('name how many are left out', () => {
    expect(read({ blocks: Array.from({ length: 103 }, () => section('x')) })).toMatch(/… and 3 more$/);
  });

  test('a field is read only where it has a name', () => {
    const found = layoutCard(blockPieces([fields('*bold* word', '**', '*', '*Name*\nvalue\nmore', '*Only:*')]));
    expect(found.fields.map(({ name, value }) => [name, value])).toEqual([
      ['', '*bold* word'],
      ['', '**'],
      ['', '*'],
      ['Name', 'value\nmore'],
      ['Only', ''],
    ]);
  });

  test('the text beside them stands only where it says more', () => {
    const blocks = [section('*Build #7* failed'), fields('*Branch*\nmain')];
    expect(read({ text: 'Build #7 failed', blocks })).toBe('*Build #7* failed\nBranch: main');
    expect(read({ text: 'Build #7 failed\nBranch main', blocks })).toBe('*Build #7* failed\nBranch: main');
    expect(read({ text: 'Build #7 failed again', blocks })).toBe(
      'Build #7 failed again\n*Build #7* failed\nBranch: main',
    );
    expect(read({ text: '🎉', blocks: [section('Done')] })).toBe('🎉\nDone');
  });
});

describe('hostile input', () => {
  const odd = [
    null,
    true,
    0,
    -1,
    1e308,
    '',
    'x',
    '[{"a":1}]',
    '[',
    [],
    [null],
    [[[]]],
    {},
    { type: 'rich_text' },
    { elements: 7 },
  ];
  const names = ['text', 'attachments', 'blocks', 'username', 'icon_url', 'alias', 'avatar', 'mrkdwn', 'props'];
  const inner = [
    'type',
    'text',
    'fields',
    'elements',
    'title',
    'color',
    'ts',
    'actions',
    'blocks',
    'rows',
    'accessory',
  ];
  const types = ['header', 'section', 'context', 'image', 'actions', 'rich_text', 'markdown', 'video', 'table', 'plan'];

  test('no value of any type makes the reader throw', () => {
    for (const value of odd) {
      for (const name of names) expect(() => read({ [name]: value })).not.toThrow();
      for (const name of inner) {
        expect(() => read({ attachments: [{ [name]: value }] })).not.toThrow();
        for (const type of types) expect(() => read({ blocks: [{ type, [name]: value }] })).not.toThrow();
      }
      for (const type of ['text', 'link', 'emoji', 'user', 'broadcast', 'date', 'color']) {
        const element = { type, text: value, unicode: value, timestamp: value, user_id: value, url: value };
        const part = { type: 'rich_text_list', indent: value, offset: value, elements: [{ elements: [element] }] };
        expect(() => read({ blocks: [{ type: 'rich_text', elements: [part] }] })).not.toThrow();
      }
    }
  });

  test('containers in containers end', () => {
    let block: object = section('deep');
    for (let depth = 0; depth < 2_000; depth++)
      block = { type: 'container', title: `t${depth}`, child_blocks: [block] };
    expect(read({ blocks: [block] }).split('\n')).toHaveLength(4);
  });

  test.each([
    ['attachments', { attachments: Array.from({ length: 50_000 }, () => ({ title: 'x' })) }],
    ['fields', { attachments: [{ fields: Array.from({ length: 50_000 }, () => ({ title: 'x' })) }] }],
    ['blocks', { blocks: Array.from({ length: 20_000 }, () => section('<https://example.org|x>')) }],
    ['elements', { blocks: [{ type: 'rich_text', elements: Array.from({ length: 50_000 }, () => ({})) }] }],
    ['lines', { text: 'x\n'.repeat(500_000), blocks: [section('y\n'.repeat(200_000))] }],
    ['white space', { text: ' '.repeat(1_000_000), blocks: [fields(`*x*${' '.repeat(1_000_000)}`)] }],
    ['a list in a string', { attachments: '['.repeat(1_000_000) }],
    ['a deep list in a string', { attachments: `[{"a":${'['.repeat(300_000)}${']'.repeat(300_000)}}]` }],
  ])('reads 1 MiB of %s without holding up others', (_, body) => {
    const start = performance.now();
    read(body);
    expect(performance.now() - start).toBeLessThan(5_000);
  });
});
