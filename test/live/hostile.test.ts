import { setTimeout as wait } from 'node:timers/promises';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import type { LiveClient } from './client.ts';
import { signIn } from '../support/people.ts';
import { LiveFixture } from './fixture.ts';

let live: LiveFixture;
afterEach(async () => live.stop());

/** The most bytes that one read of changes gives, with their frames. */
const READ_BYTES = 300 * 1024;
const MAX_FRAME_BYTES = 64 * 1024;
const small = { live: { maxFrameBytes: MAX_FRAME_BYTES } };

describe.each([
  ['ws', 0],
  ['tcp', 2],
] as const)('over %s', (_name, index) => {
  const connect = (): Promise<LiveClient> => live.connect(live.urls[index]);

  test.each([
    ['a text that is no JSON', '{"jsonrpc":', 4005],
    ['two JSON texts at once', '{} {}', 4005],
    ['JSON that is nested a thousand times', `${'['.repeat(1_000)}${']'.repeat(1_000)}`, 4005],
    ['objects that are nested a thousand times', `${'{"a":'.repeat(1_000)}1${'}'.repeat(1_000)}`, 4005],
    ['more than fits', JSON.stringify({ text: 'x'.repeat(MAX_FRAME_BYTES) }), 4004],
  ])('%s ends the connection with a code and a sentence', async (_what, text, code) => {
    live = await LiveFixture.start(small);
    const client = await connect();
    client.send(text);
    expect(await client.ended()).toBe(code);
    expect(client.reason).not.toBe('');
    expect(client.of('session.ended')).toEqual([
      { jsonrpc: '2.0', method: 'session.ended', params: { reason: client.reason, code } },
    ]);
    // Other clients are not affected.
    await (await live.signIn(live.urls[index])).call('live.ping');
  });

  test.each([
    ['a number', '7'],
    ['null', 'null'],
    ['a list', '[]'],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"live.ping"}]'],
    ['another version', '{"jsonrpc":"1.0","id":1,"method":"live.ping"}'],
    ['a method that is a list', '{"jsonrpc":"2.0","id":1,"method":["live.ping"]}'],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"live.ping"}'],
    ['the names of prototypes', '{"jsonrpc":"2.0","id":{"__proto__":1},"method":"constructor"}'],
  ])('%s is no request, which is said, and the connection goes on', async (_what, text) => {
    live = await LiveFixture.start();
    const client = await connect();
    client.send(text);
    await client.call('live.ping');
    expect(JSON.parse(client.texts[0]!)).toMatchObject({ id: null, error: { code: -32600 } });
  });

  test.each([
    ['live.authenticate', { token: 7 }],
    ['live.authenticate', []],
    ['live.authenticate', { token: 'x', more: 1 }],
    ['live.subscribe', { since: { seven: 1 } }],
    ['live.subscribe', { since: { 7: -1 } }],
    ['live.subscribe', { since: { 7: '1' } }],
    ['live.subscribe', { default: 'all' }],
    ['live.ping', 'text'],
  ])('%s with the wrong types is answered with what is wrong', async (method, params) => {
    live = await LiveFixture.start();
    const client = method === 'live.authenticate' ? await connect() : await live.signIn(live.urls[index]);
    expect(await client.request(method, params)).toMatchObject({ error: { code: -32602 } });
    await client.call('live.ping');
  });

  test('requests are answered in the order in which they came', async () => {
    live = await LiveFixture.start();
    const client = await connect();
    const methods = ['live.authenticate', 'live.subscribe', 'live.ping', 'no.such', 'conversations.list', 'live.ping'];
    for (const [id, method] of methods.entries()) {
      const params = method === 'live.authenticate' ? { token: live.alice.token } : {};
      client.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    }
    await client.responseTo(methods.length - 1);
    const ids = client.texts.map((text) => (JSON.parse(text) as { id?: number }).id);
    expect(ids.filter((id) => id !== undefined)).toEqual(methods.map((_, id) => id));
  });

  test('a flood ends with 4006, and what came before it is answered', async () => {
    live = await LiveFixture.start({ limits: { sessionRequestRate: 5, sessionRequestBurst: 20 } });
    const client = await live.signIn(live.urls[index]);
    for (let id = 100; id < 200; id += 1) client.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'live.ping' }));
    expect(await client.ended()).toBe(4006);
    expect(client.texts.length).toBeLessThan(60);
    // Clients that call at the allowed rate wait for their turn.
    const other = await live.signIn(live.urls[index], (await signIn(live.server, live.alice.id)).token);
    await Promise.all(Array.from({ length: 24 }, () => other.call('live.ping')));
  });

  test('a flood of one that has not said who it is ends with 4006', async () => {
    live = await LiveFixture.start();
    const client = await connect();
    for (let id = 100; id < 250; id += 1) client.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'live.ping' }));
    expect(await client.ended()).toBe(4006);
  });

  test('guessing tokens is slowed, counted, and ends', async () => {
    live = await LiveFixture.start({
      limits: { unknownTokensPerSecondPerSource: 2 },
      metrics: { metricsEnabled: true },
    });
    const client = await connect();
    const startedAt = performance.now();
    for (let n = 0; n < 5; n += 1) {
      const token = `kls_${String(n).repeat(43)}`;
      expect(await client.request('live.authenticate', { token })).toMatchObject({
        error: { data: { code: 'unauthenticated' } },
      });
    }
    expect(await client.ended()).toBe(4001);
    expect(performance.now() - startedAt).toBeGreaterThan(1_000);
    expect(await live.metric('klatch_unknown_session_tokens_total')).toBe(5);
    expect(await live.metric('klatch_live_disconnects_total{reason="unauthenticated"}')).toBe(1);
  });

  test('who does not say who it is in time is closed with 4001', async () => {
    live = await LiveFixture.start({ live: { authTimeoutMs: 300 } });
    const client = await connect();
    expect(await client.ended()).toBe(4001);
  });

  test('who gives no sign of life is closed, and counted; who answers stays', async () => {
    live = await LiveFixture.start({ live: { heartbeatMs: 800 }, metrics: { metricsEnabled: true } });
    const silent = await live.signIn(live.urls[index]);
    const lively = await live.signIn(live.urls[index]);
    // The client must not read any longer: its library answers pings as soon as it reads them, and on tcp any line is
    // an answer.
    silent.pause();
    let answered = 0;
    await eventually(
      async () => {
        if (index === 2 && lively.of('ping').length > answered) {
          answered += 1;
          lively.send('');
        }
        return live.metric('klatch_live_disconnects_total{reason="ping_timeout"}');
      },
      (count) => count === 1,
    );
    await lively.call('live.ping');
  });

  test('nobody is closed because the server itself stood still', async () => {
    live = await LiveFixture.start({ live: { heartbeatMs: 800 }, metrics: { metricsEnabled: true } });
    const client = await live.signIn(live.urls[index]);
    // After this wait the sign-in no longer proves that the client is alive. The server has not sent a ping yet.
    await wait(500);
    const until = performance.now() + 3_000;
    while (performance.now() < until);
    // In this time the server makes a check, in which it may only send a ping.
    await wait(500);
    await client.call('live.ping');
    expect(await live.metric('klatch_live_disconnects_total{reason="ping_timeout"}')).toBe(0);
  });
});

