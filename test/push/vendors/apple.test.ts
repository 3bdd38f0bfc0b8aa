import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { constants } from 'node:http2';
import { createServer, type AddressInfo } from 'node:net';
import { AppleVendor } from '../../../src/push/vendors/apple.ts';
import type { PushNotification, PushOutcome } from '../../../src/push/vendors/vendor.ts';
import { Folder } from '../../config/folder.ts';
import { freePort } from '../../support/ports.ts';
import { ApnsServer, type ApnsOptions } from '../apns-server.ts';
import { createAppleKey, createTls, note, times, type TestAppleKey, type TestTls } from '../keys.ts';

const TOPICS = ['org.example.chat', 'org.example.work'];
let tls: TestTls;
let key: TestAppleKey;
let server: ApnsServer;
let folder: Folder;
const closing: (() => Promise<void>)[] = [];

beforeAll(() => {
  tls = createTls();
  key = createAppleKey();
});
beforeEach(async () => {
  folder = new Folder();
  folder.write('key.p8', key.p8);
  folder.write('ca.pem', tls.authority);
  await serve({});
});
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
  folder[Symbol.dispose]();
});

async function serve(changes: Partial<ApnsOptions>): Promise<void> {
  const started = await ApnsServer.start({ tls, keys: [key], topics: TOPICS, ...changes });
  closing.push(() => started.stop());
  server = started;
}

interface Made {
  readonly timeoutMs?: number;
  readonly now?: () => number;
  readonly endpoint?: string;
  readonly authority?: string | null;
  readonly bundles?: readonly string[];
}

function vendor({
  timeoutMs = 5_000,
  now,
  endpoint,
  authority,
  bundles = ['org.example.chat'],
}: Made = {}): AppleVendor {
  const { keyId, teamId } = key;
  const path = `${folder.path}/key.p8`;
  const made = new AppleVendor(
    {
      keys: bundles.map((bundleId) => ({ keyId, teamId, path, bundleId, sandbox: false })),
      applePushEndpoint: endpoint ?? server.endpoint,
      extraAppleCaFile: authority === undefined ? `${folder.path}/ca.pem` : authority,
    },
    { timeoutMs, maxInFlight: 100, userAgent: 'Klatch/0', ...(now === undefined ? {} : { now }) },
  );
  closing.push(() => made.stop());
  return made;
}

const target = { token: 'ab12'.repeat(16), app: null };
const send = (to: AppleVendor, changes: Partial<PushNotification> = {}): Promise<PushOutcome> =>
  to.send(target, note(changes));
const DELIVERED = { outcome: 'delivered' } as const;

