import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { silentLog, type Log } from '../../src/log.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver, type Arrival } from '../support/receiver.ts';
import { postJson, readJson, TestServer, type TestGroup } from '../support/server.ts';
import { TestKeys } from '../support/server-keys.ts';

const HOUR_MS = 3_600_000;
const keys = new TestKeys(4);
const receivers: Receiver[] = [];

afterEach(async () => {
  for (const receiver of receivers.splice(0)) await receiver.stop();
});
afterAll(() => keys[Symbol.dispose]());

async function receive(): Promise<Receiver> {
  const receiver = await Receiver.start();
  receivers.push(receiver);
  return receiver;
}

interface Hook {
  readonly id: number;
  readonly secret: string;
  readonly url: string;
}

async function register(group: TestGroup, url: string, signature: string): Promise<Hook> {
  const { status, body } = await postJson(`${group.webhook}/reverse`, { url, signature });
  expect(status).toBe(201);
  return { ...body, url: `${group.webhook}/reverse/${body.id}` };
}

const check = async (hook: Hook) => (await readJson(await fetch(hook.url))).body;

const header = (arrival: Arrival, name: string): string => String(arrival.headers[name]);

/** The entries of the signature header as [version, base64]. */
function entries(arrival: Arrival): [string, string][] {
  return header(arrival, 'webhook-signature')
    .split(' ')
    .map((entry) => [entry.slice(0, entry.indexOf(',')), entry.slice(entry.indexOf(',') + 1)]);
}

function signedText(arrival: Arrival): string {
  return `${header(arrival, 'webhook-id')}.${header(arrival, 'webhook-timestamp')}.${arrival.raw}`;
}

describe('a hook that asks for server keys', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start({ serverSigningKeys: keys.pairs });
  });
  afterAll(() => server.stop());

  async function deliver(signature: string): Promise<{ hook: Hook; arrival: Arrival }> {
    const group = await server.createGroup();
    const receiver = await receive();
    const hook = await register(group, receiver.url(), signature);
    await postJson(group.webhook, { text: 'größer als 😀' });
    const [arrival] = await receiver.received(1);
    return { hook, arrival: arrival! };
  }

  test('with v1a gets one Ed25519 signature of each of the first three keys, and no other', async () => {
    const { hook, arrival } = await deliver('v1a');
    const signatures = entries(arrival);
    expect(signatures.map(([version]) => version)).toEqual(['v1a', 'v1a', 'v1a']);
    for (const [place, [, signature]] of signatures.entries()) {
      expect(Buffer.from(signature, 'base64')).toHaveLength(64);
      expect(keys.verifies(place, signedText(arrival), signature)).toBe(true);
      expect(keys.verifies(3, signedText(arrival), signature)).toBe(false);
      expect(keys.verifies(place, `${signedText(arrival)} `, signature)).toBe(false);
    }
    const webhook = new Webhook(hook.secret);
    expect(() => webhook.verify(arrival.raw, arrival.headers as Record<string, string>)).toThrow();
  });

  test('with both gets the signature of its secret first, and then those of the keys', async () => {
    const { hook, arrival } = await deliver('both');
    const signatures = entries(arrival);
    expect(signatures.map(([version]) => version)).toEqual(['v1', 'v1a', 'v1a', 'v1a']);
    for (const [place, [, signature]] of signatures.slice(1).entries()) {
      expect(keys.verifies(place, signedText(arrival), signature)).toBe(true);
    }
    const webhook = new Webhook(hook.secret);
    expect(webhook.verify(arrival.raw, arrival.headers as Record<string, string>)).toEqual(arrival.body);
  });

  test('is not what a hook is that asks for v1: it gets the signature of its secret alone', async () => {
    const { arrival } = await deliver('v1');
    expect(entries(arrival).map(([version]) => version)).toEqual(['v1']);
  });
});

describe('without server keys', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  test.each(['v1a', 'both'])(
    'a registration that asks for %s is 400 and says what the administrator does',
    async (signature) => {
      const server = await TestServer.start({}, { database });
      try {
        const group = await server.createGroup();
        const answer = await postJson(`${group.webhook}/reverse`, { url: 'https://example.com/', signature });
        expect(answer.status).toBe(400);
        expect(answer.body.message).toMatch(/^signature: .*"klatch keys generate".*modules\.security\.server-keys$/);
        expect((await readJson(await fetch(`${group.webhook}/reverse`))).body).toEqual([]);
      } finally {
        await server.stop();
      }
    },
  );

  test('nothing is sent to hooks that were promised them, others get theirs, and the first start with keys sends all', async () => {
    const receiver = await receive();
    const paths = ['/v1a', '/both', '/v1'];
    let server = await TestServer.start({ serverSigningKeys: keys.pairs.slice(0, 1) }, { database });
    const group = await server.createGroup();
    const hooks: Hook[] = [];
    for (const path of paths) hooks.push(await register(group, receiver.url(path), path.slice(1)));
    await server.stop();

    const errors: [string, unknown][] = [];
    const log = recording(errors);
    server = await TestServer.start({ delivery: { retryDelaysMs: [HOUR_MS] } }, { database, log });
    try {
      expect(errors).toEqual([[expect.stringMatching(/^hooks ask for v1a/), expect.objectContaining({ hooks: 2 })]]);
      const at = (hook: Hook): Hook => ({ ...hook, url: hook.url.replace(/^http:\/\/[^/]+/, server.url) });
      await postJson(group.webhook.replace(/^http:\/\/[^/]+/, server.url), { text: 'one' });
      await receiver.received(1);
      for (const hook of hooks.slice(0, 2)) {
        const health = await eventually(
          () => check(at(hook)),
          ({ state }) => state === 'failing',
        );
        expect(health).toMatchObject({ pending: 1, last_error: { category: 'signature', code: null } });
        expect(Date.parse(health.next_attempt_at)).toBeGreaterThan(Date.now() + HOUR_MS / 2);
      }
      expect(receiver.arrivals.map((arrival) => arrival.path)).toEqual(['/v1']);
    } finally {
      await server.stop();
    }

    server = await TestServer.start({ serverSigningKeys: keys.pairs.slice(0, 1) }, { database });
    try {
      // The messages of the two waiting hooks now arrive at once, although their next attempts were due in an hour.
      await receiver.received(3);
      const late = receiver.arrivals.slice(1);
      expect(late.map((arrival) => arrival.path).sort()).toEqual(['/both', '/v1a']);
      for (const arrival of late) {
        expect(keys.verifies(0, signedText(arrival), entries(arrival).at(-1)![1])).toBe(true);
      }
    } finally {
      await server.stop();
    }
  });
});

/** A log that records its errors. */
function recording(errors: [string, unknown][]): Log {
  const log: Log = { ...silentLog(), error: (event, fields) => errors.push([event, fields]), child: () => log };
  return log;
}
