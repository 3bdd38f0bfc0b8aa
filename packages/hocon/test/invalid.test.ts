import { describe, expect, test } from '@jest/globals';
import { messageOf, read } from './plain.ts';

describe('A syntax error names its line, its column, what was found and what was expected', () => {
  test.each([
    ['{', 't:1:1: This { is never closed: the file ends before its }.'],
    ['a {\n b = [1\n', 't:2:6: This [ is never closed: the file ends before its ].'],
    ['}', 't:1:1: Found a } that closes nothing; remove it, or add the { that it belongs to.'],
    ['a = 1\n}', 't:2:1: Found a } that closes nothing; remove it, or add the { that it belongs to.'],
    ['{ a = 1 } }', "t:1:11: Found '}' after the } of the whole file; expected its end."],
    ['{ a = 1 } b = 2', "t:1:11: Found 'b' after the } of the whole file; expected its end."],
    ['[1]', 't:1:1: Found an array; expected keys and values, since a configuration file holds an object.'],
    ['10', "t:1:3: Found the end of the file after the key '10'; expected =, :, += or {."],
    ['a\nb = 1', "t:1:2: Found the end of the line after the key 'a'; expected =, :, += or {."],
    ['a.b ]', "t:1:5: Found ']' after the key 'a.b'; expected =, :, += or {."],
    [',', "t:1:1: Found ','; expected a key."],
    ['{ , a = 1 }', "t:1:3: Found ','; expected a key."],
    ['{ a = 1 ,, }', 't:1:10: Found a second comma in a row; remove one.'],
    ['a = [1,2,3,,]', 't:1:12: Found a second comma in a row; remove one.'],
    ['a = [1,,2]', 't:1:8: Found a second comma in a row; remove one.'],
    ['a = [,1]', "t:1:6: Found ','; expected a value."],
    ['a = [1}', "t:1:7: Found '}'; expected a comma, a new line or ]."],
    ['a = {b = 1]', "t:1:11: Found ']'; expected a comma, a new line or }."],
    ['{ a : }', "t:1:7: Found '}'; expected a value."],
    ['a =', "t:1:4: Found the end of the file after the key 'a'; expected a value on this line."],
    ['a = \n\n, b = 2', "t:1:5: Found the end of the line after the key 'a'; expected a value on this line."],
    ['{ : 10 }', "t:1:3: Found ':'; expected a key."],
    ['{ 1, 2 }', "t:1:4: Found ',' after the key '1'; expected =, :, += or {."],
    [
      'a = 1 b = 2',
      "t:1:9: Found '='; expected a comma, a new line or the end of the file. Text that holds = needs double quotes.",
    ],
    [
      'url = http://host',
      "t:1:11: Found ':'; expected a comma, a new line or the end of the file. Text that holds : needs double quotes.",
    ],
    ['a = ["x" : 1]', "t:1:10: Found ':'; expected a comma, a new line or ]. Text that holds : needs double quotes."],
    ['a = x@y', "t:1:6: Found '@', which cannot stand outside quotes; put the text in double quotes."],
    ['a = $x', "t:1:5: Found '$', which cannot stand outside quotes; put the text in double quotes."],
    ['a = 10e+3e', "t:1:8: Found '+', which cannot stand outside quotes; put the text in double quotes."],
    ['a = 1e+3-', "t:1:7: Found '+', which cannot stand outside quotes; put the text in double quotes."],
    ['a = `x`', "t:1:5: Found '`', which cannot stand outside quotes; put the text in double quotes."],
    [
      'a = C:\\x',
      "t:1:6: Found ':'; expected a comma, a new line or the end of the file. Text that holds : needs double quotes.",
    ],
    ['a..b = 1', `t:1:1: Found an empty key in 'a..b'; remove the extra dot, or write "" for it.`],
    ['.a = 1', `t:1:1: Found an empty key in '.a'; remove the extra dot, or write "" for it.`],
    ['a. = 1', "t:1:4: Found a dot at the end of the path 'a.'; expected another key."],
    ['${a} = 1', "t:1:1: Found '$'; expected a key."],
    [
      'a {} [] = 1',
      't:1:6: Cannot join an object and an array: only text with text, arrays with arrays and objects with objects can stand side by side.',
    ],
  ])('%j', (text, message) => {
    expect(messageOf(() => read(text))).toBe(message);
  });
});