describe("the driver of Apple's push service", () => {
  test('sends what a phone shows, and what its app needs', async () => {
    const expiresAt = new Date(1_900_000_000_000);
    expect(await send(vendor(), { urgent: true, expiresAt })).toEqual(DELIVERED);
    const [push] = server.pushes;
    expect(push!.token).toBe(target.token);
    expect(push!.headers).toMatchObject({
      'apns-topic': 'org.example.chat',
      'apns-push-type': 'alert',
      'apns-priority': '10',
      'apns-expiration': '1900000000',
      'apns-collapse-id': 'c7',
      'user-agent': 'Klatch/0',
    });
    expect(push!.body).toEqual({
      aps: {
        alert: { title: 'Lunch', body: 'Anna: soup today' },
        'thread-id': 'c7',
        'mutable-content': 1,
        badge: 2,
        sound: 'default',
      },
      conversation: 7,
      first_seq: 3,
      last_seq: 4,
    });
  });

  test('makes no sound for what is not urgent, and counts nothing that was not counted', async () => {
    await send(vendor(), { text: null, accountUnreadCount: null });
    expect(server.pushes[0]!.headers['apns-priority']).toBe('5');
    expect(server.pushes[0]!.body.aps).toEqual({ alert: { title: 'Lunch' }, 'thread-id': 'c7', 'mutable-content': 1 });
  });

  test.each([
    ['ASCII', 'a'],
    ['quotation marks, which take two bytes', '"'],
    ['control characters, which take six', '\u0001'],
    ['Chinese', '漢'],
    ['families', '👩‍👩‍👧‍👦'],
    ['flags', '🇩🇪'],
    ['half a pair', '\ud83d'],
    ['marks without an end', 'e\u0301\u0301\u0301'],
  ])('cuts a long text to the bound of a payload: %s', async (_name, part) => {
    const to = vendor();
    for (const count of [600, 4_000, 40_000]) expect(await send(to, { text: part.repeat(count) })).toEqual(DELIVERED);
    for (const { raw, body } of server.pushes) {
      expect(raw.length).toBeLessThanOrEqual(4_096);
      const { body: text } = body.aps.alert as { body: string };
      expect(text.isWellFormed()).toBe(true);
      if (text.endsWith('…')) expect(raw.length).toBeGreaterThan(4_096 - 40);
    }
    const whole = part.toWellFormed();
    const longest = (server.pushes.at(-1)!.body.aps.alert.body as string).slice(0, -1);
    expect(longest).toBe(whole.repeat(longest.length / whole.length));
  });

  test('sends many at once on one connection, with one token', async () => {
    const to = vendor({ bundles: TOPICS });
    const both = [target, { ...target, app: 'org.example.work' }];
    const sent = Array.from({ length: 300 }, (_, n) => to.send(both[n % 2]!, note()));
    expect(await Promise.all(sent)).toEqual(times(300, DELIVERED));
    expect(server.connections).toBe(1);
    expect(server.tokens.size).toBe(1);
    expect(new Set(server.pushes.map(({ headers }) => headers['apns-topic']))).toEqual(new Set(TOPICS));
  });

  test('sends no more at once than the other side takes, on few connections', async () => {
    await serve({ maxStreams: 3 });
    const to = vendor();
    const sent = Array.from({ length: 100 }, () => send(to));
    expect(await Promise.all(sent)).toEqual(times(100, DELIVERED));
    expect(server.connections).toBeLessThanOrEqual(4);
    expect(server.mostAtOnce).toBeLessThanOrEqual(12);
  });

  test('makes a token anew after 40 minutes', async () => {
    let nowMs = 0;
    const to = vendor({ now: () => nowMs });
    await send(to);
    nowMs = 40 * 60_000 - 1;
    await send(to);
    expect(server.tokens.size).toBe(1);
    nowMs = 40 * 60_000;
    await send(to);
    expect(server.tokens.size).toBe(2);
  });

  test('makes a token anew that is said to have ended, but never sooner than after 20 minutes', async () => {
    let nowMs = 0;
    const to = vendor({ now: () => nowMs });
    const ended = new Set<string>();
    server.script = ({ headers }) => (ended.has(headers.authorization!) ? [403, 'ExpiredProviderToken'] : undefined);
    await send(to);
    ended.add(server.pushes[0]!.headers.authorization!);
    nowMs = 15 * 60_000;
    const expected = { outcome: 'failed', category: 'key', code: 403, retryAfterMs: 5 * 60_000, vendorWide: true };
    expect(await send(to)).toEqual(expected);
    nowMs = 20 * 60_000;
    expect(await Promise.all([send(to), send(to), send(to)])).toEqual(times(3, DELIVERED));
    expect(server.tokens.size).toBe(2);
  });

  test('asks nobody about a token that is none', async () => {
    const to = vendor();
    for (const token of ['', 'x', '../../x', 'ab 12'.repeat(8), 'ab'.repeat(300), 'ab'.repeat(32) + '\r\nx: y']) {
      expect(await to.send({ token, app: null }, note())).toEqual({
        outcome: 'unregistered',
        category: 'token',
        code: null,
      });
    }
    expect(await to.send({ ...target, app: 'org.example.none' }, note())).toMatchObject({ category: 'no key' });
    expect(server.connections).toBe(0);
  });

  test('says in a sentence what is wrong with its key, and sends nothing', async () => {
    folder.write('key.p8', createTls().key.replaceAll('PRIVATE KEY', 'ENCRYPTED PRIVATE KEY'));
    const to = vendor();
    expect(to.problem).toMatch(/key\.p8 is locked with a passphrase, which nobody could type at a start$/);
    expect(await send(to)).toMatchObject({ outcome: 'refused', category: 'no key' });
    expect(vendor({ authority: `${folder.path}/none.pem` }).problem).toMatch(/none\.pem does not exist$/);
  });
});

