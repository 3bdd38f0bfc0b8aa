import { expect, test } from '@jest/globals';
import { sourceOf } from '../../src/operations/caller.ts';

const of = (source: string): string | null => sourceOf({ kind: 'nobody', source, live: null });

test('a source is an IPv4 address, or the network of one customer with IPv6', () => {
  expect(of('192.0.2.7')).toBe('192.0.2.7');
  expect(of('::ffff:192.0.2.7')).toBe('192.0.2.7');
  expect(of('2001:db8:1:2:3:4:5:6')).toBe(of('2001:0db8:0001:0002::1'));
  expect(of('2001:db8:1:3::1')).not.toBe(of('2001:db8:1:2::1'));
  expect(of('')).toBe('');
  expect(sourceOf({ kind: 'system' })).toBeNull();
});
