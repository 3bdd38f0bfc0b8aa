import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { GoogleVendor } from '../../../src/push/vendors/google.ts';
import type { PushNotification, PushOutcome } from '../../../src/push/vendors/vendor.ts';
import { FcmServer, fcmError, googleError } from '../fcm-server.ts';
import { createServiceAccount, note, times, type TestAccount } from '../keys.ts';

let account: TestAccount;
let other: TestAccount;
let server: FcmServer;
const closing: (() => Promise<void>)[] = [];

beforeAll(() => {
  account = createServiceAccount('klatch-test');
  other = createServiceAccount('klatch-other');
});
beforeEach(async () => {
  server = await FcmServer.start([account, other]);
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await server.stop();
});

interface Made {
  readonly timeoutMs?: number;
  readonly now?: () => number;
  readonly keys?: readonly TestAccount[];
  readonly endpoint?: string;
}

function vendor({ timeoutMs = 5_000, now, keys = [account], endpoint = server.endpoint }: Made = {}): GoogleVendor {
  const made = new GoogleVendor(
    {
      keys: keys.map(({ projectId, json }) => ({ projectId, key: json })),
      googlePushEndpoint: endpoint,
      tokenEndpoint: server.tokenEndpoint,
    },
    { timeoutMs, maxInFlight: 100, userAgent: 'Klatch/0', ...(now === undefined ? {} : { now }) },
  );
  closing.push(() => made.stop());
  return made;
}

const target = { token: 'device-1', app: null };
const send = (to: GoogleVendor, changes: Partial<PushNotification> = {}): Promise<PushOutcome> =>
  to.send(target, note(changes));
const answering = ([status, body]: readonly [number, string], headers = {}): void => {
  server.script = (_push, res) => {
    res.writeHead(status, headers).end(body);
    return true;
  };
};

describe('the driver of Firebase Cloud Messaging', () => {
  test('sends what a phone shows, and what its app needs', async () => {
    expect(await send(vendor(), { urgent: true })).toEqual({ outcome: 'delivered' });
    const [push] = server.pushes;
    expect(push!.project).toBe('klatch-test');
    expect(push!.message).toMatchObject({
      token: 'device-1',
      notification: { title: 'Lunch', body: 'Anna: soup today' },
      data: { conversation: '7', first_seq: '3', last_seq: '4', unread: '2' },
      android: { collapse_key: 'c7', priority: 'HIGH', notification: { tag: 'c7', notification_count: 2 } },
    });
    expect(push!.message.android.ttl).toMatch(/^3(?:600|59\d)s$/);
  });

  test('sends no text where there is none to be seen, and is no alarm then', async () => {
    await send(vendor(), { text: null, accountUnreadCount: null });
    const { notification, android, data } = server.pushes[0]!.message;
    expect(notification).toEqual({ title: 'Lunch' });
    expect(android.priority).toBe('NORMAL');
    expect(data).not.toHaveProperty('unread');
  });

  test('cuts a text that is too long for a message', async () => {
    expect(await send(vendor(), { text: '👩‍👩‍👧‍👦'.repeat(2_000) })).toEqual({ outcome: 'delivered' });
    const { notification, data } = server.pushes[0]!.message;
    expect(Buffer.byteLength(JSON.stringify({ notification, data }))).toBeLessThanOrEqual(4_000);
    expect(notification.body).toMatch(/^(?:👩‍👩‍👧‍👦)+…$/u);
  });

  test('asks for one token at a time, and keeps it', async () => {
    const to = vendor();
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => send(to)));
    expect(outcomes.every(({ outcome }) => outcome === 'delivered')).toBe(true);
    expect(server.asked.value).toBe(1);
    expect(server.assertions[0]).toMatchObject({ iss: account.clientEmail, aud: server.tokenEndpoint });
  });

  test('renews a token before its end while the old one still serves', async () => {
    let nowMs = 0;
    const to = vendor({ now: () => nowMs });
    await send(to);
    nowMs = 3_300_000 - 1;
    await send(to);
    expect(server.asked.value).toBe(1);
    nowMs = 3_300_000;
    server.tokenScript = (res) => {
      setImmediate(() => res.destroy());
      return true;
    };
    expect(await send(to)).toEqual({ outcome: 'delivered' });
    await server.asked.reached(2);
    server.tokenScript = () => false;
    nowMs = 3_600_000;
    expect(await send(to)).toEqual({ outcome: 'delivered' });
    expect(server.assertions).toHaveLength(2);
  });

  test('gets another token once where one was taken back', async () => {
    const to = vendor();
    await send(to);
    server.revokeTokens();
    expect(await Promise.all([send(to), send(to), send(to)])).toEqual(times(3, { outcome: 'delivered' }));
    expect(server.asked.value).toBe(2);
    answering(googleError(401, 'UNAUTHENTICATED'));
    expect(await send(to)).toMatchObject({ outcome: 'failed', category: 'key', vendorWide: true });
    expect(server.asked.value).toBe(3);
  });

  test('keeps its token where Google misses the key of somebody else, and sends once', async () => {
    const to = vendor();
    answering(fcmError(401, 'UNAUTHENTICATED', 'THIRD_PARTY_AUTH_ERROR'));
    for (let n = 0; n < 5; n += 1) expect(await send(to)).toMatchObject({ outcome: 'refused' });
    expect(server.asked.value).toBe(1);
    expect(server.pushes).toHaveLength(5);
  });

  test('asks for the next token after a rest where that failed, while the old one serves', async () => {
    let nowMs = 0;
    const to = vendor({ now: () => nowMs });
    await send(to);
    nowMs = 3_300_000;
    server.tokenScript = (res) => res.writeHead(503).end() === res;
    for (let n = 0; n < 5; n += 1) {
      expect(await send(to)).toEqual({ outcome: 'delivered' });
      await server.asked.reached(2);
    }
    nowMs += 5_000;
    for (let n = 0; n < 5; n += 1) expect(await send(to)).toEqual({ outcome: 'delivered' });
    expect(server.asked.value).toBe(2);
    server.tokenScript = () => false;
    nowMs = 3_600_000;
    expect(await send(to)).toEqual({ outcome: 'delivered' });
    expect(server.assertions).toHaveLength(2);
  });

  test('sends to the project of the device, whose key is no matter of the others', async () => {
    const to = vendor({ keys: [account, other] });
    await to.send({ token: 'device-2', app: 'klatch-other' }, note());
    await to.send({ token: 'device-1', app: null }, note());
    expect(server.pushes.map(({ project }) => project)).toEqual(['klatch-other', 'klatch-test']);
    expect(await to.send({ token: 'device-3', app: 'unknown' }, note())).toEqual({
      outcome: 'refused',
      category: 'no key',
      code: null,
    });
    answering(googleError(403, 'PERMISSION_DENIED'));
    expect(await send(to)).toMatchObject({ outcome: 'failed', category: 'key', vendorWide: false });
  });

  test('says in a sentence what is wrong with its key, and sends nothing', async () => {
    const to = vendor({ keys: [{ ...account, projectId: 'elsewhere' }] });
    expect(to.problem).toBe('the JSON is of klatch-test, not of elsewhere');
    expect(await send(to)).toMatchObject({ outcome: 'refused', category: 'no key' });
    expect(server.asked.value).toBe(0);
  });
});

