import { expect, test } from '@jest/globals';
import { GrowingBuffer } from '../../src/http/growing-buffer.ts';

test('pieces come out as they went in, in one', () => {
  const buffer = new GrowingBuffer();
  expect(buffer.toBuffer()).toEqual(Buffer.alloc(0));
  const chunks = Array.from({ length: 3_000 }, (_, n) => Buffer.from(String(n).repeat(n % 40)));
  for (const chunk of chunks) buffer.append(chunk);
  expect(buffer.toBuffer()).toEqual(Buffer.concat(chunks));
});

test('the first piece is neither copied nor written over', () => {
  const memory = Buffer.from('abcdef');
  const buffer = new GrowingBuffer();
  buffer.append(memory.subarray(0, 3));
  expect(buffer.toBuffer().buffer).toBe(memory.buffer);
  buffer.append(Buffer.from('xyz'));
  expect([buffer.toBuffer().toString(), memory.toString()]).toEqual(['abcxyz', 'abcdef']);
});
