import { describe, expect, test } from '@jest/globals';
import { CLOCK_OFFSET_ERROR_MS, CLOCK_OFFSET_WARNING_MS, evaluateClock } from '../../src/doctor/clock.ts';
import { findRiskySettings } from '../../src/doctor/risky-settings.ts';
import { evaluateDatabase } from '../../src/doctor/database.ts';
import {
  FREE_BYTES_ERROR_BELOW,
  FREE_BYTES_WARNING_BELOW,
  FREE_FILES_ERROR_BELOW,
  FREE_FILES_WARNING_BELOW,
  formatBytes,
  evaluateFreeSpace,
} from '../../src/doctor/disk.ts';
import { evaluateFailingAndRemovedHooks, evaluateServerKeys } from '../../src/doctor/hooks.ts';
import {
  EXPECTED_CALLERS,
  evaluateOpenFiles,
  neededFileDescriptorsWithoutCallers,
} from '../../src/doctor/open-files.ts';
import { evaluateLastFailure } from '../../src/doctor/last-failure.ts';
import { findPushProblems, evaluatePush } from '../../src/doctor/push.ts';
import type { CheckResult } from '../../src/doctor/finding.ts';
import { evaluateServer } from '../../src/doctor/server.ts';
import type { FailingHook } from '../../src/storage/hooks/hook-report.ts';
import type { DatabaseReport } from '../../src/storage/database-report.ts';
import { newWebPush } from '../support/devices.ts';
import { testConfig, type ConfigChanges } from '../support/config.ts';

const target = {
  host: '/run/postgresql',
  port: 5432,
  database: 'klatch',
  user: 'klatch',
  password: '',
  connectTimeoutMs: 2_000,
  lockTimeoutMs: 1_000,
};
const configOf = (changes: ConfigChanges = {}) => testConfig(target, '/nowhere', changes);

