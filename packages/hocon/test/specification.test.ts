import { describe, expect, test } from '@jest/globals';
import { read } from './plain.ts';

type Table = readonly (readonly [text: string, json: unknown])[];

/** The examples of the specification, in its order, and further examples of its rules. */
const SECTIONS: Readonly<Record<string, Table>> = {
  'Comments and root braces': [
    ['', {}],
    [' \n\t# nothing\n// here', {}],
    ['{}', {}],
    ['{ "a" : 1 } # after', { a: 1 }],
    ['a = 1 // one\nb = 2 # two\n# c = 3', { a: 1, b: 2 }],
    ['a = "//x", b = "#y"', { a: '//x', b: '#y' }],
    ['a = x#comment\nb = y//comment', { a: 'x', b: 'y' }],
    ['a = 1 # }', { a: 1 }],
    ['\uFEFFa = 1', { a: 1 }],
    ['a = 1\r\nb {\r\n  c = x y\r\n}\r\n', { a: 1, b: { c: 'x y' } }],
  ],
  JSON: [
    [
      '{"a":{"b":[1,-2.5,1e3,1E-2,1e+5,true,false,null,"x",{},[]]}}',
      { a: { b: [1, -2.5, 1000, 0.01, 1e5, true, false, null, 'x', {}, []] } },
    ],
    [String.raw`{"a":"\"\\\/\b\f\n\r\t\u0041\ud83d\uDE00"}`, { a: '"\\/\b\f\n\r\tA😀' }],
    ['{"a"\n:\n1\n,\n"b"\n:\n[\n1\n,\n2\n]\n}', { a: 1, b: [1, 2] }],
    ['{"a":"\u007f\u2028"}', { a: '\u007f\u2028' }],
  ],
  'Key-value separator': [
    ['a : 1, b = 2', { a: 1, b: 2 }],
    ['"foo" {}', { foo: {} }],
    ['a{b{c:1}}', { a: { b: { c: 1 } } }],
    ['a\n{ b = 1 }', { a: { b: 1 } }],
    ['a = # later\n  5', { a: 5 }],
  ],
  Commas: [
    ['a = [1,2,3,]', { a: [1, 2, 3] }],
    ['a = [1\n2\n3]', { a: [1, 2, 3] }],
    ['a = [1\n,2\n,\n3\n]', { a: [1, 2, 3] }],
    ['{ a : 1, b : 2, }', { a: 1, b: 2 }],
    ['a = 1,\nb = 2,', { a: 1, b: 2 }],
  ],
  Whitespace: [
    ['\u00a0a\u2007=\u202f1\u2028,\u3000b\v=\f2\u001c\u001d\u001e\u001f', { a: 1, b: 2 }],
    ['a = x\u00a0y\u2003', { a: 'x\u00a0y' }],
  ],
  'Duplicate keys': [
    ['a = 1, a = 2', { a: 2 }],
    ['{ "foo" : { "a" : 42 }, "foo" : { "b" : 43 } }', { foo: { a: 42, b: 43 } }],
    ['{ "foo" : { "a" : 42 }, "foo" : null, "foo" : { "b" : 43 } }', { foo: { b: 43 } }],
    ['a { b { c = 1 } }, a { b { d = 2 } }, a.b.c = 3', { a: { b: { c: 3, d: 2 } } }],
    ['a { x = 1 }, a = null', { a: null }],
    ['a { y = 2 }, a = 42, a { x = 1 }', { a: { x: 1 } }],
    ['a = 42, a { y = 2 }, a { x = 1 }', { a: { y: 2, x: 1 } }],
  ],
  'Unquoted strings': [
    ['a = truefoo, b = footrue, c = 10.0bar, d = bar10.0', { a: 'truefoo', b: 'footrue', c: '10.0bar', d: 'bar10.0' }],
    [
      'a = /usr/bin, b = x/y, c = -foo, d = --, e = 1.2.3, f = 007',
      { a: '/usr/bin', b: 'x/y', c: '-foo', d: '--', e: '1.2.3', f: '007' },
    ],
    ["a = it's (so) <ok>; |~%", { a: "it's (so) <ok>; |~%" }],
    ['a = nullx, b = 10s, c = 1e999', { a: 'nullx', b: '10s', c: '1e999' }],
    ['a = größe 😀', { a: 'größe 😀' }],
  ],
  'Multi-line strings': [
    ['a = """foo""""', { a: 'foo"' }],
    ['a = """foo"""""', { a: 'foo""' }],
    ['a = """\n  \\u0041 "x" ""\r\n${b}"""', { a: '\n  \\u0041 "x" ""\r\n${b}' }],
    ['a = """""", b = ""', { a: '', b: '' }],
    ['"""a.b""" = 1', { 'a.b': 1 }],
  ],
  'Value concatenation': [
    ['a =  foo bar baz ', { a: 'foo bar baz' }],
    ['a = "foo"  \'bar\'\t"baz"', { a: "foo  'bar'\tbaz" }],
    ['a = 1e5 x, b = true foo, c = null x, d = 1.50 2', { a: '1e5 x', b: 'true foo', c: 'null x', d: '1.50 2' }],
    ['a = true, b = null, c = 1', { a: true, b: null, c: 1 }],
    ['a : { b : 1 } { c : 2 }', { a: { b: 1, c: 2 } }],
    ['a : { b : 1 }\na : { c : 2 }', { a: { b: 1, c: 2 } }],
    ['a : [ 1, 2 ] [ 3, 4 ]', { a: [1, 2, 3, 4] }],
    ['a : [ 1, 2 ]\na : ${a} [ 3, 4 ]', { a: [1, 2, 3, 4] }],
    [
      'data-center-generic = { cluster-size = 6 }\ndata-center-east = ${data-center-generic} { name = "east" }',
      { 'data-center-generic': { 'cluster-size': 6 }, 'data-center-east': { 'cluster-size': 6, name: 'east' } },
    ],
    ['path = [ /bin ]\npath = ${path} [ /usr/bin ]', { path: ['/bin', '/usr/bin'] }],
    ['x = 1, y = null, a = ${x} ${y}', { x: 1, y: null, a: '1 null' }],
    ['o = { a : 1 }, p = { a : 2, b : 3 }, q = ${o}   ${p}', { o: { a: 1 }, p: { a: 2, b: 3 }, q: { a: 2, b: 3 } }],
    ['a = { x : 1\n y : 2 } {\n x : 3 }', { a: { x: 3, y: 2 } }],
  ],
  'Arrays without commas': [
    ['a = [ 1 2 3 4 ]', { a: ['1 2 3 4'] }],
    ['a = [ 1\n 2\n 3\n 4 ]', { a: [1, 2, 3, 4] }],
    ['a = [ [ 1, 2 ] [ 3, 4 ] ]', { a: [[1, 2, 3, 4]] }],
    [
      'a = [ [ 1, 2 ]\n [ 3, 4 ] ]',
      {
        a: [
          [1, 2],
          [3, 4],
        ],
      },
    ],
    [
      'name = N, world = W, a = [ my name is ${name}, Hello ${world} ]',
      { name: 'N', world: 'W', a: ['my name is N', 'Hello W'] },
    ],
    ['x = 1, y = [2], a = [ ${x} ${x}, ${y} ${y} ]', { x: 1, y: [2], a: ['1 1', [2, 2]] }],
  ],
  'Path expressions and keys': [
    ['foo.bar."hello.world" = 1', { foo: { bar: { 'hello.world': 1 } } }],
    ['10.0foo = 1, foo10.0 = 2', { '10': { '0foo': 1 }, foo10: { '0': 2 } }],
    ['foo"10.0" = 1', { 'foo10.0': 1 }],
    ['1.2.3 = x', { '1': { '2': { '3': 'x' } } }],
    ['a."".b = 1, "" = 2', { a: { '': { b: 1 } }, '': 2 }],
    ['foo.bar.baz : 42', { foo: { bar: { baz: 42 } } }],
    ['a.x : 42, a.y : 43', { a: { x: 42, y: 43 } }],
    ['a b c : 42', { 'a b c': 42 }],
    ['true : 42, 3 : 42', { '3': 42, true: 42 }],
    ['3.14 : 42', { '3': { '14': 42 } }],
    ['a . b = 1', { 'a ': { ' b': 1 } }],
    ['a.b { c = 1 }', { a: { b: { c: 1 } } }],
  ],
  Substitutions: [
    [
      'animal.favorite = cat, key : ${animal.favorite} is my favorite animal',
      { animal: { favorite: 'cat' }, key: 'cat is my favorite animal' },
    ],
    ['a = cat, key : ${a}" is my favorite animal"', { a: 'cat', key: 'cat is my favorite animal' }],
    ['a = "${b}", b = 1, c = """${b}"""', { a: '${b}', b: 1, c: '${b}' }],
    ['a = ${b}, b = 1, b = 2', { a: 2, b: 2 }],
    ['a = ${b}, b = { x : [ true, null, 1.50 ] }', { a: { x: [true, null, 1.5] }, b: { x: [true, null, 1.5] } }],
    ['a = ${ b }, b = 1, "c.d" { e = 2 }, f = ${"c.d".e}', { a: 1, b: 1, 'c.d': { e: 2 }, f: 2 }],
    ['b = 1.50, a = v${b}', { b: 1.5, a: 'v1.50' }],
    ['foo : ${?bar}', {}],
    ['foo : ${?bar}${?baz}', {}],
    ['foo : ${?bar} ${?baz}', {}],
    ['foo : 1, foo : ${?bar}', { foo: 1 }],
    ['foo : { a : 1 }, foo : ${?bar}, foo : { b : 2 }', { foo: { a: 1, b: 2 } }],
    ['foo : [ ${?bar}, 1, ${?bar}x, ${?bar}${?bar} ]', { foo: [1, 'x'] }],
    ['foo : ${?bar} x, a : ${?b}[1], o : { k : 1 } ${?b}', { foo: ' x', a: [1], o: { k: 1 } }],
    ['foo : { a : ${?bar} }, b : ${?foo.a}', { foo: {} }],
  ],
  'Self-referential substitutions': [
    ['path : "a:b:c"\npath : ${path}":d"', { path: 'a:b:c:d' }],
    ['foo : { a : 1 }\nfoo : ${foo}', { foo: { a: 1 } }],
    ['foo : ${?foo}', {}],
    ['foo : ${does-not-exist}\nfoo : 42', { foo: 42 }],
    ['foo : ${foo}, foo : 42', { foo: 42 }],
    ['foo : { a : { c : 1 } }\nfoo : ${foo.a}\nfoo : { a : 2 }', { foo: { a: 2, c: 1 } }],
    ['bar : { foo : 42, baz : ${bar.foo} }', { bar: { foo: 42, baz: 42 } }],
    ['bar : { foo : 42, baz : ${bar.foo} }\nbar : { foo : 43 }', { bar: { foo: 43, baz: 43 } }],
    [
      'bar : { a : ${foo.d}, b : 1 }\nbar.b = 3\nfoo : { c : ${bar.b}, d : 2 }\nfoo.d = 4',
      { bar: { a: 4, b: 3 }, foo: { c: 3, d: 4 } },
    ],
    ['a = ${?a}foo', { a: 'foo' }],
    ['a = 1, a = ${?a}foo${?a}', { a: '1foo1' }],
    ['a=1,a=${a}x,a=${a}y,a=${a}z', { a: '1xyz' }],
    ['a = 1, a = ${a}, a = 2', { a: 2 }],
    ['a = { b : 5 }, a = ${a}, a = { c : 6 }', { a: { b: 5, c: 6 } }],
    ['a = { b = { c = 5 } }, a = ${a.b}', { a: { b: { c: 5 }, c: 5 } }],
    ['a = { b = { c = 5 } }, a = { x : ${a.b} }, a = { b = 2 }', { a: { b: 2, x: 2 } }],
    ['a.b = { c = 5 }, a.b = ${a.b}', { a: { b: { c: 5 } } }],
    ['a = 1, a = { x : 42, y : ${a.x} }', { a: { x: 42, y: 42 } }],
    ['a = { b : 1 }\na = ${a}{ c : ${a.b} }', { a: { b: 1, c: 1 } }],
    ['a = [1] ${?a}', { a: [1] }],
    ['a = [0], a = [1] ${?a}', { a: [1, 0] }],
    ['a : { b : ${?a} }', { a: {} }],
    ['a : { b : ${?a}, c : 1 }', { a: { c: 1 } }],
    ['a : { b : { c : ${?a} }, d : 1 }', { a: { b: {}, d: 1 } }],
    ['a = 1, a = [${?a}, 2]', { a: [2] }],
    ['a : { b : ${?c}, x : 1 }, c = ${a}', { a: { x: 1 }, c: { x: 1 } }],
    ['a : { b : { x : 1 } ${?a} }', { a: { b: { x: 1 } } }],
    ['a : { b : ${?a.c}, c : { x : 1 } }', { a: { b: { x: 1 }, c: { x: 1 } } }],
    ['s { p = ${?x} }, o = ${s}, o { q = ${?s} }', { s: {}, o: { q: {} } }],
    ['q.x = 1, q.x = ${q.x}2, p = ${q}', { q: { x: '12' }, p: { x: '12' } }],
    ['a { x = 1 }, b = ${a} { y = ${a} }', { a: { x: 1 }, b: { x: 1, y: { x: 1 } } }],
    [
      'x = { v : 1 }, f = ${x}, f = { k : ${g} }, g = ${f}{ k : 1 }',
      { x: { v: 1 }, f: { v: 1, k: { v: 1, k: 1 } }, g: { v: 1, k: 1 } },
    ],
    [
      'defaults { a = 1, b = 2 }, item = ${defaults}, item.b = 3, defaults.a = ${item.b}',
      { defaults: { a: 3, b: 2 }, item: { a: 3, b: 3 } },
    ],
  ],
  '+=': [
    ['a += b', { a: ['b'] }],
    ['a = [1], a += 2, a += [3], a += { b : 4 }', { a: [1, 2, [3], { b: 4 }] }],
    ['a+=1\na +=2', { a: [1, 2] }],
    ['x.a += 1, x { a += ${y} }, y = z', { x: { a: [1, 'z'] }, y: 'z' }],
    ['b = [1], a = ${b}, a += 2', { b: [1], a: [1, 2] }],
    ['a = [1], a += ${?nope}', { a: [1] }],
    ['a = { b : 1 }, a = [2], a += 3', { a: [2, 3] }],
    ['l = [ { a += 1, a += 2 } ]', { l: [{ a: [1, 2] }] }],
    ['d.p += true\nd = ${d}', { d: { p: [true] } }],
    ['a { p += 1 }, b { p += 2 }, b = ${a}', { a: { p: [1] }, b: { p: [1] } }],
    ['a { p += 1 }, b = ${a}, b { p += 2 }', { a: { p: [1] }, b: { p: [1, 2] } }],
    ['a { p += 1 }, b = ${a} { p += 2 }, c = ${a} ${b}', { a: { p: [1] }, b: { p: [1, 2] }, c: { p: [1, 2] } }],
    [
      'a.o { p += 1 }, b.o { p += 2 }, c = ${a} ${b}',
      { a: { o: { p: [1] } }, b: { o: { p: [2] } }, c: { o: { p: [2] } } },
    ],
    ['a { p += 1, q = 1 }, b { p += 2, r = 2 }, b = ${a}', { a: { p: [1], q: 1 }, b: { p: [1], q: 1, r: 2 } }],
  ],
  'Objects with numeric keys': [
    ['a { "0" = x, "1" = y }', { a: { 0: 'x', 1: 'y' } }],
    ['a { 1 = y, 0 = x, 10 = z, b = 5 }, a = ${a} [w]', { a: ['x', 'y', 'z', 'w'] }],
    ['a = [1] { "0" : 2 }, b = { "0" : 2 } [1]', { a: [1, 2], b: [2, 1] }],
    ['a { 0 = x }, a += y', { a: ['x', 'y'] }],
    ['o { 0 = x, 0 = y }, a = [] ${o}', { o: { 0: 'y' }, a: ['y'] }],
    ['o { 0 { k += 1 } }, o { 0 { k += 2 } }, a = [] ${o}', { o: { 0: { k: [1, 2] } }, a: [{ k: [1, 2] }] }],
  ],
  'The word include elsewhere': [
    ['{ foo include : 42 }', { 'foo include': 42 }],
    ['{ foo : include }', { foo: 'include' }],
    ['a = [ include ]', { a: ['include'] }],
    ['{ "include" : 42 }', { include: 42 }],
    ['includes = 1, include.x = 2', { includes: 1, include: { x: 2 } }],
  ],
};

