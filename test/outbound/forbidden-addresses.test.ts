import { lookup } from 'node:dns/promises';
import { isIPv6 } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { KlatchError } from '../../src/errors.ts';
import { parseHookUrl } from '../../src/operations/hooks/hook-url.ts';
import { AddressPolicy } from '../../src/outbound/address-policy.ts';
import { Fixture } from './fixture.ts';
import { OK } from './receiver.ts';

const fixture = new Fixture();
afterEach(() => fixture.close());

const POLICY = new AddressPolicy([]);
const HOST = 'hooks.example.org';

/**
 * The first and the last address of each block in the two IANA registries of special-purpose addresses, and of the
 * blocks that were withdrawn from them.
 */
const BLOCKS: readonly [string, string][] = [
  ['0.0.0.0', '0.255.255.255'],
  ['10.0.0.0', '10.255.255.255'],
  ['100.64.0.0', '100.127.255.255'],
  ['127.0.0.0', '127.255.255.255'],
  ['169.254.0.0', '169.254.255.255'],
  ['172.16.0.0', '172.31.255.255'],
  ['192.0.0.0', '192.0.0.255'],
  ['192.0.2.0', '192.0.2.255'],
  ['192.31.196.0', '192.31.196.255'],
  ['192.52.193.0', '192.52.193.255'],
  ['192.88.99.0', '192.88.99.255'],
  ['192.168.0.0', '192.168.255.255'],
  ['192.175.48.0', '192.175.48.255'],
  ['198.18.0.0', '198.19.255.255'],
  ['198.51.100.0', '198.51.100.255'],
  ['203.0.113.0', '203.0.113.255'],
  ['224.0.0.0', '239.255.255.255'],
  ['240.0.0.0', '255.255.255.255'],
  ['::', '::ffff:ffff:ffff:ffff:ffff'],
  ['64:ff9b::', '64:ff9b::ffff:ffff'],
  ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
  ['100::', '100::ffff:ffff:ffff:ffff'],
  ['100:0:0:1::', '100:0:0:1:ffff:ffff:ffff:ffff'],
  ['2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2620:4f:8000::', '2620:4f:8000:ffff:ffff:ffff:ffff:ffff'],
  ['3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
];

const INNER = ['127.0.0.1', '0.0.0.0', '10.0.0.1', '169.254.169.254', '172.16.0.1', '192.168.0.1', '100.64.0.1'];

/** Writes an IPv4 address as two groups of an IPv6 address. */
function groups(address: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}

/** Ways to embed an IPv4 address in an IPv6 one. */
const CARRIERS: readonly ((v4: string) => string)[] = [
  (v4) => `::${v4}`,
  (v4) => `::ffff:${v4}`,
  (v4) => `::ffff:0:${v4}`,
  (v4) => `64:ff9b::${v4}`,
  (v4) => `64:ff9b:1::${v4}`,
  (v4) => `64:ff9b:1:${groups(v4)}::`,
  (v4) => `2002:${groups(v4)}::`,
  (v4) => `2002:${groups(v4)}::${groups(v4)}`,
  (v4) => `2001:0:${groups(v4)}:0:0:8080:8080`,
  (v4) => `2001:0:808:808:0:0:${groups(v4)}`,
  (v4) => `2606:4700::5efe:${v4}`,
  (v4) => `2606:4700::200:5efe:${v4}`,
  (v4) => `fe80::5efe:${v4}`,
];

/** Ways to write an IPv4 address in a URL. */
function spellings(address: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  const number = ((a * 256 + b) * 256 + c) * 256 + d;
  const octal = (n: number): string => `0${n.toString(8)}`;
  const hex = (n: number): string => `0x${n.toString(16)}`;
  const wide = (text: string): string => text.replace(/\d/g, (n) => String.fromCodePoint(0xff10 + Number(n)));
  const escaped = (text: string): string => text.replace(/./g, (c) => `%${c.charCodeAt(0).toString(16)}`);
  return [
    `${number}`,
    octal(number),
    hex(number),
    hex(number).toUpperCase(),
    `0x0000${number.toString(16)}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    `${a}.${b}.${c * 256 + d}`,
    [a, b, c, d].map(octal).join('.'),
    [a, b, c, d].map(hex).join('.'),
    `${hex(a)}.${octal(b)}.${c * 256 + d}`,
    `000000${octal(a)}.${b}.${c}.${d}`,
    `${address}.`,
    wide(address),
    wide(address.replaceAll('.', '。')),
    address.replaceAll('.', '．'),
    address.replaceAll('.', '｡'),
    address.replace('.', '\u00ad.'),
    address.replace(/\d/g, (n) => String.fromCodePoint(0x1d7d8 + Number(n))),
    escaped(address),
    address.replaceAll('.', '%2e'),
    `${address.slice(0, 1)}\t${address.slice(1)}`,
    `\\\\${address}`,
  ];
}

/** The error code with which a hook for this URL is refused; null if it is accepted. */
function refusal(url: string, policy = POLICY): string | null {
  try {
    parseHookUrl(url, policy);
    return null;
  } catch (error) {
    if (error instanceof KlatchError) return error.code;
    throw error;
  }
}

describe('forbidden addresses', () => {
  test.each(BLOCKS)('from %s to %s are refused', (first, last) => {
    for (const address of [first, last]) {
      expect([address, POLICY.violatedRule(address, HOST)]).toEqual([address, expect.any(String)]);
      const literal = isIPv6(address) ? `[${address}]` : address;
      expect(refusal(`http://${literal}/`)).toBe('hook_address_forbidden');
    }
  });

  test.each(INNER)('%s is refused in every IPv6 address that carries it, with a zone too', (inner) => {
    for (const carry of CARRIERS) {
      const address = carry(inner);
      expect(isIPv6(address)).toBe(true);
      expect([address, POLICY.violatedRule(address, HOST)]).toEqual([address, expect.any(String)]);
      expect(POLICY.violatedRule(`${address}%eth0`, HOST)).not.toBeNull();
      expect(refusal(`https://[${address}]/`)).toBe('hook_address_forbidden');
      expect(refusal(`https://[${address.toUpperCase()}]:8443/`)).toBe('hook_address_forbidden');
    }
  });

  test.each(INNER)('%s is refused in every spelling that a URL knows', (address) => {
    for (const host of spellings(address)) {
      for (const url of [`http://${host}/`, `HTTPS://${host}:8443/a?b`, `http:${host}`]) {
        expect([url, refusal(url)]).toEqual([url, 'hook_address_forbidden']);
      }
      // The URL of a hook may have no user information.
      expect(refusal(`http://public.example@${host}/`)).toBe('invalid_hook_url');
      expect(refusal(`http://public.example:80@${host}/`)).toBe('invalid_hook_url');
    }
  });

  test.each([
    'http://[::1%25lo]/',
    'http://[fe80::1%eth0]/',
    'http://[::ffff:0x7f.1]/',
    'http://[::ffff:127.1]/',
    'http://[127.0.0.1]/',
    'http://256.0.0.1/',
    'http://4294967296/',
    'http://1.2.3.4.5/',
    'http://0x100000000/',
    'http://127.0.0.1:0/',
    'http://receiver.example:0/',
    'http://receiver.example:65536/',
    'http://receiver.example:-1/',
    'http://receiver.example:0x50/',
    'http://receiver%00.example/',
    'http://a b/',
    'http:///',
    '//127.0.0.1/',
    '127.0.0.1:80',
    'unix:/run/postgresql',
    'http+unix://%2frun%2fdocker.sock/',
    'file:///etc/passwd',
    'ftp://127.0.0.1/',
    'gopher://127.0.0.1:25/_x',
    'blob:http://127.0.0.1/x',
    'view-source:http://127.0.0.1/',
  ])('%s is no URL of a hook', (url) => {
    expect(refusal(url)).toBe('invalid_hook_url');
    expect(refusal(url, new AddressPolicy(['loopback', 'private']))).toBe('invalid_hook_url');
  });
});

