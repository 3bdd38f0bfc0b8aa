import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { pushStatusLines, pushTestLines, type PushStatus } from '../../../src/cli/health/push-lines.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { Workspace } from '../program.ts';

const IDLE: PushStatus['vendors'][number] = {
  kind: 'google',
  configured: true,
  problem: null,
  devices: 3,
  pending: 0,
  due: 0,
  oldest_pending_ms: null,
  in_flight: 0,
  sent: 12,
  failed: 0,
  removed: 0,
  refused: 0,
  expired: 0,
  last_error: null,
  rests_until: null,
};

describe('the lines of push status', () => {
  test('have a row for each vendor, and beneath it what is wrong', () => {
    const lines = pushStatusLines({
      content: 'full',
      vendors: [
        IDLE,
        {
          ...IDLE,
          kind: 'apple',
          pending: 40,
          oldest_pending_ms: 7_500_000,
          failed: 9,
          removed: 1,
          expired: 2,
          last_error: { category: 'status', code: 503, at: '2026-11-21T10:00:00.000Z' },
          rests_until: '2026-11-21T10:05:00.000Z',
        },
        { ...IDLE, kind: 'web', configured: false, devices: 2, sent: 0 },
      ],
      events: [
        {
          at: '2026-11-21T09:00:00.000Z',
          user: 'alice',
          kind: 'web',
          event: 'removed',
          category: 'unregistered',
          code: 410,
        },
      ],
    });
    expect(lines).toEqual([
      'A push says who wrote what (push.content = full).',
      '',
      'VENDOR  STATE           DEVICES  PENDING  OLDEST     IN FLIGHT  SENT  FAILED  GIVEN UP',
      'google  sends           3        0        -          0          12    0       0',
      'apple   rests           3        40       2 h 5 min  0          12    9       3',
      'web     not configured  2        0        -          0          0     0       0',
      '  apple: nothing is sent until 2026-11-21T10:05:00.000Z',
      '  apple: the last error, at 2026-11-21T10:00:00.000Z: status 503',
      '  web: devices are registered, and nothing is configured for them',
      '',
      'AT                        USER   VENDOR  EVENT    WHY',
      '2026-11-21T09:00:00.000Z  alice  web     removed  unregistered 410',
    ]);
  });

  test('say what is not known while the database is away, and why a vendor cannot send', () => {
    const away = { ...IDLE, problem: '/etc/klatch/key.json\n does not exist', devices: null, pending: null };
    const lines = pushStatusLines({ content: 'none', vendors: [away], events: null });
    expect(lines[3]).toMatch(/^google {2}cannot send {2}- {8}- {8}-/);
    expect(lines).toContain('  google: /etc/klatch/key.json  does not exist');
    expect(lines.at(-1)).toMatch(/^The database is away/);
  });
});

test('the lines of push test have what became of each device', () => {
  const device = { device: 7, kind: 'google', label: null, outcome: 'delivered', category: null, code: null } as const;
  const gone = {
    ...device,
    device: 8,
    label: 'Old\u001b[31m',
    outcome: 'unregistered',
    category: 'unregistered',
  } as const;
  expect(pushTestLines({ user: 'alice', id: 1, devices: [device, { ...gone, code: 404 }] })).toEqual([
    'DEVICE  VENDOR  OUTCOME       WHY               LABEL',
    '7       google  delivered     -                 -',
    '8       google  unregistered  unregistered 404  Old [31m',
    '',
    'What is gone was removed: the app registers it again when alice opens it.',
  ]);
});

describe('klatch push', () => {
  let database: TestDatabase;
  let workspace: Workspace;
  beforeAll(async () => {
    database = await createTestDatabase();
    workspace = await Workspace.create();
    await workspace.configure(database.target);
    await workspace.serve();
    await workspace.run(['user', 'create', 'alice']);
  });
  afterAll(async () => {
    await workspace.remove();
    await database.drop();
  });

  test('status shows that nothing is configured, for people and for scripts', async () => {
    const { code, stdout, stderr } = await workspace.run(['push', 'status']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^A push says who wrote what[^]*\ngoogle +not configured +0 +/);
    const json = await workspace.run(['push', 'status', '--events', '5', '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      content: 'full',
      vendors: [{ kind: 'google' }, {}, {}],
      events: [],
    });
    expect(await workspace.run(['push', 'status', '--events', '101'])).toMatchObject({ code: 64 });
  });

  test('test of somebody without devices, or of nobody, ends with 1 and says so', async () => {
    expect(await workspace.run(['push', 'test', 'alice'])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'klatch: alice has no device that is told of messages: that person turns on notifications in a client\n',
    });
    const json = await workspace.run(['push', 'test', 'alice', '--json']);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({ user: 'alice', devices: [] });
    expect(await workspace.run(['push', 'test', 'nobody'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no user with the nick nobody'),
    });
    expect(await workspace.run(['push', 'test'])).toMatchObject({ code: 64 });
  });
});