for (const [section, table] of Object.entries(SECTIONS)) {
  describe(`HOCON specification, ${section}`, () => {
    test.each(table)('%j', (text, json) => {
      expect(read(text)).toEqual(json);
    });
  });
}

describe('Environment variables', () => {
  const env = { X: 'x', EMPTY: '', NUMBER: '5', 'user.home': '/home', UNSET: undefined };

  test.each([
    ['a = ${X}, b = ${?X}', { a: 'x', b: 'x' }],
    ['a = 1, a = ${?X}, b = 1, b = ${?UNSET}, c = 1, c = ${?Y}', { a: 'x', b: 1, c: 1 }],
    ['a = ${X}y', { a: 'xy' }],
    ['a = ${EMPTY}', { a: '' }],
    ['a = ${NUMBER}', { a: '5' }],
    ['a = ${user.home}', { a: '/home' }],
    ['X = config, a = ${X}', { X: 'config', a: 'config' }],
    ['X = null, a = ${X}', { X: null, a: null }],
    ['X = ${?X}, Y = ${?Y}', { X: 'x' }],
    ['a = ${?toString}, b = ${?__proto__}', {}],
  ])('%j', (text, json) => {
    expect(read(text, { env })).toEqual(json);
  });
});

describe('Several sources', () => {
  test('A later source overrides and merges with an earlier one', () => {
    expect(read(['a { x = 1, y = 1 }, l = [1]', 'a.y = 2, l = [2]'])).toEqual({ a: { x: 1, y: 2 }, l: [2] });
  });

  test('Substitutions are resolved over the merged whole, in both directions', () => {
    expect(read(['a = ${b}, b = 1, l = [1]', 'b = 2, c = ${a}, l = ${l} [2], l += 3'])).toEqual({
      a: 2,
      b: 2,
      c: 2,
      l: [1, 2, 3],
    });
  });

  test('No source gives an empty object', () => {
    expect(read([])).toEqual({});
  });
});
