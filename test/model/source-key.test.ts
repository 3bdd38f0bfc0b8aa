import { expect, test } from '@jest/globals';
import { siteNetworkKey, sourceKey } from '../../src/model/source-key.ts';

test('a source is an IPv4 address, or the network of one customer with IPv6', () => {
  expect(sourceKey('192.0.2.7')).toBe('192.0.2.7');
  expect(sourceKey('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64');
  expect(sourceKey('2001:db8:1:2:3:4:5:6')).toBe(sourceKey('2001:0db8:0001:0002::1'));
  expect(sourceKey('2001:db8:1:3::1')).not.toBe(sourceKey('2001:db8:1:2::1'));
  expect(sourceKey('fe80::1%eth0')).toBe(sourceKey('fe80::2%eth0'));
  expect(sourceKey('')).toBe('');
});

test.each(['::ffff:192.0.2.7', '::ffff:c000:207', '64:ff9b::192.0.2.7'])(
  'an IPv4 address is the same source in its IPv6 form %s',
  (address) => {
    expect(sourceKey(address)).toBe('192.0.2.7');
  },
);

test('the site of a source is the /48 around an IPv6 network, and an IPv4 address itself', () => {
  expect(siteNetworkKey(sourceKey('2001:db8:1:2::1'))).toBe('2001:db8:1::/48');
  expect(siteNetworkKey(sourceKey('2001:db8:1:3::9'))).toBe('2001:db8:1::/48');
  expect(siteNetworkKey(sourceKey('2001:db8:2:3::9'))).toBe('2001:db8:2::/48');
  expect(siteNetworkKey(sourceKey('::1'))).toBe('0:0:0::/48');
  expect(siteNetworkKey(sourceKey('192.0.2.7'))).toBe('192.0.2.7');
  expect(siteNetworkKey(sourceKey(''))).toBe('');
});