describe('An error in quoted text or a substitution names the place', () => {
  test.each([
    ['a = "x', 't:1:5: This quote is never closed: the file ends before another ".'],
    [
      'a = "x\nb = 1',
      't:1:5: This quote is not closed before its line ends; close it, or put """ around text of several lines.',
    ],
    [
      'a = "x\r\n"',
      't:1:5: This quote is not closed before its line ends; close it, or put """ around text of several lines.',
    ],
    ['a = 1\nb = """x\n""', 't:2:5: This """ is never closed: the file ends before another """.'],
    ['a = "x\ty"', 't:1:7: Found the control character U+0009 in quoted text; write it as \\u0009.'],
    [
      'a = "\\x"',
      String.raw`t:1:6: Found the escape '\x'; expected one of \" \\ \/ \b \f \n \r \t \u. A backslash is written \\.`,
    ],
    ['a = "\\u12g4"', 't:1:6: Expected four hexadecimal digits after \\u.'],
    ['a = "\\ud800"', 't:1:6: Found \\uD800, one half of a surrogate pair without the other.'],
    ['a = "\\ud800\\u0041"', 't:1:6: Found \\uD800, one half of a surrogate pair without the other.'],
    ['a = "\\udc00\\ud800"', 't:1:6: Found \\uDC00, one half of a surrogate pair without the other.'],
    ['a = ${b', 't:1:8: Found the end of the file in a substitution; expected the } that closes it.'],
    ['a = ${}', "t:1:7: Found '}'; expected the path of a value."],
    ['a = ${ ?b}', "t:1:8: Found '?'; expected the path of a value."],
    ['a = ${b\n}', 't:1:8: Found the end of the line in a substitution; expected the } that closes it.'],
    ['a = ${b${c}}', "t:1:8: Found '$' in a substitution; expected the } that closes it."],
    ['a = ${b.}', "t:1:9: Found a dot at the end of the path 'b.'; expected another key."],
  ])('%j', (text, message) => {
    expect(messageOf(() => read(text))).toBe(message);
  });
});

describe('A slip is named where it was made, and not where its consequences are', () => {
  const comment = 'Found /*, which begins no comment; begin each line of it with # or //.';
  const merge = 'Found a mark of an unfinished merge; keep one of the two versions and remove the marks.';
  const single = 'Found a single quote, which quotes nothing; put the text in double quotes.';

  test.each([
    ['port 8080\nhost = x', "t:1:6: Found '8080' after the key 'port'; expected =, :, += or {."],
    ['h {\n  port 8080\n}', "t:2:8: Found '8080' after the key 'port'; expected =, :, += or {."],
    ['a.b "x y"\nhost = x', `t:1:5: Found '"' after the key 'a.b'; expected =, :, += or {.`],
    ['"a" "x"\n', `t:1:5: Found '"' after the key 'a'; expected =, :, += or {.`],
    ['uri http://x\nb = 1', "t:1:5: Found 'http' after the key 'uri'; expected =, :, += or {."],
    ['port\n\nhost = x', "t:1:5: Found the end of the line after the key 'port'; expected =, :, += or {."],
    ['port\r\nhost = x', "t:1:5: Found the end of the line after the key 'port'; expected =, :, += or {."],
    ['port =\nhost = x', "t:1:7: Found the end of the line after the key 'port'; expected a value on this line."],
    [
      'port = \nhost { x = 1 }',
      "t:1:8: Found the end of the line after the key 'port'; expected a value on this line.",
    ],
    ['h {\n  port =\n}', "t:2:9: Found the end of the line after the key 'port'; expected a value on this line."],
    [
      'port = # soon\nhost = x',
      "t:1:8: Found '#' after the key 'port'; expected a value on this line. Text that holds # needs double quotes.",
    ],
    [
      'http:\n  port: 8080\n',
      "t:1:6: Found the end of the line after the key 'http'; expected a value on this line. A section is written in braces, not by indentation.",
    ],
    ['hosts:\n  - a\n  - b\n', 't:3:5: Found an item behind a dash; a list is written as [a, b].'],
    ['/* a */\nb = 1', `t:1:1: ${comment}`],
    ['a = 1 /* b */\nc = 2', `t:1:7: ${comment}`],
    ['a = [\n  1 /* b */\n]', `t:2:5: ${comment}`],
    ['<<<<<<< HEAD\na = 1\n=======\na = 2\n>>>>>>> other\n', `t:1:1: ${merge}`],
    ['a = 1\n=======\na = 2\n>>>>>>> other\n', `t:2:1: ${merge}`],
    ['a = [\n1\n>>>>>>> other\n]', `t:3:1: ${merge}`],
    ["a = 'b:c'", `t:1:5: ${single}`],
    ["a = 'b@c'", `t:1:5: ${single}`],
    ["a = b 'c=d'\n", `t:1:7: ${single}`],
  ])('%j', (text, message) => {
    expect(messageOf(() => read(text))).toBe(message);
  });

  test.each([
    ['a =\n  b\nc\n  = 1', { a: 'b', c: 1 }],
    ['a = # comment\n{ b = 1 }', { a: { b: 1 } }],
    ['a =\n[1]\nb:\n"x"', { a: [1], b: 'x' }],
    ["a = '<<<<<<<'\nb = - 1, c = it's", { a: "'<<<<<<<'", b: '- 1', c: "it's" }],
  ])('what the language allows stays allowed: %j', (text, json) => {
    expect(read(text)).toEqual(json);
  });
});

