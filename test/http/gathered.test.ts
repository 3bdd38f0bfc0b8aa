import { expect, test } from '@jest/globals';
import { Gathered } from '../../src/http/gathered.ts';

test('pieces come out as they went in, in one', () => {
  const gathered = new Gathered();
  expect(gathered.whole()).toEqual(Buffer.alloc(0));
  const pieces = Array.from({ length: 3_000 }, (_, n) => Buffer.from(String(n).repeat(n % 40)));
  for (const piece of pieces) gathered.add(piece);
  expect(gathered.whole()).toEqual(Buffer.concat(pieces));
});

test('the first piece is neither copied nor written over', () => {
  const memory = Buffer.from('abcdef');
  const gathered = new Gathered();
  gathered.add(memory.subarray(0, 3));
  expect(gathered.whole().buffer).toBe(memory.buffer);
  gathered.add(Buffer.from('xyz'));
  expect([gathered.whole().toString(), memory.toString()]).toEqual(['abcxyz', 'abcdef']);
});