describe('delivery.allow', () => {
  test.each([
    ['*.corp.example', 'corp.example'],
    ['*.corp.example', 'evilcorp.example'],
    ['*.corp.example', 'a.corp.example.evil.example'],
    ['*.corp.example', 'corp.example.evil.example'],
    ['*.corp.example', 'a.corp.example..'],
    ['*.corp.example', '.corp.examples'],
    ['corp.example', 'a.corp.example'],
    ['corp.example', 'corp.example.'.repeat(2)],
    ['corp.example', 'corp-example'],
    ['corp.example', 'corpxexample'],
    ['localhost', 'a.localhost'],
    ['localhost', 'localhost.localdomain'],
  ])('%s does not open a private address to %s', (entry, host) => {
    expect(new AddressPolicy([entry]).violatedRule('10.0.0.1', host)).toBe('private');
  });

  test.each([
    ['10.0.0.0/8', ['::10.0.0.1', '2002:a00:1::', '64:ff9b::a00:1', '2606::5efe:a00:1']],
    ['127.0.0.1', ['127.0.0.2', '::1', '0.0.0.0', '::127.0.0.1', '2002:7f00:1::']],
    ['::1', ['127.0.0.1', '::', '::2', '::ffff:127.0.0.1', '::1.0.0.1']],
    ['fe80::1', ['fe80::2', 'fe80::1:0:0:1', 'fec0::1']],
    ['private', ['169.254.169.254', '127.0.0.1', '100.64.0.1', 'fec0::1', '::10.0.0.1', '0.0.0.0']],
    ['loopback', ['0.0.0.0', '::', '::7f00:1', '64:ff9b::7f00:1', '10.0.0.1', '169.254.0.1']],
    ['2606:4700::/32', ['2606:4701::5efe:7f00:1', '127.0.0.1', '::ffff:10.0.0.1']],
  ])('%s opens nothing beside it', (entry, others) => {
    const policy = new AddressPolicy([entry]);
    for (const address of others) expect([address, policy.violatedRule(address, HOST)]).not.toEqual([address, null]);
  });
});

