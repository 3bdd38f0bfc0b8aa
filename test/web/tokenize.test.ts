import { describe, expect, test } from '@jest/globals';
import { linkTarget, tokenize, type TextToken } from '../../web/text/tokenize.ts';

/** The tokens of a text. Each one that is not plain text has its kind and style. */
function shown(text: string): string {
  const sign = ({ kind, strong, emphasis, struck }: TextToken): string =>
    `${kind === 'text' ? '' : kind}${strong ? '!' : ''}${emphasis ? '/' : ''}${struck ? '-' : ''}`;
  return tokenize(text)
    .map(({ kind, tokens }) => {
      const inner = tokens
        .map((token) => (sign(token) === '' ? token.text : `[${sign(token)}:${token.text}]`))
        .join('');
      return kind === 'lines' ? inner : `<${kind}>${inner}</${kind}>`;
    })
    .join('');
}

const written = (text: string): string =>
  tokenize(text)
    .flatMap(({ tokens }) => tokens.map((token) => token.text))
    .join('');

describe('a text', () => {
  test.each([
    ['', ''],
    ['plain', 'plain'],
    ['a **b** c', 'a [marker:**][!:b][marker:**] c'],
    ['*a* and _b_', '[marker:*][/:a][marker:*] and [marker:_][/:b][marker:_]'],
    ['~~gone~~', '[marker:~~][-:gone][marker:~~]'],
    ['**a _b_**', '[marker:**][!:a ][marker!:_][!/:b][marker!:_][marker:**]'],
    ['snake_case_name 2 * 3 * 4 a*b*c', 'snake_case_name 2 * 3 * 4 a*b*c'],
    ['**open and *shut*', '**open and [marker:*][/:shut][marker:*]'],
    ['*a **b* c**', '[marker:*][/:a ][/:**][/:b][marker:*] c**'],
    ['run `rm *x*` now', 'run [marker:`][code:rm *x*][marker:`] now'],
    ['a ` b', 'a ` b'],
    ['``', '``'],
    ['hi @alice, @Bob-2.', 'hi [mention:@alice], [mention:@Bob-2].'],
    ['a@b.example x/@y @', 'a@b.example x/@y @'],
    ['see https://a.example/x?y=1.', 'see [link:https://a.example/x?y=1].'],
    ['(https://a.example/x_(y))', '([link:https://a.example/x_(y)])'],
    ['MAILTO:a@b.example', '[link:MAILTO:a@b.example]'],
    ['deploy.sh www.a.example ftp://a javascript:alert(1)', 'deploy.sh www.a.example ftp://a javascript:alert(1)'],
    ['xhttps://a.example', 'xhttps://a.example'],
    ['http://% and http:// too', 'http://% and http:// too'],
    ['> quoted\n> again\nnot', '<quote>[marker:> ]quoted\n[marker:> ]again\n</quote>not'],
    ['```sh\nrm *x*\n```\nb', '<fence>[marker:```sh\n][code:rm *x*\n][marker:```\n]</fence>b'],
    ['```\nnever closed *a*', '```\nnever closed [marker:*][/:a][marker:*]'],
    ['```\n```', '<fence>[marker:```\n][marker:```]</fence>'],
  ])('%j is shown as %j', (text, expected) => {
    expect(shown(text)).toBe(expected);
  });

  test('is written in its tokens to the letter, whatever is in it', () => {
    const parts = [
      '*',
      '**',
      '_',
      '~~',
      '`',
      '```',
      '\n',
      '\r\n',
      '> ',
      '@a',
      'http://x.y',
      'https://',
      'mailto:',
      ' ',
      'a',
      '(',
      ')',
      '.',
      '\u{1F600}',
      '\u202E',
      '<b>',
      '\ud800',
    ];
    let state = 7;
    const random = (below: number): number => {
      state = (state * 48_271) % 2_147_483_647;
      return state % below;
    };
    for (let round = 0; round < 4_000; round += 1) {
      const text = Array.from({ length: random(24) }, () => parts[random(parts.length)]!).join('');
      expect(written(text)).toBe(text);
      for (const { tokens } of tokenize(text))
        for (const { kind, text: part } of tokens)
          if (kind === 'link') expect(linkTarget(part)).toMatch(/^(?:https?|mailto):/);
    }
  });

  test.each(['*a ', '**', '_a_*', '`', 'http://%/', 'https://a(', '@a', '> ', '```\n', '~~a', '*a **b '])(
    'of 40,000 times %j takes no longer than the same of another kind',
    (part) => {
      const text = part.repeat(40_000 / part.length);
      const begin = performance.now();
      expect(written(text)).toBe(text);
      // Quadratic work would take tens of seconds; this limit leaves room for a busy machine.
      expect(performance.now() - begin).toBeLessThan(5_000);
    },
  );
});

test.each([
  ['https://a.example/', 'https://a.example/'],
  ['javascript:alert(1)', null],
  ['data:text/html,x', null],
  ['vbscript:x', null],
  ['//a.example', null],
  ['', null],
])('the target of %j is %j', (text, target) => {
  expect(linkTarget(text)).toBe(target);
});
