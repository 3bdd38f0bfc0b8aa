import { afterEach, describe, expect, test } from '@jest/globals';
import webPush from 'web-push';
import { AddressPolicy } from '../../../src/outbound/address-policy.ts';
import { DnsResolver } from '../../../src/outbound/dns-resolver.ts';
import type { PushVendors } from '../../../src/push/vendors/vendor.ts';
import { createVendors } from '../../../src/push/vendors/vendors.ts';
import { testConfig, type ConfigChanges } from '../../support/config.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { Folder } from '../../config/folder.ts';
import { createAppleKey, createServiceAccount, note } from '../keys.ts';

const lines: string[] = [];
const TARGET = { host: '', port: 0, user: '', password: '', database: '', connectTimeoutMs: 1, lockTimeoutMs: 1 };
let made: PushVendors = new Map();

function create(changes: ConfigChanges): PushVendors {
  const config = testConfig(TARGET, '/nowhere', changes);
  made = createVendors(config, {
    policy: new AddressPolicy([]),
    lookup: new DnsResolver({
      timeoutMs: 1_000,
      successCacheMs: 1_000,
      failureCacheMs: 1_000,
      maxConcurrentLookups: 1,
    }),
    userAgent: 'Klatch/0',
    log: recordingLog(lines),
  });
  return made;
}

afterEach(async () => {
  for (const vendor of made.values()) await vendor.stop();
  lines.length = 0;
});

describe('the vendors of a configuration', () => {
  test('are none where it has no keys', () => {
    expect([...create({}).keys()]).toEqual([]);
  });

  test('are those that it has keys for, and connect to nobody before there is something to send', async () => {
    using folder = new Folder();
    const { publicKey, privateKey } = webPush.generateVAPIDKeys();
    const path = folder.write('key.p8', createAppleKey().p8);
    const apple = { keyId: 'KEY1234567', teamId: 'TEAM123456', path, bundleId: 'org.example.chat', sandbox: false };
    const vendors = create({
      googlePush: { keys: [{ projectId: 'klatch-test', key: createServiceAccount('klatch-test').json }] },
      applePush: { keys: [apple] },
      webPush: { public: publicKey, private: privateKey, vapidSubject: 'mailto:a@example.org' },
    });
    expect([...vendors.keys()]).toEqual(['google', 'apple', 'web']);
    expect([...vendors.values()].map(({ kind, problem }) => ({ kind, problem }))).toEqual([
      { kind: 'google', problem: null },
      { kind: 'apple', problem: null },
      { kind: 'web', problem: null },
    ]);
    expect(lines).toEqual([]);
    for (const vendor of vendors.values()) {
      await vendor.stop();
      await vendor.stop();
    }
  });

  test('whose keys went away are there with their problem, and the log says so once', async () => {
    const vendors = create({ googlePush: { keys: [{ projectId: 'klatch-test', key: '/nowhere/account.json' }] } });
    const problem = '/nowhere/account.json does not exist';
    expect(vendors.get('google')).toMatchObject({ problem });
    expect(lines).toEqual([JSON.stringify({ event: 'nothing can be pushed by a vendor', kind: 'google', problem })]);
    expect(await vendors.get('google')!.send({ token: 't', app: null }, note())).toMatchObject({ outcome: 'refused' });
  });
});