describe('an attempt', () => {
  const answered = (addresses: readonly string[]) => () =>
    Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })));

  test.each(INNER.flatMap((inner) => [inner, ...CARRIERS.map((carry) => carry(inner))]))(
    'does not connect to a name at %s, whatever family the resolver calls it',
    async (address) => {
      const receiver = await fixture.receiver((socket) => socket.write(OK));
      for (const family of [4, 6, 0]) {
        const client = fixture.client({ allow: [], resolve: () => Promise.resolve([{ address, family }]) });
        const attempt = await client.post(receiver.url('public.example'), {}, '{}');
        expect(attempt).toMatchObject({ delivered: false, category: 'address policy', code: null });
        expect(JSON.stringify(attempt)).not.toContain('secret');
      }
      expect(receiver.connections).toBe(0);
    },
  );

  test.each([
    [['127.0.0.1', '::1', '::ffff:127.0.0.1', '10.0.0.1']],
    [Array.from({ length: 500 }, (_, n) => `10.0.${n >> 8}.${n & 255}`)],
    [['not an address', '', '127.1', 'localhost']],
  ])('connects to none of many forbidden addresses: %j', async (addresses) => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    const client = fixture.client({ allow: [], resolve: answered(addresses) });
    expect(await client.post(receiver.url('many.example'), {}, '{}')).toMatchObject({ category: 'address policy' });
    expect(receiver.connections).toBe(0);
  });

  test.each(['localhost', 'localhost.', 'LOCALHOST', 'a.localhost', 'ip6-localhost'])(
    'does not connect to %s as this machine resolves it',
    async (host) => {
      const receiver = await fixture.receiver((socket) => socket.write(OK));
      const client = fixture.client({ allow: [], resolve: (name) => lookup(name, { all: true }) });
      const { delivered, category } = await client.post(receiver.url(host), {}, '{}');
      expect([delivered, ['address policy', 'dns'].includes(category ?? '')]).toEqual([false, true]);
      expect(receiver.connections).toBe(0);
    },
  );

  test('never goes to the default port where port 0 is asked for', async () => {
    const attempt = await fixture.client().post('http://127.0.0.1:0/', {}, '{}');
    expect(attempt).toMatchObject({ delivered: false, category: 'refused' });
  });

  test('asks once for each connection, and uses the answer that it judged', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    // This name server gives another address in each answer.
    const answers = ['127.0.0.1', '10.0.0.1'];
    const client = fixture.client({ resolve: () => answered([answers.shift() ?? '169.254.169.254'])() });
    expect(await client.post(receiver.url('rebinding.example'), {}, '1')).toMatchObject({ delivered: true });
    expect(answers).toEqual(['10.0.0.1']);
  });

  test('of a redirect to a forbidden or an allowed place is not followed', async () => {
    const other = await fixture.receiver((socket) => socket.write(OK));
    const places = [other.url(), '//127.0.0.1/', 'http://169.254.169.254/latest', '/again'];
    for (const place of places) {
      const receiver = await fixture.receiver((socket) =>
        socket.write(`HTTP/1.1 307 X\r\nlocation: ${place}\r\ncontent-length: 0\r\n\r\n`),
      );
      expect(await fixture.client().post(receiver.url(), {}, '{}')).toMatchObject({ category: 'status', code: 307 });
      expect(receiver.requests).toHaveLength(1);
    }
    expect(other.connections).toBe(0);
  });
});