describe('what no client sends', () => {
  test('binary, text that is not UTF-8, frames that are not masked or lie about their length: 4005', async () => {
    live = await LiveFixture.start();
    const binary = await live.connect(live.urls[0]);
    binary.sendBinary(Buffer.from('{}'));
    expect(await binary.ended()).toBe(4005);
    const masked = (opcode: number, payload: Buffer): Buffer =>
      Buffer.concat([Buffer.from([opcode, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
    const frames = [
      masked(0x81, Buffer.from([0xc3, 0x28])),
      Buffer.from([0x81, 0x02, 0x7b, 0x7d]),
      masked(0xc1, Buffer.from('{}')),
      masked(0x83, Buffer.from('{}')),
      masked(0x80, Buffer.from('{}')),
      masked(0x09, Buffer.from('{}')),
    ];
    for (const frame of frames) {
      const client = await live.connect(live.urls[1]);
      client.socket.write(frame);
      expect([frame.toString('hex'), await client.ended()]).toEqual([frame.toString('hex'), 4005]);
    }
    const line = await live.connect(live.urls[2]);
    line.sendBinary(Buffer.from([0x22, 0xff, 0xfe, 0x22]));
    expect(await line.ended()).toBe(4005);
  });

  test('a text in a thousand torn pieces is one request', async () => {
    live = await LiveFixture.start();
    const client = await live.connect(live.urls[2]);
    const token = live.alice.token;
    const text = JSON.stringify({
      jsonrpc: '2.0',
      id: 7,
      method: 'live.authenticate',
      params: { token, pad: undefined },
    });
    client.socket.setNoDelay(true);
    for (const byte of Buffer.from(`\r\n${text}\r\n`)) {
      client.socket.write(Buffer.from([byte]));
      if (byte % 7 === 0) await new Promise(setImmediate);
    }
    expect(await client.responseTo(7)).toMatchObject({ result: { account: { nick: 'alice' } } });
  });

  test('a line without an end costs what a line may have, and ends', async () => {
    live = await LiveFixture.start({ live: { maxFrameBytes: MAX_FRAME_BYTES } });
    const client = await live.connect(live.urls[2]);
    for (let n = 0; n < 70 && client.code === null; n += 1) {
      client.socket.write('x'.repeat(1_000));
      await new Promise(setImmediate);
    }
    expect(await client.ended()).toBe(4004);
  });

  test('a client that closes its side gets its answers first', async () => {
    live = await LiveFixture.start();
    const client = await live.connect(live.urls[2]);
    const call = (id: number, method: string, params: object): string =>
      JSON.stringify({ jsonrpc: '2.0', id, method, params });
    const { token } = live.alice;
    const conversation = live.group.id;
    client.socket.end(
      `${call(1, 'live.authenticate', { token })}\n${call(2, 'messages.send', { conversation, text: 'by nc' })}\n`,
    );
    expect(await client.ended()).toBe(1000);
    expect(await client.responseTo(2)).toMatchObject({ result: { id: expect.stringMatching(`^${conversation}:`) } });
  });

  test('a client that reads nothing is closed with "sync again" when too much waits, and costs no more', async () => {
    const sendQueueBytes = 64 * 1024;
    live = await LiveFixture.start({ live: { sendQueueBytes }, metrics: { metricsEnabled: true } });
    // Each of the two clients may exceed the limit of its queue by the result of one read of changes.
    const mostBytes = 2 * (sendQueueBytes + READ_BYTES);
    for (const url of [live.urls[0], live.urls[2]]) {
      const slow = await live.follow(url);
      const quick = await live.follow(url);
      slow.pause();
      const ends = 'klatch_live_disconnects_total{reason="slow_consumer"}';
      const before = await live.metric(ends);
      // These posts are more than the kernel buffers of both ends hold.
      for (let n = 0; n < 400 && (await live.metric(ends)) === before; n += 1) {
        await live.post('x'.repeat(39_000));
        expect(await live.total('klatch_live_send_queue_bytes')).toBeLessThanOrEqual(mostBytes);
      }
      expect(await live.metric(ends)).toBe(before + 1);
      slow.resume();
      expect(await slow.ended()).toBe(4000);
      expect(quick.code).toBe(null);
      // The client reconnects, and then has got each message exactly once.
      const changes = slow.changes(live.group.id);
      const known = changes.at(-1)!.rev;
      const again = await live.follow(url, live.alice.token, { since: { [live.group.id]: known } });
      await live.post('the end');
      await eventually(
        () => again.changes(live.group.id).at(-1)?.message?.text,
        (text) => text === 'the end',
      );
      const revs = [...changes, ...again.changes(live.group.id)].map(({ rev }) => rev);
      expect(revs).toEqual(revs.map((_, index) => revs[0] + index));
    }
  });
});

describe('bounds on connections', () => {
  test('two thousand connections without a word leave room for those who say who they are, and are gone in time', async () => {
    live = await LiveFixture.start({
      live: { maxUnauthenticatedConnections: 400, authTimeoutMs: 2_000 },
      metrics: { metricsEnabled: true },
    });
    const silent = Array.from({ length: 2_000 }, (_, n) => {
      const socket = connect(live.server.endpoints[n % 2]!.port, '127.0.0.1');
      socket.on('error', () => {});
      return socket.resume();
    });
    await Promise.all(silent.map((socket) => once(socket, 'connect').catch(() => null)));
    // One source may have a quarter of the waiting connections.
    const ends = await Promise.all(silent.map((socket) => once(socket, 'close')));
    expect(ends).toHaveLength(2_000);
    expect(await live.metric('klatch_live_rejections_total{reason="too_many_from_source"}')).toBeGreaterThan(1_000);
    await (await live.signIn(live.urls[2])).call('live.ping');
    expect(await live.metric('klatch_live_sessions{transport="tcp",state="unauthenticated"}')).toBe(0);
  });

  test('so many connections in all, and of one account', async () => {
    live = await LiveFixture.start({ live: { maxLiveConnections: 3, maxConnectionsPerUser: 2 } });
    await live.signIn(live.urls[0]);
    await live.signIn(live.urls[2]);
    const third = await live.connect(live.urls[1]);
    expect(await third.request('live.authenticate', { token: live.alice.token })).toMatchObject({
      error: { data: { code: 'quota_exceeded' } },
    });
    expect(await third.ended()).toBe(4003);
    const again = await live.connect(live.urls[2]);
    const refused = await live.connect(live.urls[2]);
    expect(await refused.ended()).toBe(4003);
    await expect(live.connect(live.urls[0])).rejects.toThrow('503');
    await again.close();
  });
});
