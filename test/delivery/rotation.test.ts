import { createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { Receiver, type Arrival } from '../support/receiver.ts';
import { TestKeys } from '../support/server-keys.ts';
import { postJson, readJson, TestServer, type TestGroup } from '../support/server.ts';

/** Signature verifiers of other projects, used as a receiver uses them. */
const VERIFIERS = [
  ['standardwebhooks', StandardWebhook],
  ['svix', SvixWebhook],
] as const;

describe.each(VERIFIERS)('the verifier of %s', (_name, Verifier) => {
  let server: TestServer;
  let receiver: Receiver;
  let group: TestGroup;
  let url: string;
  let first: string;

  beforeAll(async () => {
    server = await TestServer.start({ delivery: { retryDelaysMs: [50] } });
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    receiver = await Receiver.start();
    group = await server.createGroup();
    const { body } = await postJson(`${group.webhook}/reverse`, { url: receiver.url() });
    first = body.secret;
    url = `${group.webhook}/reverse/${body.id}`;
  });
  afterEach(() => receiver.stop());

  const accepts = (secret: string, { raw, headers }: Arrival): boolean => {
    try {
      // One of the verifiers returns nothing, so a signature counts as valid if there is no error.
      new Verifier(secret).verify(raw, headers as Record<string, string>);
      return true;
    } catch {
      return false;
    }
  };

  async function rotate(): Promise<string> {
    const request = { method: 'PATCH', body: '{"rotate_secret":true}' };
    return (await readJson(await fetch(url, request))).body.secret;
  }

  /** Posts a message, and resolves with its delivery. */
  async function deliver(): Promise<Arrival> {
    const count = receiver.arrivals.length + 1;
    await postJson(group.webhook, { text: `message ${count}` });
    return (await receiver.received(count)).at(-1)!;
  }

  async function ping(): Promise<Arrival> {
    await server.database.query((sql) => sql`update reverse_hook set pinged_at = null`);
    expect((await postJson(`${url}/ping`, {})).body).toMatchObject({ delivered: true });
    return receiver.arrivals.at(-1)!;
  }

  const entries = ({ headers }: Arrival): number => String(headers['webhook-signature']).split(' ').length;

  test('takes deliveries and pings before, during and after a rotation, by the secret that each receiver has', async () => {
    for (const arrival of [await deliver(), await ping()])
      expect([accepts(first, arrival), entries(arrival)]).toEqual([true, 1]);
    const second = await rotate();
    for (const arrival of [await deliver(), await ping()]) {
      expect([accepts(first, arrival), accepts(second, arrival), entries(arrival)]).toEqual([true, true, 2]);
    }
    // Makes the state of 24 hours after the rotation. The lane reads the row of the hook again after any change of the
    // hook.
    await server.database.query((sql) => sql`update reverse_hook set old_secret_until = now()`);
    for (const paused of [true, false]) await fetch(url, { method: 'PATCH', body: JSON.stringify({ paused }) });
    for (const arrival of [await deliver(), await ping()]) {
      expect([accepts(first, arrival), accepts(second, arrival), entries(arrival)]).toEqual([false, true, 1]);
    }
  });

  test('takes no more than two secrets, however often they are replaced', async () => {
    await deliver();
    const [second, third] = [await rotate(), await rotate()];
    for (const arrival of [await deliver(), await ping()]) {
      expect([first, second, third].map((secret) => accepts(secret, arrival))).toEqual([false, true, true]);
      expect(entries(arrival)).toBe(2);
    }
  });

  test('takes neither a changed body nor another id', async () => {
    const arrival = await deliver();
    expect(accepts(first, { ...arrival, raw: arrival.raw.replace('message', 'massage') })).toBe(false);
    expect(accepts(first, { ...arrival, headers: { ...arrival.headers, 'webhook-id': '1_1_1' } })).toBe(false);
  });
});

describe('a hook that asks for the signatures of the server too', () => {
  test('gets both secrets and the key during a rotation, in deliveries and in pings', async () => {
    using keys = new TestKeys(1);
    const server = await TestServer.start({ serverSigningKeys: keys.pairs });
    const receiver = await Receiver.start();
    try {
      const group = await server.createGroup();
      const { body } = await postJson(`${group.webhook}/reverse`, { url: receiver.url(), signature: 'both' });
      const url = `${group.webhook}/reverse/${body.id}`;
      const { secret } = (await readJson(await fetch(url, { method: 'PATCH', body: '{"rotate_secret":true}' }))).body;
      await postJson(group.webhook, { text: 'x' });
      await receiver.received(1);
      await postJson(`${url}/ping`, {});
      const publicKey = createPublicKey(readFileSync(keys.pairs[0]!.public));
      for (const { raw, headers } of await receiver.received(2)) {
        const given = headers as Record<string, string>;
        const signatures = given['webhook-signature']!.split(' ');
        expect(signatures.map((entry) => entry.split(',')[0])).toEqual(['v1', 'v1', 'v1a']);
        for (const each of [body.secret, secret]) expect(new StandardWebhook(each).verify(raw, given)).toBeTruthy();
        const signed = Buffer.from(`${given['webhook-id']}.${given['webhook-timestamp']}.${raw}`);
        const signature = Buffer.from(signatures[2]!.slice('v1a,'.length), 'base64');
        expect(verify(null, signed, publicKey, signature)).toBe(true);
      }
    } finally {
      await server.stop();
      await receiver.stop();
    }
  });
});

test('a ping of a hook that asks for a signature which the server cannot make is not sent', async () => {
  const server = await TestServer.start();
  const receiver = await Receiver.start();
  try {
    const group = await server.createGroup();
    const { body } = await postJson(`${group.webhook}/reverse`, { url: receiver.url() });
    await server.database.query((sql) => sql`update reverse_hook set signature = 'v1a'`);
    const answer = await postJson(`${group.webhook}/reverse/${body.id}/ping`, {});
    expect(answer.body).toEqual({ delivered: false, category: 'signature', code: null, duration_ms: 0 });
    expect(receiver.arrivals).toEqual([]);
  } finally {
    await server.stop();
    await receiver.stop();
  }
});
