import { describe, expect, test } from '@jest/globals';
import { mrkdwnText, unformattedText } from '../../src/callers/core/slack-mrkdwn.ts';
import { mentionsOf } from '../../src/model/mentions.ts';

const without = (text: string): string => text.replaceAll('\u2060', '');

describe('text in the markup of Slack', () => {
  test.each([
    ['an address', '<https://example.org/a>', 'https://example.org/a'],
    ['an address with a label', '<https://example.org/a|the page>', 'the page (https://example.org/a)'],
    ['a label that repeats the address', '<http://example.org|example.org>', 'http://example.org'],
    ['an address that is escaped', '<https://example.org/?a=1&amp;b=2|q>', 'q (https://example.org/?a=1&b=2)'],
    ['a label of code', '<https://example.org/c/1|`a1b2`> by ada', '`a1b2` (https://example.org/c/1) by ada'],
    ['an address in parentheses', 'done (<https://example.org|Open>)', 'done (Open: https://example.org)'],
    ['a bare address in parentheses', '(<https://example.org>)', '(https://example.org)'],
    ['white space around the bar', '<https://example.org | rule>', 'rule (https://example.org)'],
    ['an address of mail', '<mailto:a@example.org|a@example.org>', 'a@example.org'],
    ['an address of mail with a name', '<mailto:a@example.org?subject=x|Ada>', 'Ada (a@example.org)'],
    ['an address of a program', '<slack://user?id=1|profile> <tel:112>', 'profile tel:112'],
    ['a channel', '<#C024BE7LR> <#C024BE7LR|general>', '#C024BE7LR #general'],
    ['a person with a name', '<@U024BE7LH|ada>', '@ada'],
    ['a date with a fallback', '<!date^1392734382^{date}|18 February>', '18 February'],
    ['a date with a link', '<!date^1392734382^{date}^https://example.org|18 February>', '18 February'],
    ['a date without a fallback', '<!date^1392734382^{date}>', '2014-02-18T14:39:42Z'],
    ['a command that is not known', '<!dance|everybody dance> <!dance>', 'everybody dance <!dance>'],
    ['a link as in Markdown', 'see [the page](https://example.org/a)', 'see the page (https://example.org/a)'],
    ['a picture as in Markdown', '![graph](https://example.org/a.png)', 'graph (https://example.org/a.png)'],
    ['a link within the page', '[top](#top) a[i](x)', '[top](#top) a[i](x)'],
    ['emphasis', '*a* _b_ ~c~ `d` **e**', '*a* _b_ ~c~ `d` **e**'],
    ['names of emoji', ':tada: done:tada: :+1::skin-tone-2: :nope:', '🎉 done:tada: 👍 :nope:'],
    ['emoji beside each other', ':fire::fire:', '🔥🔥'],
    ['times and ports', '10:100:20 http://[::1]:100:', '10:100:20 http://[::1]:100:'],
    ['names of emoji in code', '`:fire:` ```\n:fire:\n```', '`:fire:` ```\n:fire:\n```'],
    ['an address in code', '```<https://example.org|log> &lt;T&gt;```', '```log (https://example.org) <T>```'],
    ['what is escaped twice', '&amp;lt;b&amp;gt; &quot;', '&lt;b&gt; &quot;'],
    [
      'comparisons and types',
      'a < b > c, List<String>, std::vector<std::string>',
      'a < b > c, List<String>, std::vector<std::string>',
    ],
    ['what is open', '<https://example.org|x', '<https://example.org|x'],
    ['a comment of HTML', '<!-- x|y -->', '<!-- x|y -->'],
  ])('%s', (_, typed, text) => expect(mrkdwnText(typed)).toBe(text));

  test('mentions persons by their own name alone', () => {
    const text = mrkdwnText(
      '<!here|here> <!channel> <!everyone> <@U1> <!subteam^S1|@ops> <!subteam^S2> <@U2|ada> @grace',
    );
    expect(without(text)).toBe('@here @channel @everyone @U1 @ops @S2 @ada @grace');
    expect(mentionsOf(text)).toEqual(['ada', 'grace']);
  });

  test('without markup keeps all but emoji and escapes', () => {
    expect(unformattedText('<https://example.org|x> :tada: &lt;')).toBe('<https://example.org|x> 🎉 <');
    expect(unformattedText(':tada: &amp;', false)).toBe(':tada: &');
  });

  test.each([
    '<',
    '<a',
    '(<',
    '`',
    '```',
    '``` `',
    '[',
    '![a',
    '[a](',
    '[a](https://',
    ':a',
    ':',
    '&amp;',
    '<https://a|',
    'https://',
    '((<<``[[',
  ])('takes time in proportion to the length: %s', (part) => {
    const hostile = part.repeat(Math.ceil(1_048_576 / part.length));
    const start = performance.now();
    mrkdwnText(hostile);
    // The parser takes about 10 ms on an idle machine. One that was worse than linear would take minutes.
    expect(performance.now() - start).toBeLessThan(5_000);
  });
});
