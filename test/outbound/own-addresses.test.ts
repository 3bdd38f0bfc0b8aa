import { networkInterfaces } from 'node:os';
import { afterEach, describe, expect, test } from '@jest/globals';
import ipaddr from 'ipaddr.js';
import { createWebPushKeys } from '../../src/config/keys/web-push-keys.ts';
import { AddressPolicy } from '../../src/outbound/address-policy.ts';
import { MachineNetwork, type MachineNetworkFacts } from '../../src/outbound/machine-network.ts';
import { DnsResolver, type ResolveName } from '../../src/outbound/dns-resolver.ts';
import { OwnPublicHosts } from '../../src/outbound/public-hosts.ts';
import { callAs } from '../support/call.ts';
import { newSubscription } from '../support/devices.ts';
import { createPerson } from '../support/people.ts';
import { postJson, TestServer } from '../support/server.ts';
import { Fixture } from './fixture.ts';
import { OK } from './receiver.ts';

const fixture = new Fixture();
afterEach(() => fixture.close());

const HOST = 'hooks.example.org';
const OWN = "this server's own";

/** The network of a machine with one public address of each family, as Linux reports it. */
const FACTS: MachineNetworkFacts = {
  interfaces: [
    { address: '127.0.0.1', cidr: '127.0.0.1/8' },
    { address: '185.199.108.7', cidr: '185.199.108.7/24' },
    { address: '2a01:4f8:10:20::5', cidr: '2a01:4f8:10:20::5/64' },
  ],
  routesText: [
    // A router announces this prefix as on-link: its addresses are reached without a router.
    route('2a01:4f8:10:30::', 64, { flags: 0x00000001 }),
    // This prefix is reached through a router.
    route('2a01:4f8:10:40::', 64, { nextHop: 'fe80::1', flags: 0x00000003 }),
    // This prefix is unreachable by configuration.
    route('2a01:4f8:10:50::', 64, { flags: 0x00200200 }),
    // Default routes through a tunnel have no gateway.
    route('::', 0, { flags: 0x00000001 }),
    route('2000::', 3, { flags: 0x00000001 }),
    '',
  ].join('\n'),
};

function route(to: string, length: number, { nextHop = '::', flags }: { nextHop?: string; flags: number }): string {
  const hex = (address: string): string => Buffer.from(ipaddr.parse(address).toByteArray()).toString('hex');
  const word = (value: number): string => value.toString(16).padStart(8, '0');
  return [
    hex(to),
    length.toString(16).padStart(2, '0'),
    hex('::'),
    '00',
    hex(nextHop),
    word(256),
    word(1),
    word(0),
    word(flags),
    '    eth0',
  ].join(' ');
}

/** The public host names of the server, whose addresses `resolve` looks up. */
function ownPublicHosts(resolve: ResolveName, now?: () => number): OwnPublicHosts {
  const lookup = new DnsResolver({
    timeoutMs: 60_000,
    successCacheMs: 0,
    failureCacheMs: 0,
    maxConcurrentLookups: 4,
    resolve,
  });
  const uris = {
    baseUri: 'https://chat.example.org/klatch',
    publicEndpoints: ['wss://live.example.org', 'tls://[2606:4700::7]:9070'],
  };
  return new OwnPublicHosts(uris, { lookup, ...(now === undefined ? {} : { now }) });
}

describe('the address policy and this machine', () => {
  const machine = new MachineNetwork({ read: () => FACTS });
  const policy = new AddressPolicy([], { machine });

  test.each([
    ['185.199.108.7', OWN],
    ['2a01:4f8:10:20::5', OWN],
    ['2A01:04f8:10:20:0:0:0:5', OWN],
    ['2a01:4f8:10:20::6', 'on-link IPv6'],
    ['2a01:4f8:10:20:ffff::', 'on-link IPv6'],
    ['2a01:4f8:10:30::1', 'on-link IPv6'],
  ])('refuses %s (%s)', (address, rule) => {
    expect(policy.violatedRule(address, HOST)).toBe(rule);
    expect(policy.violatedRuleBeforeLookup(address.includes(':') ? `[${address}]` : address)).toBe(rule);
  });

  test.each(['185.199.108.8', '2a01:4f8:10:40::1', '2a01:4f8:10:50::1', '2a01:4f8:10:21::1', '2606:4700::1111'])(
    'lets %s through, which is neither its own nor on its link',
    (address) => {
      expect(policy.violatedRule(address, HOST)).toBeNull();
    },
  );

  test('delivery.allow lets own addresses and neighbours through', () => {
    const listed = new AddressPolicy(['185.199.108.7', '2a01:4f8:10:20::/64', 'self.example'], { machine });
    expect(listed.violatedRule('185.199.108.7', HOST)).toBeNull();
    expect(listed.violatedRule('2a01:4f8:10:20::5', HOST)).toBeNull();
    expect(listed.violatedRule('2a01:4f8:10:30::1', HOST)).toBe('on-link IPv6');
    expect(listed.violatedRule('2a01:4f8:10:30::1', 'self.example')).toBeNull();
  });

  test('reads the interfaces again once its answer is 10 s old, and not for each question', () => {
    let now = 0;
    let reads = 0;
    let address = '185.199.108.7';
    const read = (): MachineNetworkFacts => {
      reads += 1;
      return { interfaces: [{ address, cidr: `${address}/24` }], routesText: '' };
    };
    const moving = new AddressPolicy([], { machine: new MachineNetwork({ read, now: () => now }) });
    expect(moving.violatedRule('185.199.109.9', HOST)).toBeNull();
    address = '185.199.109.9';
    now = 9_999;
    expect(moving.violatedRule('185.199.109.9', HOST)).toBeNull();
    expect(reads).toBe(1);
    now = 10_000;
    expect(moving.violatedRule('185.199.109.9', HOST)).toBe(OWN);
    expect(moving.violatedRule('185.199.108.7', HOST)).toBeNull();
  });

  test('knows every address of the machine that runs the tests, without being asked to', () => {
    const real = new MachineNetwork();
    const addresses = Object.values(networkInterfaces()).flatMap((each) => each!.map(({ address }) => address));
    expect(addresses).toContain('127.0.0.1');
    for (const address of addresses)
      expect([address, real.refusingRuleOf(ipaddr.parse(address))]).toEqual([address, OWN]);
  });
});