const tokenField = {
  '@type': 'type.googleapis.com/google.rpc.BadRequest',
  fieldViolations: [{ field: 'message.token' }],
};
const bodyField = {
  '@type': 'type.googleapis.com/google.rpc.BadRequest',
  fieldViolations: [{ field: 'message.data' }],
};
const deviceQuota = { violations: [{ subject: 'device', description: 'Device message rate exceeded' }] };

describe('an answer of Google', () => {
  const once = { retryAfterMs: null, vendorWide: false };
  const wide = { retryAfterMs: null, vendorWide: true };
  test.each<[string, readonly [number, string], object]>([
    ['a dead token', fcmError(404, 'NOT_FOUND', 'UNREGISTERED'), { outcome: 'unregistered', category: 'unregistered' }],
    ['something it does not know', googleError(404, 'NOT_FOUND'), { outcome: 'refused', category: 'unregistered' }],
    [
      'a token that is none',
      googleError(400, 'INVALID_ARGUMENT', [tokenField]),
      { outcome: 'unregistered', category: 'token' },
    ],
    ['a message it does not take', googleError(400, 'INVALID_ARGUMENT', [bodyField]), { outcome: 'refused' }],
    ['another project', fcmError(403, 'PERMISSION_DENIED', 'SENDER_ID_MISMATCH'), { outcome: 'refused' }],
    ['the key of somebody else', fcmError(401, 'UNAUTHENTICATED', 'THIRD_PARTY_AUTH_ERROR'), { outcome: 'refused' }],
    ['a key without rights', googleError(403, 'PERMISSION_DENIED'), { category: 'key', ...wide }],
    ['quota', fcmError(429, 'RESOURCE_EXHAUSTED', 'QUOTA_EXCEEDED'), { retryAfterMs: 60_000, vendorWide: true }],
    [
      'quota of a device',
      googleError(429, 'RESOURCE_EXHAUSTED', [deviceQuota]),
      { category: 'quota', vendorWide: false },
    ],
    ['away', fcmError(503, 'UNAVAILABLE', 'UNAVAILABLE'), { outcome: 'failed', category: 'status', ...wide }],
    ['broken', fcmError(500, 'INTERNAL', 'INTERNAL'), { outcome: 'failed', category: 'status', ...once }],
    ['a 404 of somebody else', [404, '<html>'], { outcome: 'failed', category: 'answer', ...wide }],
    ['a redirect', [302, ''], { outcome: 'failed', category: 'answer', ...wide }],
    ['no JSON', [200, 'hello'], { outcome: 'failed', category: 'answer', ...wide }],
    ['another JSON', [200, '{"error":null,"name":7}'], { outcome: 'failed', category: 'answer', ...wide }],
    ['a list', [400, '[{"error":{"status":"INVALID_ARGUMENT"}}]'], { outcome: 'failed', category: 'answer', ...wide }],
    ['details that are none', [404, '{"error":{"status":5,"details":[null,{"errorCode":9}]}}'], { category: 'answer' }],
  ])('%s', async (_name, answer, expected) => {
    answering(answer);
    expect(await send(vendor())).toMatchObject({ code: answer[0], ...expected });
  });

  test('that names a time is waited for, an hour at most', async () => {
    const to = vendor();
    answering(fcmError(503, 'UNAVAILABLE', 'UNAVAILABLE'), { 'retry-after': '120' });
    expect(await send(to)).toMatchObject({ retryAfterMs: 120_000, vendorWide: true });
    answering(fcmError(429, 'RESOURCE_EXHAUSTED', 'QUOTA_EXCEEDED'), { 'retry-after': '999999' });
    expect(await send(to)).toMatchObject({ retryAfterMs: 3_600_000 });
  });

  test('that never ends is not read to its end', async () => {
    server.script = (_push, res) => {
      res.writeHead(200);
      const more = (): void => void (res.destroyed || res.write('x'.repeat(65_536), more));
      more();
      return true;
    };
    expect(await send(vendor())).toMatchObject({ outcome: 'failed', category: 'answer', code: 200 });
  });
});

