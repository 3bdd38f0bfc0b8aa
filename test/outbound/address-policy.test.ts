import { describe, expect, test } from '@jest/globals';
import { AddressPolicy, InvalidAllowEntryError } from '../../src/outbound/address-policy.ts';

const HOST = 'hooks.example.org';

describe('without exceptions the policy', () => {
  const policy = new AddressPolicy([]);

  test.each(['1.1.1.1', '8.8.8.8', '172.15.0.1', '172.32.0.1', '100.63.0.1', '100.128.0.1', '2606:4700::1111'])(
    'allows the public address %s',
    (address) => {
      expect(policy.violatedRule(address, HOST)).toBeNull();
      expect(policy.violatedRuleBeforeLookup(address)).toBeNull();
    },
  );

  test.each([
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['::1', 'loopback'],
    ['0.0.0.0', 'unspecified'],
    ['0.1.2.3', 'unspecified'],
    ['::', 'unspecified'],
    ['10.0.0.1', 'private'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.1.1', 'private'],
    ['fd00::1', 'private'],
    ['fc00::1', 'private'],
    ['169.254.169.254', 'link-local'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'link-local'],
    ['::1%lo', 'loopback'],
    ['100.64.0.1', 'carrier-grade NAT'],
    ['100.127.255.255', 'carrier-grade NAT'],
    ['224.0.0.1', 'multicast'],
    ['ff02::1', 'multicast'],
    ['255.255.255.255', 'broadcast'],
    ['240.0.0.1', 'reserved'],
    ['192.0.0.1', 'reserved'],
    ['192.0.2.1', 'documentation'],
    ['198.51.100.1', 'documentation'],
    ['203.0.113.1', 'documentation'],
    ['2001:db8::1', 'documentation'],
    ['3fff::1', 'documentation'],
    ['198.18.0.1', 'benchmarking'],
    ['2001:2::1', 'benchmarking'],
    ['192.88.99.1', '6to4'],
    ['2002:a00:1::', '6to4'],
    ['2002:808:808::1', '6to4'],
    ['2001::1', 'Teredo'],
    ['64:ff9b::7f00:1', 'NAT64'],
    ['64:ff9b::8.8.8.8', 'NAT64'],
    ['64:ff9b:1::a00:1', 'NAT64'],
    ['::ffff:127.0.0.1', 'IPv4-mapped IPv6'],
    ['::ffff:8.8.8.8', 'IPv4-mapped IPv6'],
    ['::ffff:7f00:1', 'IPv4-mapped IPv6'],
    ['0:0:0:0:0:ffff:a00:1', 'IPv4-mapped IPv6'],
    ['::ffff:0:127.0.0.1', 'IPv4-translated IPv6'],
    ['::127.0.0.1', 'IPv4-compatible IPv6'],
    ['::8.8.8.8', 'IPv4-compatible IPv6'],
    ['::2', 'IPv4-compatible IPv6'],
    ['fec0::1', 'site-local'],
    ['100::1', 'special-purpose'],
    ['2001:20::1', 'special-purpose'],
    ['4000::1', 'reserved'],
    ['1::1', 'reserved'],
  ])('refuses %s as %s', (address, rule) => {
    expect(policy.violatedRule(address, HOST)).toBe(rule);
  });

  test.each(['', 'localhost', '127.1', '2130706433', '1.2.3.4.5', '[::1]'])(
    'refuses "%s", which a resolver cannot have meant',
    (address) => {
      expect(policy.violatedRule(address, HOST)).toBe('not an address');
    },
  );

  test.each([
    ['127.0.0.1', 'loopback'],
    ['[::1]', 'loopback'],
    ['[::ffff:127.0.0.1]', 'IPv4-mapped IPv6'],
    ['[::ffff:7f00:1]', 'IPv4-mapped IPv6'],
    ['[::127.0.0.1]', 'IPv4-compatible IPv6'],
    ['2130706433', 'loopback'],
    ['0x7f.1', 'loopback'],
    ['0x7f000001', 'loopback'],
    ['017700000001', 'loopback'],
    ['127.1', 'loopback'],
    ['127.0.0.1.', 'loopback'],
    ['１２７.0.0.1', 'loopback'],
    ['127。0。0。1', 'loopback'],
    ['0', 'unspecified'],
    ['[2002:a00:1::]', '6to4'],
    ['[64:ff9b::7f00:1]', 'NAT64'],
    ['[fe80::1%25eth0]', 'link-local'],
    ['256.1.1.1', 'not a host'],
    ['a b', 'not a host'],
  ])('refuses the URL host %s as %s', (host, rule) => {
    expect(policy.violatedRuleBeforeLookup(host)).toBe(rule);
    const normalised = URL.parse(`http://${host}/`)?.hostname;
    if (normalised !== undefined) expect(policy.violatedRuleBeforeLookup(normalised)).toBe(rule);
  });

  test.each(['localhost', '127.0.0.1.nip.io', 'hooks.example.org', '[2606:4700::1111]', '134744072'])(
    'leaves the URL host %s to the look-up, or allows it',
    (host) => {
      expect(policy.violatedRuleBeforeLookup(host)).toBeNull();
    },
  );
});

describe('the allow list', () => {
  test('"loopback" allows both loopbacks, and the mapped spelling of the IPv4 one', () => {
    const policy = new AddressPolicy(['Loopback']);
    for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1']) {
      expect(policy.violatedRule(address, HOST)).toBeNull();
    }
    for (const address of ['10.0.0.1', '::127.0.0.1', '64:ff9b::7f00:1', '0.0.0.0', '::ffff:10.0.0.1', '::']) {
      expect(policy.violatedRule(address, HOST)).not.toBeNull();
    }
  });

  test('"private" allows the private ranges and nothing else', () => {
    const policy = new AddressPolicy(['private']);
    for (const address of ['10.0.0.1', '172.16.9.9', '192.168.0.1', 'fd12::1', 'fc00::1', '::ffff:10.0.0.1']) {
      expect(policy.violatedRule(address, HOST)).toBeNull();
    }
    for (const address of ['127.0.0.1', '169.254.169.254', '100.64.0.1', 'fe80::1', '2002:a00:1::']) {
      expect(policy.violatedRule(address, HOST)).not.toBeNull();
    }
  });

  test('a CIDR range and a single address allow what they hold', () => {
    const policy = new AddressPolicy(['10.1.0.0/16', 'fd00:1::/32', '192.168.7.7', 'fe80::5', '64:ff9b::/96']);
    for (const address of ['10.1.0.0', '10.1.255.255', 'fd00:1::9', '192.168.7.7', 'fe80::5', '64:ff9b::808:808']) {
      expect(policy.violatedRule(address, HOST)).toBeNull();
    }
    for (const address of ['10.2.0.0', '10.0.255.255', 'fd00:2::9', '192.168.7.8', 'fe80::6']) {
      expect(policy.violatedRule(address, HOST)).not.toBeNull();
    }
    expect(policy.violatedRuleBeforeLookup('0xa010203')).toBeNull();
  });

  test('a mapped address is allowed by IPv4 entries and by mapped entries, not by a wide IPv6 range', () => {
    expect(new AddressPolicy(['10.1.0.0/16']).violatedRule('::ffff:10.1.2.3', HOST)).toBeNull();
    expect(new AddressPolicy(['::ffff:10.1.0.0/112']).violatedRule('::ffff:10.1.2.3', HOST)).toBeNull();
    expect(new AddressPolicy(['::ffff:10.1.0.0/112']).violatedRule('::ffff:10.2.2.3', HOST)).toBe('IPv4-mapped IPv6');
    expect(new AddressPolicy(['::/0']).violatedRule('::ffff:10.1.2.3', HOST)).toBe('IPv4-mapped IPv6');
    expect(new AddressPolicy(['::/0']).violatedRule('::127.0.0.1', HOST)).toBeNull();
    expect(new AddressPolicy(['0.0.0.0/0']).violatedRule('::1', HOST)).toBe('loopback');
  });

  test('a host name allows any address, for that name only', () => {
    const policy = new AddressPolicy(['hooks.local', '*.Corp.Example', 'bücher.example']);
    for (const host of ['hooks.local', 'HOOKS.local', 'hooks.local.', 'a.corp.example', 'b.a.corp.example']) {
      expect(policy.violatedRule('10.0.0.1', host)).toBeNull();
    }
    expect(policy.violatedRule('127.0.0.1', 'xn--bcher-kva.example')).toBeNull();
    for (const host of ['corp.example', 'notcorp.example', 'a.hooks.local', 'corp.example.evil.org', '']) {
      expect(policy.violatedRule('10.0.0.1', host)).toBe('private');
    }
  });

  test.each([
    '',
    ' ',
    '10.1',
    '10.0.0.0/33',
    'fd00::/129',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '*',
    '*.',
    'a.*.b',
    'http://a',
  ])('refuses the entry "%s" in a sentence', (entry) => {
    expect(() => new AddressPolicy([entry])).toThrow(InvalidAllowEntryError);
    expect(() => new AddressPolicy([entry])).toThrow(`"${entry}" is not`);
  });

  test.each(['0x7f.1', '2130706433', 'a.1', 'fe80::1%eth0', 'a b', 'host:80', '[::1]', '-a.example', '300.1.1.1/8'])(
    'refuses the entry "%s", which could never match',
    (entry) => {
      expect(() => new AddressPolicy([entry])).toThrow(InvalidAllowEntryError);
    },
  );
});