describe('the address policy and where clients reach the server', () => {
  const resolve: ResolveName = (host) =>
    Promise.resolve([{ address: host === 'chat.example.org' ? '185.199.108.7' : '185.199.108.9', family: 4 }]);

  test('refuses what http.base-uri and public-endpoints resolve to, by any name and as a literal', async () => {
    const policy = new AddressPolicy([], { ownPublicHosts: ownPublicHosts(resolve) });
    await policy.refreshPublicHostsIfDue();
    for (const address of ['185.199.108.7', '185.199.108.9', '2606:4700::7']) {
      expect([address, policy.violatedRule(address, HOST)]).toEqual([address, OWN]);
    }
    expect(policy.violatedRuleBeforeLookup('185.199.108.7')).toBe(OWN);
    expect(policy.violatedRule('185.199.108.8', HOST)).toBeNull();
  });

  test('refuses their names, whatever they resolve to', () => {
    const policy = new AddressPolicy([], { ownPublicHosts: ownPublicHosts(resolve) });
    for (const host of ['chat.example.org', 'CHAT.example.org.', 'live.example.org']) {
      expect([host, policy.violatedRuleBeforeLookup(host)]).toEqual([host, OWN]);
      expect([host, policy.violatedRule('185.199.111.1', host)]).toEqual([host, OWN]);
    }
    expect(policy.violatedRuleBeforeLookup('hooks.example.org')).toBeNull();
    const listed = new AddressPolicy(['chat.example.org'], { ownPublicHosts: ownPublicHosts(resolve) });
    expect(listed.violatedRuleBeforeLookup('chat.example.org')).toBeNull();
    expect(listed.violatedRule('185.199.108.7', 'chat.example.org')).toBeNull();
  });

  test('keeps the addresses of the last look-up that succeeded, and takes the next ones', async () => {
    let now = 0;
    let answer: () => ReturnType<ResolveName> = () => resolve('chat.example.org');
    const names = ownPublicHosts(
      () => answer(),
      () => now,
    );
    const policy = new AddressPolicy([], { ownPublicHosts: names });
    await policy.refreshPublicHostsIfDue();
    answer = () => Promise.reject(Object.assign(new Error('no server answers'), { code: 'EAI_AGAIN' }));
    now = 60_000;
    await policy.refreshPublicHostsIfDue();
    await new Promise(setImmediate);
    expect(policy.violatedRule('185.199.108.7', HOST)).toBe(OWN);
    answer = () => Promise.resolve([{ address: '185.199.110.1', family: 4 }]);
    now = 70_000;
    await policy.refreshPublicHostsIfDue();
    await new Promise(setImmediate);
    expect(policy.violatedRule('185.199.110.1', HOST)).toBe(OWN);
    expect(policy.violatedRule('185.199.108.7', HOST)).toBeNull();
  });

  test('the first connection waits until the own names are known; none is made to the server itself', async () => {
    const receiver = await fixture.receiver((socket) => socket.write(OK));
    const asked = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<void>();
    const names = ownPublicHosts(async () => {
      asked.resolve();
      await answered.promise;
      return [{ address: '185.199.108.7', family: 4 }];
    });
    const client = fixture.client({
      policy: new AddressPolicy(['loopback'], { ownPublicHosts: names }),
      resolve: () => Promise.resolve([{ address: '185.199.108.7', family: 4 }]),
    });
    const attempt = client.post(receiver.url('rebound.example'), {}, '{}');
    await asked.promise;
    answered.resolve();
    expect(await attempt).toMatchObject({ category: 'address policy', detail: "this server's own address" });
    expect(receiver.connections).toBe(0);
  });
});

test('hooks and push endpoints are refused alike, with the rule and the key that allows them', async () => {
  const server = await TestServer.start({
    http: { baseUri: 'https://185.199.108.7' },
    publicEndpoints: ['wss://live.example.org'],
    webPush: { ...createWebPushKeys(), vapidSubject: 'mailto:admin@example.org' },
  });
  fixture.opened(server);
  const group = await server.createGroup();
  const person = await createPerson(server, 'ada');
  for (const host of ['185.199.108.7', 'live.example.org']) {
    const hook = await postJson(`${group.webhook}/reverse`, { url: `https://${host}/hook` });
    const sentence =
      `The address policy refuses ${host} (this server's own): ` +
      'the administrator can allow it with delivery.allow in server.conf';
    expect(hook).toMatchObject({ status: 400, body: { message: sentence } });
    const subscription = newSubscription(`https://${host}/push`);
    await expect(callAs(server, person, 'devices.register', { kind: 'web', subscription })).rejects.toThrow(
      "subscription.endpoint: the address policy refuses this host (this server's own): " +
        'the administrator can allow it with delivery.allow in server.conf',
    );
  }
});