describe('an answer of Apple', () => {
  test.each<[number, string, object]>([
    [410, 'Unregistered', { outcome: 'unregistered', category: 'unregistered' }],
    [410, 'ExpiredToken', { outcome: 'unregistered', category: 'unregistered' }],
    [400, 'BadDeviceToken', { outcome: 'refused', category: 'token' }],
    [400, 'DeviceTokenNotForTopic', { outcome: 'refused', category: 'other app' }],
    [400, 'PayloadEmpty', { outcome: 'refused', category: 'request' }],
    [413, 'PayloadTooLarge', { outcome: 'refused', category: 'too large' }],
    [403, 'InvalidProviderToken', { outcome: 'failed', category: 'key', vendorWide: true }],
    [429, 'TooManyRequests', { outcome: 'failed', category: 'quota', retryAfterMs: 60_000, vendorWide: false }],
    [429, 'TooManyProviderTokenUpdates', { outcome: 'failed', category: 'key', vendorWide: true }],
    [500, 'InternalServerError', { outcome: 'failed', category: 'status', vendorWide: false }],
    [503, 'ServiceUnavailable', { outcome: 'failed', category: 'status', vendorWide: true }],
    [410, '', { outcome: 'failed', category: 'answer', vendorWide: true }],
    [404, 'BadPath', { outcome: 'failed', category: 'answer', vendorWide: true }],
    [302, '', { outcome: 'failed', category: 'answer', vendorWide: true }],
  ])('%i %s', async (status, reason, expected) => {
    server.script = () => [status, reason];
    expect(await send(vendor())).toMatchObject({ code: status, ...expected });
  });

  test('that names a time is waited for', async () => {
    server.script = (_push, stream) => {
      stream.respond({ ':status': 503, 'retry-after': '30' });
      stream.end('{"reason":"Shutdown"}');
      return true;
    };
    expect(await send(vendor())).toMatchObject({ code: 503, retryAfterMs: 30_000 });
  });

  test.each([
    ['no JSON', 'hello'],
    ['a list', '["Unregistered"]'],
    ['a reason that is none', '{"reason":{"a":1}}'],
  ])('that is garbage forgets no device: %s', async (_name, body) => {
    server.script = (_push, stream) => {
      stream.respond({ ':status': 410 });
      stream.end(body);
      return true;
    };
    expect(await send(vendor())).toMatchObject({ outcome: 'failed', category: 'answer' });
  });

  test('that never ends is not read to its end', async () => {
    server.script = (_push, stream) => {
      stream.respond({ ':status': 200 });
      const more = (): void => void (stream.destroyed || stream.write('x'.repeat(16_384), more));
      more();
      return true;
    };
    expect(await send(vendor())).toMatchObject({ outcome: 'failed', category: 'answer' });
  });
});

describe("Apple's connections", () => {
  test('that end are replaced, and nothing is lost by it', async () => {
    const to = vendor();
    expect(await send(to)).toEqual(DELIVERED);
    for (let round = 0; round < 3; round += 1) {
      const sent = Array.from({ length: 20 }, () => send(to));
      server.goAway();
      expect(await Promise.all(sent)).toEqual(times(20, DELIVERED));
    }
    expect(server.connections).toBeGreaterThan(1);
  });

  test('that end with an error, or without a word, take nothing with them', async () => {
    const to = vendor();
    await send(to);
    let left = 2;
    server.script = () => {
      if (left === 0) return undefined;
      left -= 1;
      if (left === 1) server.goAway(constants.NGHTTP2_INTERNAL_ERROR);
      else server.drop();
      return true;
    };
    expect(await send(to)).toEqual(DELIVERED);
    expect(left).toBe(0);
  });

  test('that always end fail, and are not tried for ever', async () => {
    server.script = () => {
      server.drop();
      return true;
    };
    expect(await send(vendor())).toMatchObject({ outcome: 'failed', category: 'connection', vendorWide: true });
    expect(server.connections).toBe(3);
  });

  test('a stream that is refused is sent again', async () => {
    let refusals = 2;
    server.script = (_push, stream) => {
      if (refusals === 0) return undefined;
      refusals -= 1;
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return true;
    };
    expect(await send(vendor())).toEqual(DELIVERED);
  });

  test('one that hangs fails in time, and the next push takes another', async () => {
    const to = vendor({ timeoutMs: 2_500 });
    await send(to);
    server.script = ({ body }) => (body.aps.alert.title === 'hang' ? true : undefined);
    expect(await send(to, { title: 'hang' })).toMatchObject({ category: 'timeout', vendorWide: true });
    expect(await send(to)).toEqual(DELIVERED);
    expect(server.connections).toBe(2);
  });

  test('a service that takes the connection and says nothing fails in time', async () => {
    const mute = createServer((socket) => void socket.on('error', () => {}).resume());
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    closing.push(() => new Promise((resolve) => mute.close(() => resolve())));
    const endpoint = `https://127.0.0.1:${(mute.address() as AddressInfo).port}`;
    const to = vendor({ timeoutMs: 200, endpoint });
    const sent = await Promise.all([send(to), send(to)]);
    expect(sent).toEqual(times(2, expect.objectContaining({ category: 'timeout', vendorWide: true })));
    await to.stop();
  });

  test('a service that is away is told as such at once, and found when it is back', async () => {
    const port = await freePort();
    await server.stop();
    const to = vendor({ endpoint: `https://127.0.0.1:${port}` });
    const sent = await Promise.all([send(to), send(to), send(to)]);
    expect(sent).toEqual(times(3, expect.objectContaining({ category: 'refused', vendorWide: true })));
    await serve({ port });
    expect(await send(to)).toEqual(DELIVERED);
  });

  test('a certificate that nobody vouches for is not trusted', async () => {
    expect(await send(vendor({ authority: null }))).toMatchObject({ category: 'tls', vendorWide: true });
    expect(server.pushes).toHaveLength(0);
  });

  test('a stop ends what is under way', async () => {
    server.script = () => true;
    const to = vendor();
    const sent = send(to);
    await server.arrived.reached(1);
    await to.stop();
    expect(await sent).toMatchObject({ outcome: 'failed' });
    expect(await send(to)).toMatchObject({ outcome: 'failed', category: 'stopped' });
  });
});