describe('room on the disk', () => {
  const room = {
    path: '/data',
    device: 1,
    totalBytes: 100 * FREE_BYTES_WARNING_BELOW,
    freeBytes: 50 * FREE_BYTES_WARNING_BELOW,
    freeFiles: 1e6,
  };

  test('is fine, scarce and too little by bytes', () => {
    expect(evaluateFreeSpace(room).level).toBe('ok');
    expect(evaluateFreeSpace({ ...room, freeBytes: FREE_BYTES_WARNING_BELOW - 1 }).level).toBe('warning');
    expect(evaluateFreeSpace({ ...room, freeBytes: FREE_BYTES_ERROR_BELOW - 1 }).level).toBe('error');
  });

  test('is fine, scarce and too little by files, where the file system counts them', () => {
    expect(evaluateFreeSpace({ ...room, freeFiles: FREE_FILES_WARNING_BELOW - 1 }).level).toBe('warning');
    expect(evaluateFreeSpace({ ...room, freeFiles: FREE_FILES_ERROR_BELOW - 1 }).level).toBe('error');
    expect(evaluateFreeSpace({ ...room, freeFiles: null })).toMatchObject({
      level: 'ok',
      found: '/data: 200 GiB free (50 %)',
    });
  });

  test.each([
    [0, '0 bytes'],
    [1_023, '1023 bytes'],
    [1_536, '1.5 KiB'],
    [100 * 1024 * 1024, '100 MiB'],
    [5 * 1024 ** 4, '5.0 TiB'],
  ])('%d bytes reads as %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});

describe('the clock', () => {
  const now = Date.UTC(2026, 10, 20);

  test('is wrong in the past and in the far future', () => {
    expect(evaluateClock(0, 0)).toMatchObject({ level: 'error', found: expect.stringContaining('1970-01-01') });
    expect(evaluateClock(Date.UTC(2101, 0, 1), 0).level).toBe('error');
  });

  test('is compared with the database, ahead and behind', () => {
    expect(evaluateClock(now, 40).found).toMatch(/agrees within 0\.1 s$/);
    expect(evaluateClock(now, CLOCK_OFFSET_WARNING_MS)).toMatchObject({
      level: 'warning',
      found: "the database's clock is 2.0 s ahead of this machine's",
    });
    expect(evaluateClock(now, -CLOCK_OFFSET_ERROR_MS)).toMatchObject({
      level: 'error',
      found: "the database's clock is 60.0 s behind this machine's",
    });
    expect(evaluateClock(now, null)).toMatchObject({
      level: 'ok',
      found: expect.stringContaining('could not be asked'),
    });
  });
});

describe('open files', () => {
  const needed = neededFileDescriptorsWithoutCallers(configOf());

  test('are needed for each configured connection', () => {
    expect(neededFileDescriptorsWithoutCallers(configOf({ delivery: { maxInFlight: 1_256 } }))).toBe(needed + 1_000);
    expect(neededFileDescriptorsWithoutCallers(configOf({ postgresql: { generalPoolSize: 104 } }))).toBe(needed + 100);
  });

  test('are too few, scarce, nearly used up, or enough', () => {
    const judge = (limit: number, open: number | null = null): CheckResult =>
      evaluateOpenFiles({
        openFileLimit: limit,
        openFiles: open,
        neededWithoutCallersAndLiveClients: needed,
        maxLiveConnections: 20_000,
      });
    expect(judge(needed - 1).level).toBe('error');
    expect(judge(needed + EXPECTED_CALLERS - 1).level).toBe('warning');
    expect(judge(needed + EXPECTED_CALLERS).level).toBe('ok');
    expect(judge(50_000, 40_001).level).toBe('warning');
    expect(judge(Number.POSITIVE_INFINITY, 1)).toMatchObject({
      level: 'ok',
      found: expect.stringMatching(/^1 file open, without a limit;.* live clients up to 20000, beside callers$/),
    });
  });
});

describe('the database', () => {
  const good: DatabaseReport = {
    serverUses: [{ server: '127.0.0.1:5432', isUsed: true, rejection: null }],
    version: '18.4',
    versionNumber: 180_004,
    encoding: 'UTF8',
    readOnly: false,
    fsync: 'on',
    fullPageWrites: 'on',
    connections: 37,
    connectionsTaken: 6,
    klatchConnections: 5,
    schema: 1,
    schemaMismatch: null,
    secretFits: true,
    storeId: null,
    loss: null,
    clockAheadMs: 0,
    longTransactions: 0,
    waitingLocks: 0,
    blockerPids: [],
  };
  const another = { kind: 'other', problemPhrase: 'another made it', remedy: 'use that' } as const;
  const judge = (changes: Partial<DatabaseReport>, serverRuns = false) =>
    evaluateDatabase({ ...good, ...changes }, { config: configOf(), newestSchema: 1, serverRuns });

  test('is told in one line when nothing is wrong', () => {
    const found = 'PostgreSQL 18.4 answers, schema 1, 6 of 37 connections taken';
    expect(judge({})).toEqual([{ level: 'ok', found, todo: null }]);
    expect(judge({ schema: 0, secretFits: null })[0]!.found).toContain('without a schema yet');
  });

  test.each([
    ['too old', { versionNumber: 100_023, version: '10.23' }, /10\.23 is too old/],
    ['of another program', { schemaMismatch: another }, /^another made it$/],
    ['in another encoding', { encoding: 'LATIN1' }, /encoding is LATIN1/],
    ['of another secret', { secretFits: false }, /^secret differs/],
    ['without fsync', { fsync: 'off' }, /^fsync is off/],
    ['without full pages', { fullPageWrites: 'off' }, /^full_page_writes is off/],
    ['a standby', { readOnly: true }, /takes no writes/],
    ['too small', { connections: 5 }, /needs 13 connections/],
  ])('is an error when it is %s', (_, changes, found) => {
    expect(judge(changes)).toEqual([{ level: 'error', found: expect.stringMatching(found), todo: expect.any(String) }]);
  });

  test.each([
    ['full of others', { connectionsTaken: 36 }, /needs 13 connections; of 37 others have 31$/],
    ['kept from clearing away', { longTransactions: 1 }, /^1 transaction open for longer than 5 min$/],
    [
      'younger than what was known',
      { loss: { at: new Date(), epoch: 1, conversations: 2 } },
      /^history was lost: .* 2 conv/,
    ],
    ['locked', { waitingLocks: 2, blockerPids: [7, 8] }, /^2 locks waited for, held up by pid 7, 8 of PostgreSQL$/],
  ])('is worth a warning when it is %s', (_, changes, found) => {
    const [first, second] = judge(changes);
    expect(first!.level).toBe('ok');
    expect(second).toEqual({ level: 'warning', found: expect.stringMatching(found), todo: expect.any(String) });
  });

  test('is not told for ever that history was lost', () => {
    const at = new Date(Date.now() - 31 * 24 * 60 * 60_000);
    expect(judge({ loss: { at, epoch: 1, conversations: 2 } })).toHaveLength(1);
  });

  test('behind the program matters only beside a server that runs: a start brings it up to date', () => {
    const behind = { config: configOf(), newestSchema: 2 };
    expect(evaluateDatabase(good, { ...behind, serverRuns: false })).toHaveLength(1);
    expect(evaluateDatabase(good, { ...behind, serverRuns: true })[1]).toMatchObject({ level: 'warning' });
  });
});

describe('dangerous values', () => {
  const found = (changes: ConfigChanges) => findRiskySettings(configOf(changes)).map((each) => each.found);
  const https = { baseUri: 'https://chat.example.org' };

  test('are none in the configuration that setup makes', () => {
    expect(found({ http: https, delivery: { allow: [] } })).toEqual([]);
    expect(found({ http: { baseUri: 'http://127.0.0.1:9090' } })).toEqual([]);
  });

  test.each<[string, ConfigChanges, RegExp]>([
    ['an address policy without any bound', { delivery: { allow: ['0.0.0.0/0', '::/0'] } }, /private, .* through/],
    ['a metadata service', { delivery: { allow: ['169.254.0.0/16'] } }, /169\.254\.169\.254 through/],
    ['tokens in clear text', { http: { baseUri: 'http://chat.example.org' } }, /tokens cross the network in clear/],
    ['a port beside the proxy', { http: { ...https, interface: '0.0.0.0' } }, /listens on 0\.0\.0\.0:0 without TLS/],
    ['a far database', { postgresql: { host: 'db.example.org' } }, /database at db\.example\.org is not encrypted/],
    ['everybody as a proxy', { http: { ...https, trustedProxies: ['::/0'] } }, /believes everybody/],
    ['a stop that is cut off', { http: { ...https, stopDrainTimeoutMs: 30_000 } }, /stop-timeout is longer/],
    ['a lock-timeout that never speaks', { postgresql: { lockTimeoutMs: 20_000 } }, /lock-timeout is not less/],
  ])('%s', (_, changes, sentence) => {
    const all = found({ http: https, ...changes });
    expect(all).toEqual([expect.stringMatching(sentence)]);
  });
});

test.each([
  ['signature', /^The server has no key to sign with: .*modules\.security\.server-keys/],
  ['address policy', /delivery\.allow/],
  ['dns', /name servers/],
  ['timeout', /^Look at the receiver\./],
])('a hook that fails for %s has advice for that reason', (category, advice) => {
  const since = { conversationId: 2, authority: 'example.org', failingSince: new Date(), code: null };
  const hook = { id: 7, category, ...since } as FailingHook;
  const [verdict] = evaluateFailingAndRemovedHooks(
    { failing: { count: 1, hooks: [hook] }, removedByTarget: 0 },
    configOf(),
  );
  expect(verdict!.todo).toMatch(advice);
  expect(verdict!.todo).toMatch(/"klatch hook info 7"/);
});

test('keys of the server that nobody asked the hooks about are not told to be well', () => {
  expect(evaluateServerKeys(configOf(), null).level).toBe('skipped');
});

test('hooks that ask for server keys are a warning only while there is no key', () => {
  const keys = [{ public: '/k.pub', private: '/k' }];
  expect(evaluateServerKeys(configOf(), 2)).toMatchObject({
    level: 'warning',
    found: expect.stringMatching(/^2 hooks/),
  });
  expect(evaluateServerKeys(configOf(), 0).level).toBe('ok');
  expect(evaluateServerKeys(configOf({ serverSigningKeys: keys }), 2).level).toBe('ok');
});

describe('push', () => {
  const google = { keys: [{ projectId: 'first', key: '/nowhere.json' }] };
  const none = { devices: [], longPending: [] };
  const device = (kind: 'google' | 'apple' | 'web', app: string | null = null, devices = 1) => ({ kind, app, devices });

  test('is well without devices, and with devices of what is configured', () => {
    expect(evaluatePush(configOf(), [], none)).toMatchObject([
      { level: 'ok', found: expect.stringMatching(/^nothing/) },
    ]);
    const devices = [device('google', null, 2), device('google', 'first', 3)];
    expect(evaluatePush(configOf({ googlePush: google }), [], { ...none, devices })).toEqual([
      { level: 'ok', found: 'configured for google; 5 devices registered', todo: null },
    ]);
  });

  test('is an error where it is configured and cannot work, whatever is known of devices', () => {
    const problems = [{ kind: 'google', problem: '/nowhere.json does not exist' }] as const;
    for (const report of [none, null]) {
      expect(evaluatePush(configOf({ googlePush: google }), problems, report)).toMatchObject([
        {
          level: 'error',
          found: 'nothing can be pushed to devices of google: /nowhere.json does not exist',
          todo: expect.stringContaining('services.google.push.keys'),
        },
      ]);
    }
  });

  test('is not told to be well while the devices are not known', () => {
    expect(evaluatePush(configOf(), [], null)).toMatchObject([{ level: 'skipped' }]);
    expect(evaluatePush(configOf({ googlePush: google }), [], null)).toMatchObject([{ level: 'skipped' }]);
  });

  test('warns of devices whose vendor or app is configured no more', () => {
    const devices = [device('apple', null, 3), device('google', 'second'), device('google', 'first'), device('web')];
    expect(evaluatePush(configOf({ googlePush: google }), [], { ...none, devices }).map(({ found }) => found)).toEqual([
      '3 devices of apple are told nothing: services.apple.push.keys is not configured any more',
      '1 device of google is told nothing: services.google.push.keys has no second any more',
      '1 device of web is told nothing: services.web-push is not configured any more',
    ]);
  });

  test('warns of what has waited for long', () => {
    const since = new Date('2026-11-20T08:00:00Z');
    const longPending = [{ kind: 'google', pushes: 1, since } as const];
    expect(
      evaluatePush(configOf({ googlePush: google }), [], { devices: [device('google')], longPending }),
    ).toMatchObject([
      { level: 'warning', found: '1 push waits for devices of google, the first since 2026-11-20T08:00:00.000Z' },
    ]);
  });

  test('keys are looked at as the server would, one vendor by itself', async () => {
    const webPush = { ...newWebPush(), private: newWebPush().private };
    const applePush = {
      keys: [{ keyId: 'KEYID12345', teamId: 'TEAMID1234', path: '/nowhere.p8', bundleId: 'a.b', sandbox: false }],
    };
    const found = await findPushProblems(configOf({ googlePush: google, applePush, webPush }));
    expect(found).toEqual([
      { kind: 'google', problem: expect.stringContaining('does not exist') },
      { kind: 'apple', problem: expect.stringContaining('/nowhere.p8 does not exist') },
      { kind: 'web', problem: expect.stringContaining('does not belong to services.web-push.public') },
    ]);
    expect(await findPushProblems(configOf({ webPush: newWebPush() }))).toEqual([]);
    expect(await findPushProblems(configOf())).toEqual([]);
  });
});

describe('a last run that failed', () => {
  const port = { level: 'error', found: 'another program listens on 127.0.0.1:9090', todo: 'Stop it.' } as const;
  const secret = { level: 'error', found: 'secret differs', todo: 'Put it back.' } as const;
  const judge = (exitCode: number, reason: string, causes: Partial<Parameters<typeof evaluateLastFailure>[1]> = {}) =>
    evaluateLastFailure({ found: 'it failed', exitCode, reason }, { takenPorts: [], databaseBlockers: [], ...causes });

  test('is an error while its cause is there, or cannot be ruled out', () => {
    expect(judge(73, port.found, { takenPorts: [port] })).toMatchObject({ level: 'error', todo: port.todo });
    expect(judge(73, '/data cannot be made or reached')).toMatchObject({ level: 'error' });
    expect(judge(77, 'secret differs', { databaseBlockers: [secret] })).toMatchObject({
      level: 'error',
      todo: expect.stringContaining('old value of `secret`'),
    });
    expect(judge(77, 'secret differs', { databaseBlockers: null }).level).toBe('error');
    expect(judge(76, 'schema 9', { databaseBlockers: null })).toMatchObject({
      level: 'error',
      todo: expect.stringContaining('newer Klatch'),
    });
  });

  test('is a start away from well once its cause is gone, or was none that stays', () => {
    const gone = { level: 'warning', todo: expect.stringMatching(/^Its cause is not there any more\. Start it/) };
    expect(judge(73, port.found)).toMatchObject(gone);
    expect(judge(77, 'secret differs')).toMatchObject(gone);
    expect(judge(69, 'cannot connect to the database')).toMatchObject(gone);
    expect(judge(70, 'boom')).toMatchObject({ level: 'warning', todo: expect.stringMatching(/^Start it/) });
  });
});

describe('the server', () => {
  const parts = { version: '1.0.0', file: '/nowhere/server.conf' };
  const answer = { version: '1.0.0', pid: 7, ready: true, startedAt: new Date(), loops: [] };

  test('is fine, of another version, without its database, or silent', () => {
    expect(evaluateServer(answer, parts)).toMatchObject([{ level: 'ok' }]);
    expect(evaluateServer({ ...answer, version: '0.9.0' }, parts)).toMatchObject([{ level: 'warning' }]);
    expect(evaluateServer({ ...answer, ready: false }, parts)).toMatchObject([{ level: 'error' }]);
    const unreachableResult = { level: 'skipped', found: 'was stopped', todo: null } as const;
    expect(evaluateServer({ unreachableResult, isDataDirUnlocked: true, failure: null }, parts)).toEqual([
      unreachableResult,
    ]);
  });

  test('names hooks that look like loops, and what ends them', () => {
    const loops = Array.from({ length: 7 }, (_, n) => ({ hook: n + 1, group: 9 }));
    const found = evaluateServer({ ...answer, loops }, parts);
    expect(found).toHaveLength(6);
    expect(found[0]).toMatchObject({
      level: 'warning',
      found: 'hook 1 of group 9 looks like a loop: each delivery is followed by a post within 2 s',
      todo: expect.stringMatching(/klatch-hops.*"skip": \["webhook"\]/),
    });
    expect(found[5]).toMatchObject({ found: '2 more hooks likewise' });
  });

  test('has not read what was written into the configuration after its start', () => {
    const startedAt = new Date(0);
    const [found] = evaluateServer({ ...answer, startedAt }, { ...parts, file: import.meta.filename });
    expect(found).toMatchObject({ level: 'warning', found: expect.stringContaining('was changed after') });
  });
});