describe('without an answer of Google', () => {
  test('a push fails when its time is up', async () => {
    server.script = () => true;
    expect(await send(vendor({ timeoutMs: 150 }))).toMatchObject({ category: 'timeout', vendorWide: true });
  });

  test('as it does where the token does not come', async () => {
    server.tokenScript = () => true;
    expect(await send(vendor({ timeoutMs: 150 }))).toMatchObject({ category: 'timeout', vendorWide: true });
    expect(server.pushes).toHaveLength(0);
  });

  test('a connection that is closed in between is repeated once', async () => {
    let dropped = 0;
    server.script = (_push, res) => {
      if (dropped > 0) return false;
      dropped += 1;
      res.destroy();
      return true;
    };
    expect(await send(vendor())).toEqual({ outcome: 'delivered' });
    server.script = (_push, res) => res.destroy() !== null;
    expect(await send(vendor())).toMatchObject({ outcome: 'failed', category: 'connection', vendorWide: true });
    expect(server.pushes).toHaveLength(4);
  });

  test('a service that is away is told as such', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    const to = vendor({ endpoint: `http://127.0.0.1:${port}` });
    expect(await send(to)).toMatchObject({ category: 'refused', vendorWide: true });
  });

  test.each<[string, number, string, object]>([
    ['the key was revoked', 400, '{"error":"invalid_grant"}', { category: 'key', code: 400, vendorWide: true }],
    ['it is no token', 200, '{"access_token":"a\\nb","expires_in":3600}', { category: 'answer', vendorWide: true }],
    ['it has no end', 200, '{"access_token":"ab"}', { category: 'answer', vendorWide: true }],
    ['it is no JSON', 200, 'ok', { category: 'answer', vendorWide: true }],
    ['the token endpoint is away', 502, '<html>', { category: 'status', code: 502, vendorWide: true }],
  ])('there is no token: %s', async (_name, status, body, expected) => {
    server.tokenScript = (res) => res.writeHead(status).end(body) === res;
    const to = vendor();
    expect(await send(to)).toMatchObject({ outcome: 'failed', ...expected });
    expect(server.pushes).toHaveLength(0);
    server.tokenScript = () => false;
    expect(await send(to)).toEqual({ outcome: 'delivered' });
  });

  test('a stop ends what is under way', async () => {
    server.script = () => true;
    const to = vendor();
    const sent = send(to);
    await server.arrived.reached(1);
    await to.stop();
    expect(await sent).toMatchObject({ outcome: 'failed' });
    expect(await send(to)).toMatchObject({ outcome: 'failed' });
  });
});