describe('A concatenation of different kinds names both kinds', () => {
  const rest = 'only text with text, arrays with arrays and objects with objects can stand side by side.';

  test.each([
    ['a = 1 { b : 2 }', `t:1:7: Cannot join a number and an object: ${rest}`],
    ['a = [1] x', `t:1:9: Cannot join an array and a string: ${rest}`],
    ['a = {} []\na = 5', `t:1:8: Cannot join an object and an array: ${rest}`],
    ['o = {}\na = ${o} true', `t:2:10: Cannot join an object and a boolean: ${rest}`],
    ['o = {}, l = []\na = ${o}" "${l}', `t:2:9: Cannot join an object and a string: ${rest}`],
    ['n = null\na = ${n}[1]', `t:2:9: Cannot join null and an array: ${rest}`],
    ['a = 5, a += 1', 't:1:13: += adds an item to an array, but the value so far is a number.'],
    ['a { b = 1 }, a += 1', 't:1:19: += adds an item to an array, but the value so far is an object.'],
    ['a = null, a += 1', 't:1:16: += adds an item to an array, but the value so far is null.'],
  ])('%j', (text, message) => {
    expect(messageOf(() => read(text))).toBe(message);
  });
});

describe('A substitution without a value', () => {
  test('names its path and the ways out, and all of them are told at once', () => {
    const text = 'a = ${db.host}\nb = ${a} {}\nc = [ ${a}, x${a} ]\nd = ${nope}\nd += 1';
    expect(messageOf(() => read(text))).toBe(
      [
        't:1:5: ${db.host} is not defined, neither as a key nor as an environment variable; define it, or write ${?db.host} where it may be missing.',
        't:4:5: ${nope} is not defined, neither as a key nor as an environment variable; define it, or write ${?nope} where it may be missing.',
      ].join('\n'),
    );
  });

  const noEarlier = 'refers to the key it is a value of, and that key has no earlier value.';
  const itself = 'would have to contain itself: the value it stands for holds this very place.';
  const back = (...lines: number[]): string =>
    `leads back to itself by way of ${lines.map((line) => `t:${line}`).join(', ')}; give one of these keys a value of its own.`;

  test.each([
    ['foo : ${foo}', `t:1:7: \${foo} ${noEarlier}`],
    ['foo : ${foo}\nfoo : { a : 1 }', `t:1:7: \${foo} ${noEarlier}`],
    ['a = ${a}{ b : 1 }', `t:1:5: \${a} ${noEarlier}`],
    ['bar : ${foo}\nfoo : ${bar}', `t:2:7: \${bar} ${back(1, 2)}`],
    ['a : ${b}\nb : ${c}\nc : ${a}', `t:3:5: \${a} ${back(1, 2, 3)}`],
    ['a : 1\nb : 2\na : ${b}\nb : ${a}', `t:4:5: \${a} ${back(3, 4)}`],
    ['x = ${a}\na : ${b}x\nb : ${a}y', `t:3:5: \${a} ${back(2, 3)}`],
    ['a : { b : ${a} }', `t:1:11: \${a} ${itself}`],
    ['a : [${a}]', `t:1:6: \${a} ${itself}`],
    ['a : [${a}]\nb : ${a}\nc : ${b}', `t:1:6: \${a} ${itself}`],
    ['a = 1, a = [${a}, 2]', `t:1:13: \${a} ${itself}`],
    ['a = 1, a = { x : ${a} }', `t:1:18: \${a} ${itself}`],
    ['a : { b : ${c} }\nc : { d : x, e : [ ${a} ] }', `t:1:11: \${c} ${itself}\nt:2:20: \${a} ${itself}`],
  ])('that is a circle, in %j', (text, message) => {
    expect(messageOf(() => read(text))).toBe(message);
  });

  test('is told on one line even where its path holds a line end, and cut where it is very long', () => {
    expect(messageOf(() => read('a = ${"x\\n\\u001b[31m"}'))).toMatch(
      /^t:1:5: \$\{x\\u000A\\u001B\[31m\} is not defined.*\.$/,
    );
    expect(messageOf(() => read(`a = \${${'x'.repeat(1e5)}}`)).length).toBeLessThan(1100);
  });

  test('is one problem per place in the error', () => {
    expect(() => read('a = ${x}\nb = ${y}')).toThrow(
      expect.objectContaining({ name: 'HoconError', problems: [expect.anything(), expect.anything()] }),
    );
  });
});
