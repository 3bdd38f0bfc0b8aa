import { expect, test } from '@jest/globals';
import { isSafeImage, SNIFFED_BYTES, sniffType } from '../../src/files/media-type.ts';

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489', 'hex');

test.each([
  ['a picture', PNG, 'image/png'],
  ['a page', Buffer.from('<!doctype html><script>alert(1)</script>'), 'text/plain'],
  ['a document', Buffer.from('%PDF-1.7\n%âãÏÓ\n', 'latin1'), 'application/pdf'],
  ['plain text', Buffer.from('Grüße aus Köln\r\n\tand more'), 'text/plain'],
  ['bytes', Buffer.from([0, 1, 2, 3, 250, 251]), 'application/octet-stream'],
  ['nothing', Buffer.alloc(0), 'application/octet-stream'],
  ['a drawing that can hold a program', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'text/plain'],
])('%s is known by its content', async (_what, head, type) => {
  const found = await sniffType(head);
  expect([found, isSafeImage(found)]).toEqual([type, type === 'image/png']);
});

test('a text whose last character is cut is one', async () => {
  const head = Buffer.from('ä'.repeat(SNIFFED_BYTES));
  for (const length of [SNIFFED_BYTES, SNIFFED_BYTES - 1, 1_001]) {
    expect(await sniffType(head.subarray(0, length))).toBe('text/plain');
  }
});

test('no beginning of a file makes it fail', async () => {
  for (const start of [
    '504b0304',
    '3026b2758e66cf11',
    '000000206674797061766966',
    '49492a00',
    'fffb',
    '1f8b08',
    '4f676753',
  ]) {
    for (const rest of [0, 10, 4_000]) {
      const head = Buffer.concat([Buffer.from(start, 'hex'), Buffer.alloc(rest, 0xff)]);
      expect(await sniffType(head)).toMatch(/^[\w.+-]+\/[\w.+-]+$/);
    }
  }
});
