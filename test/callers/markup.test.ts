import { describe, expect, test } from '@jest/globals';
import { htmlText } from '../../src/callers/core/html-text.ts';
import { markdownText, withoutEmphasis } from '../../src/callers/core/markdown-text.ts';

describe('Markdown', () => {
  test.each([
    ['[a](https://x.example)', 'a (https://x.example)'],
    ['![a](https://x.example/i.png)', 'a (https://x.example/i.png)'],
    ['[https://x.example](https://x.example)', 'https://x.example'],
    ['[x.example](<https://x.example>)', 'https://x.example'],
    ['[[FIRING:1] CPU](https://x.example)', '[FIRING:1] CPU (https://x.example)'],
    ['[a [b](https://x.example)](https://y.example)', '[a b (https://x.example)](https://y.example)'],
    ['[a](https://x.example/b_(c)) d', 'a (https://x.example/b_(c)) d'],
    ['[a](https://x.example "Title") b', 'a (https://x.example) b'],
    ['[a](tg://user?id=1)', 'a'],
    ['[a](javascript:alert(1))', 'a'],
    ['[1](2) and [x]', '[1](2) and [x]'],
    ['[a](https://x .example) [b](https://y.example)', '[a](https://x .example) b (https://y.example)'],
    [
      '`[a](https://x.example)` and ``` [b](https://x.example)\n```',
      '`[a](https://x.example)` and ``` [b](https://x.example)\n```',
    ],
    ['a ` b [c](https://x.example)', 'a ` b c (https://x.example)'],
    ['\\[a](https://x.example)', '\\[a](https://x.example)'],
    ['**bold** _i_ ~~s~~ # h', '**bold** _i_ ~~s~~ # h'],
    ['](https://x.example)[', '](https://x.example)['],
  ])('%s', (markdown, text) => expect(markdownText(markdown)).toBe(text));

  test('drops the backslash before the characters of a dialect, in code too', () => {
    const rules = { escapable: /[!-/:-@[-`{-~]/ };
    expect(markdownText('1\\.4 \\[x\\](y) a\\b', rules)).toBe('1.4 [x](y) a\\b');
    expect(markdownText('`a\\\\b`', rules)).toBe('`a\\b`');
    expect(markdownText('[a\\]](https://x.example/\\))', rules)).toBe('a] (https://x.example/))');
  });

  test('asks its dialect for what stands between angles', () => {
    const rules = { angleText: (content: string) => (content === 'x' ? 'X' : null) };
    expect(markdownText('<x> <y> < x> `<x>`', rules)).toBe('X <y> < x> `<x>`');
  });

  test('reads the beginning of a long text', () => {
    expect(markdownText('a'.repeat(20), {}, 15)).toBe('aaaaaaaa… (cut)');
  });

  test('takes the emphasis of a whole title away', () => {
    expect(withoutEmphasis('**Down**')).toBe('Down');
    expect(withoutEmphasis('**Down** and **up**')).toBe('**Down** and **up**');
  });
});

describe('HTML', () => {
  test.each([
    ['<b>a</b> <i class="x">b</i><br/>c', 'a b\nc'],
    ['<a href="https://x.example/?a=1&amp;b=2">d</a>', 'd (https://x.example/?a=1&b=2)'],
    ["<a target=_blank href='https://x.example'>x.example</a>", 'https://x.example'],
    ['<a href="javascript:alert(1)">e</a>', 'e'],
    [
      '<a href="https://x.example">one <a href="https://y.example">two',
      'one (https://x.example)two (https://y.example)',
    ],
    ['&lt;b&gt; &amp;lt; &#39;&#x41;&nbsp;&unknown; &', "<b> &lt; 'A &unknown; &"],
    ['&#0; &#xD800; &#x110000;', '&#0; \ud800 &#x110000;'],
    ['a < b <none> <root@host> <b', 'a < b <none> <root@host> <b'],
    ['<p>a</p><p>b</p>c', 'a\nb\nc'],
    ['<ul><li>a</li><li>b</li></ul>', '- a\n- b\n'],
    ['<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>', 'a | b\n1 | 2\n'],
  ])('%s', (html, text) => expect(htmlText(html)).toBe(text));
});
