import { afterEach, describe, expect, test } from '@jest/globals';
import { LiveFixture } from './fixture.ts';

let live: LiveFixture;
afterEach(() => live.stop());

const call = (method: string, params: unknown): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
const keys = (count: number, name: (n: number) => string): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [name(n), n]));

describe.each([
  ['ws', 0],
  ['ws of an endpoint', 1],
  ['tcp', 2],
] as const)('over %s', (_name, index) => {
  test('a frame has at most 16 KiB before signing in, and live.max-frame-size after it', async () => {
    live = await LiveFixture.start();
    const unauthenticated = await live.connect(live.urls[index]);
    const frame = call('live.ping', { x: 'x'.repeat(16 * 1_024 - 67) });
    expect(frame.length).toBeLessThanOrEqual(16 * 1_024);
    unauthenticated.send(frame);
    expect(await unauthenticated.responseTo(1)).toMatchObject({ error: { code: -32602 } });
    unauthenticated.send(`${frame}${' '.repeat(100)}`);
    expect(await unauthenticated.ended()).toBe(4004);

    const client = await live.signIn(live.urls[index]);
    expect(await client.request('live.ping', { x: 'x'.repeat(500_000) })).toMatchObject({ error: { code: -32602 } });
    client.send(call('live.ping', { x: 'x'.repeat(1_100_000) }));
    expect(await client.ended()).toBe(4004);
  });

  test('a smaller live.max-frame-size holds before signing in as well', async () => {
    live = await LiveFixture.start({ live: { maxFrameBytes: 4 * 1_024 } });
    const unauthenticated = await live.connect(live.urls[index]);
    unauthenticated.send(call('live.ping', { x: 'x'.repeat(5_000) }));
    expect(await unauthenticated.ended()).toBe(4004);
  });

  test.each([
    ['values', { x: Array.from({ length: 60 }, () => 1) }],
    ['keys', keys(60, (n) => `k${n}`)],
    ['levels', { x: [[[[[[[[]]]]]]]] }],
  ])('a frame with many %s ends a connection that has not signed in', async (_what, params) => {
    live = await LiveFixture.start();
    const unauthenticated = await live.connect(live.urls[index]);
    unauthenticated.send(call('live.ping', params));
    expect(await unauthenticated.ended()).toBe(4005);
  });

  test('an operation of a session takes 500 values here too', async () => {
    live = await LiveFixture.start();
    const client = await live.signIn(live.urls[index]);
    for (const method of ['live.foreground', 'conversations.list', 'messages.send']) {
      expect(
        await client.request(
          method,
          keys(600, (n) => `k${n}`),
        ),
      ).toMatchObject({
        error: { code: -32602, message: 'input: holds more than 500 values' },
      });
    }
    client.send(
      call(
        'conversations.list',
        keys(1_100, (n) => `k${n}`),
      ),
    );
    expect(await client.ended()).toBe(4005);
  });

  test('live.subscribe takes 20,000 conversations, and tells the first mistake of as many', async () => {
    live = await LiveFixture.start();
    const client = await live.signIn(live.urls[index]);
    const wrong = await client.request('live.subscribe', { since: keys(900, (n) => `k${n}`) });
    expect(wrong).toMatchObject({ error: { code: -32602, message: 'since.k0: is not the number of a conversation' } });
    expect(await client.request('live.subscribe', { since: { 7: -1 } })).toMatchObject({
      error: { code: -32602, message: 'since.7: is not a rev' },
    });
    const tooMany = await client.request('live.subscribe', { since: keys(20_001, (n) => `${n + 1}`) });
    expect(tooMany).toMatchObject({ error: { message: 'since: names more than 20000 conversations' } });
    const followed = await client.request('live.subscribe', { since: keys(20_000, (n) => `${n + 1}`) });
    expect(followed).toMatchObject({ result: { complete: true } });
    client.send(call('live.subscribe', { since: keys(20_000, (n) => `k${n}`) }));
    expect(await client.ended()).toBe(4005);
  });
});
