import { expect, test } from '@jest/globals';
import { sanitizeFileName } from '../../src/files/sanitize-name.ts';
import { within } from '../run/machine-speed.ts';

test.each([
  ['report.pdf', 'report.pdf'],
  ['Über größe 日本語 👩‍👩‍👧.png', 'Über größe 日本語 👩‍👩‍👧.png'],
  ['../../etc/passwd', 'passwd'],
  ['C:\\fakepath\\a picture.png', 'a picture.png'],
  ['a/b/', 'b'],
  ['..', 'file'],
  ['/', 'file'],
  ['', 'file'],
  ['\u0000\r\n\t', 'file'],
  ['evil\r\nSet-Cookie: a=b.txt', 'evilSet-Cookie_ a=b.txt'],
  ['photo\u202egpj.exe', 'photogpj.exe'],
  ['a\u200bb\u2066c\u2069.txt\ufeff', 'abc.txt'],
  ['nul\u0000byte.txt', 'nulbyte.txt'],
  ['.htaccess', 'htaccess'],
  ['trailing. . .', 'trailing'],
  ['a  <b>|"c"?*.txt', 'a _b___c___.txt'],
  ['CON', '_CON'],
  ['con.tar.gz', '_con.tar.gz'],
  ['console.txt', 'console.txt'],
  ['half \ud800 pair.txt', 'half _ pair.txt'],
])('the name %j becomes %j', (given, name) => {
  expect(sanitizeFileName(given)).toBe(name);
});

test('a long name is cut to 255 bytes between two characters and keeps its ending', () => {
  expect(sanitizeFileName(`${'x'.repeat(10_000)}.tar`)).toBe(`${'x'.repeat(251)}.tar`);
  const wide = sanitizeFileName(`${'ä😀'.repeat(5_000)}.jpeg`);
  expect(Buffer.byteLength(wide)).toBeGreaterThan(245);
  expect(Buffer.byteLength(wide)).toBeLessThanOrEqual(255);
  expect(wide).toMatch(/^(?:ä😀)+ä?\.jpeg$/u);
  expect(Buffer.byteLength(sanitizeFileName(`a.${'b'.repeat(400)}`))).toBe(255);
});

test('no name takes long to clean', () => {
  const hostile = [`${'. '.repeat(5_000)}a`, `a${'. '.repeat(5_000)}a`, ' '.repeat(10_000), `${'a/'.repeat(5_000)}b`];
  const begun = performance.now();
  for (let n = 0; n < 50; n += 1) for (const name of hostile) sanitizeFileName(name);
  // The removal takes a few ms. With a pattern that searched from each of the dots, it took seconds.
  expect(performance.now() - begun).toBeLessThan(within(2_000));
});

test('a clean name stays what it is', () => {
  const names = ['con', 'x'.repeat(300), `${'. '.repeat(200)}a`, `${'a. '.repeat(100)}.txt`, '\ud83d'.repeat(300)];
  for (const name of names) expect(sanitizeFileName(sanitizeFileName(name))).toBe(sanitizeFileName(name));
});
