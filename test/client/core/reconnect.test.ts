import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { discoverServerAddress } from '../../../client/core/address.ts';
import { SessionOverError, ClientStoppedError } from '../../../client/core/chat-error.ts';
import { anything } from '../../../client/core/decode.ts';
import type { ChatEvent } from '../../../client/core/events.ts';
import { LiveClient } from '../../../client/core/live-client.ts';
import { connectFunctionFor } from '../../../client/node/connect-to.ts';
import { eventually } from '../../support/eventually.ts';
import { within } from '../../run/machine-speed.ts';
import { FakeServer } from './fake-server.ts';
import { listen, type Listening } from './listening.ts';

describe.each(['ws', 'tcp'] as const)('a client over %s', (kind) => {
  let server: FakeServer;
  let listening: Listening | null;

  beforeEach(async () => {
    server = await FakeServer.start(kind);
    listening = null;
  });

  afterEach(async () => {
    await listening?.client.stop();
    await server.stop();
  });

  /** The number of calls of a method that the server received. */
  const asked = (method: string): number => server.requests.filter((request) => request.method === method).length;

  test('hears each change once and in order, without asking for what is sent', async () => {
    server.change(7);
    listening = await listen(server.url);
    await listening.heard('following');
    for (let i = 0; i < 50; i += 1) server.change(7);
    await listening.heard('change', 50);
    expect(listening.revs(7)).toEqual(Array.from({ length: 50 }, (_, i) => i + 2));
    expect(listening.client.handledRevByConversation.get(7)).toBe(51);
    expect(asked('conversations.sync')).toBe(0);
  });

  test('drops what is sent again', async () => {
    server.change(7);
    listening = await listen(server.url);
    await listening.heard('following');
    const rev = server.change(7);
    server.send(7, rev);
    server.send(7, 1);
    server.change(7);
    await listening.heard('change', 2);
    expect(listening.revs(7)).toEqual([2, 3]);
    expect(asked('conversations.sync')).toBe(0);
  });

  test('notices a gap and asks for what lies in it', async () => {
    server.change(7);
    listening = await listen(server.url);
    await listening.heard('following');
    server.change(7, { lost: true });
    server.change(7, { lost: true });
    server.change(7);
    server.change(7);
    await listening.heard('change', 4);
    expect(listening.revs(7)).toEqual([2, 3, 4, 5]);
  });

  test('takes a rev that an edit has left empty for no loss, and goes on behind it', async () => {
    server.change(7);
    listening = await listen(server.url);
    await listening.heard('following');
    const lost = server.change(7, { lost: true });
    server.change(7, { replaces: lost });
    server.change(7);
    await listening.heard('change', 2);
    expect(listening.revs(7)).toEqual([3, 4]);
  });

  test('reads a long gap page by page while the stream goes on', async () => {
    server.change(7);
    listening = await listen(server.url);
    await listening.heard('following');
    for (let i = 0; i < 1_234; i += 1) server.change(7, { lost: true });
    for (let i = 0; i < 100; i += 1) server.change(7);
    await listening.heard('change', 1_334);
    expect(listening.revs(7)).toEqual(Array.from({ length: 1_334 }, (_, i) => i + 2));
    expect(asked('conversations.sync')).toBeGreaterThanOrEqual(3);
  });

  test('goes on from its revs after every cut, whatever happened meanwhile', async () => {
    server.change(7);
    listening = await listen(server.url);
    await listening.heard('following');
    for (let cuts = 1; cuts <= 10; cuts += 1) {
      server.change(7);
      server.cut();
      server.change(7);
      await listening.heard('following', cuts + 1);
    }
    server.change(7);
    await listening.heard('change', 21);
    expect(listening.revs(7)).toEqual(Array.from({ length: 21 }, (_, i) => i + 2));
    expect(listening.events.filter(({ type }) => type === 'disconnected').length).toBe(10);
  });

  test('closes a gap that a cut left open, though its listener asks the server about each change', async () => {
    server.change(7);
    let cuts = 0;
    server.override = ({ method }, peer) => {
      if (method !== 'conversations.sync' || cuts++ > 0) return undefined;
      peer.cut();
      return null;
    };
    const hear = async (event: ChatEvent): Promise<void> => {
      const options = { decode: anything, failsWhenDisconnected: true };
      if (event.type === 'change') await listening!.client.call('conversations.show', { conversation: 7 }, options);
    };
    listening = await listen(server.url, { hear });
    await listening.heard('following');
    server.change(7, { lost: true });
    server.change(7);
    await listening.heard('following', 2);
    await eventually(
      async () => listening!.client.handledRevByConversation.get(7),
      (rev) => rev === 3,
    );
    expect(listening.revs(7)).toEqual([2, 3]);
    expect(asked('live.subscribe')).toBe(2);
  });

  test('comes again to what its listener was not done with', async () => {
    server.change(7);
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    listening = await listen(server.url, { hear: (event) => (event.type === 'change' ? held : undefined) });
    await listening.heard('following');
    for (let i = 0; i < 5; i += 1) server.change(7);
    await listening.heard('change');
    server.cut();
    release();
    await listening.heard('change', 5);
    expect(listening.revs(7)).toEqual([2, 3, 4, 5, 6]);
  });

  test('hears a conversation from where it came into it, and nothing behind its leaving', async () => {
    listening = await listen(server.url);
    await listening.heard('following');
    server.change(9, { lost: true });
    const [peer] = server.peers;
    peer!.notify('conversation.joined', { conversation: 9, rev: 1 });
    server.change(9);
    peer!.notify('conversation.left', { conversation: 9 });
    server.change(9);
    await listening.heard('left');
    server.cut();
    await listening.heard('following', 2);
    await listening.heard('change', 2);
    // After it has rejoined, the client has the messages of its absence, and none of the earlier ones twice.
    expect(listening.revs(9)).toEqual([2, 3]);
    expect(listening.events.map(({ type }) => type).filter((type) => type === 'joined' || type === 'left')).toEqual([
      'joined',
      'left',
      'joined',
    ]);
  });

  test('hears what was written since in a conversation that it came into while it was away', async () => {
    server.change(7);
    listening = await listen(server.url);
    await listening.heard('following');
    server.override = () => null;
    server.cut();
    for (let i = 0; i < 3; i += 1) server.change(8);
    server.override = () => undefined;
    server.cut();
    await listening.heard('change', 3);
    expect(listening.revs(8)).toEqual([1, 2, 3]);
    expect(listening.events).toContainEqual({ type: 'joined', conversation: 8 });
  });

  test('goes back with a server that has less than it heard', async () => {
    for (let i = 0; i < 3; i += 1) server.change(7);
    server.override = ({ method }) =>
      method === 'live.subscribe' ? { result: { conversations: [{ id: 7, rev: 3 }], complete: true } } : undefined;
    listening = await listen(server.url, {
      follow: { resumeRevByConversation: new Map([[7, 90]]), startWithoutResumeRev: 'now', onlyConversations: null },
    });
    await listening.heard('following');
    expect(listening.events).toContainEqual({ type: 'reset', conversation: 7, rev: 3 });
  });

  test('keeps what it has of a conversation that the server does not list, where that follows not all', async () => {
    for (let i = 0; i < 3; i += 1) server.change(7);
    server.override = ({ method }) =>
      method === 'live.subscribe' ? { result: { conversations: [], complete: false } } : undefined;
    listening = await listen(server.url, {
      follow: { resumeRevByConversation: new Map([[7, 2]]), startWithoutResumeRev: 'now', onlyConversations: null },
    });
    await listening.heard('following');
    expect(listening.events).toContainEqual({ type: 'following', conversations: 0, isSubscribedToAll: false });
    expect(listening.events.filter(({ type }) => type === 'left')).toEqual([]);
    expect(listening.client.handledRevByConversation).toEqual(new Map([[7, 2]]));
  });

  test('names no more conversations than the server takes', async () => {
    const known = new Map(Array.from({ length: 20_001 }, (_, n) => [20_001 - n, 1]));
    server.override = ({ method }) =>
      method === 'live.subscribe' ? { result: { conversations: [], complete: false } } : undefined;
    listening = await listen(server.url, {
      follow: { resumeRevByConversation: known, startWithoutResumeRev: 'now', onlyConversations: null },
    });
    await listening.heard('following');
    const { params } = server.requests.find(({ method }) => method === 'live.subscribe')!;
    const named = Object.keys((params as { since: object }).since).map(Number);
    expect([named.length, Math.max(...named)]).toEqual([20_000, 20_000]);
    expect(listening.client.handledRevByConversation.size).toBe(20_001);
  });

  test('ends when its session is over, and does not come back', async () => {
    listening = await listen(server.url);
    await listening.heard('following');
    const [peer] = server.peers;
    peer!.notify('session.ended', { reason: 'signed out elsewhere', code: 4002 });
    peer!.cut();
    expect(await listening.client.ended).toEqual(new SessionOverError('signed out elsewhere'));
    await expect(listening.client.call('x', {}, { decode: anything })).rejects.toThrow(SessionOverError);
    expect(listening.client.counts.authenticatedConnections).toBe(1);
  });

  test('ends when its token is not taken', async () => {
    server.override = () => ({ error: { message: 'Sign in first', data: { code: 'unauthenticated' } } });
    listening = await listen(server.url);
    expect(await listening.client.ended).toBeInstanceOf(SessionOverError);
    await expect(listening.client.awaitFirstAttempt()).rejects.toThrow(SessionOverError);
  });

  test('stays away from a server that is starting only for a while', async () => {
    let refusals = 3;
    server.override = () => {
      refusals -= 1;
      return refusals >= 0 ? { error: { message: 'starting', data: { code: 'starting' } } } : undefined;
    };
    listening = await listen(server.url);
    await listening.heard('following');
    expect(listening.events.filter(({ type }) => type === 'disconnected').length).toBe(3);
  });

  test('gives up a connection that gives no sign of life', async () => {
    listening = await listen(server.url, { bounds: { quietBeforePingMs: 1_500 } });
    await listening.heard('following');
    await eventually(
      async () => asked('live.ping'),
      (pings) => pings > 0,
    );
    expect(listening.client.counts.authenticatedConnections).toBe(1);
    server.override = ({ method }) => (method === 'live.ping' ? null : undefined);
    await listening.heard('disconnected');
    expect(listening.events).toContainEqual(
      expect.objectContaining({ type: 'disconnected', reason: 'the server gave no sign of life' }),
    );
    await listening.heard('following', 2);
  });

  test('answers a server that asks for a sign of life', async () => {
    listening = await listen(server.url);
    await listening.heard('following');
    const [peer] = server.peers;
    peer!.notify('ping', undefined);
    await eventually(
      async () => asked('live.ping'),
      (pings) => pings === 1,
    );
    expect(listening.events.map(({ type }) => type)).toEqual(['connected', 'following']);
  });

  test.each([
    ['no JSON', 'hello'],
    ['no JSON-RPC', '{"a":1}'],
    ['more than it takes', JSON.stringify({ method: 'x', params: 'x'.repeat(200_000) })],
  ])('hangs up on a server that sends %s, and comes back', async (_, text) => {
    listening = await listen(server.url, { bounds: { maxInboundTextBytes: 100_000 } });
    await listening.heard('following');
    const [peer] = server.peers;
    peer!.say(text);
    await listening.heard('following', 2);
  });

  test('ends with its listener when that fails', async () => {
    server.change(7);
    listening = await listen(server.url, {
      hear: (event) => {
        if (event.type === 'change') throw new Error('the disk is full');
      },
    });
    await listening.heard('following');
    server.change(7);
    expect(await listening.client.ended).toEqual(new Error('the disk is full'));
  });

  test('stops while it waits, connects or follows, and says so to who still asks', async () => {
    listening = await listen(server.url);
    await listening.heard('following');
    const call = listening.client.call('x', {}, { decode: anything });
    server.override = () => null;
    const late = listening.client.call('y', {}, { decode: anything, isRepeatable: true });
    await listening.client.stop();
    await listening.client.stop();
    expect(await listening.client.ended).toBeNull();
    await Promise.allSettled([call]);
    await expect(late).rejects.toThrow(ClientStoppedError);
    await expect(listening.client.call('z', {}, { decode: anything })).rejects.toThrow(ClientStoppedError);
  });
});

test('a client stops at once while it waits for an answer of the server', async () => {
  const server = await FakeServer.start('ws');
  server.override = () => null;
  const { client } = await listen(server.url);
  await eventually(
    () => server.requests.length,
    (count) => count === 1,
  );
  const beganMs = performance.now();
  await client.stop();
  expect(performance.now() - beganMs).toBeLessThan(within(10_000));
  await server.stop();
});

test.each(['ws', 'tcp'] as const)('a slow listener stops the reading over %s, and loses nothing', async (kind) => {
  const server = await FakeServer.start(kind);
  server.change(7);
  let release: () => void = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const slow = await listen(server.url, { hear: (event) => (event.type === 'change' ? held : undefined) });
  await slow.heard('following');
  const [peer] = server.peers;
  const quick = await listen(server.url);
  await quick.heard('following');
  const count = 1_500;
  // These changes are far larger than the buffers of two sockets.
  for (let i = 0; i < count; i += 1) server.change(7, { length: 20_000 });
  await quick.heard('change', count);
  expect(peer!.unsent()).toBeGreaterThan(0);
  release();
  await slow.heard('change', count);
  expect(slow.revs(7)).toEqual(quick.revs(7));
  expect(slow.client.counts.authenticatedConnections).toBe(1);
  await Promise.all([slow.client.stop(), quick.client.stop()]);
  await server.stop();
});

test('a client that nobody answers says why at its first attempt, and can be stopped', async () => {
  const server = await FakeServer.start('tcp');
  const { url } = server;
  await server.stop();
  const connect = connectFunctionFor(await discoverServerAddress(url));
  const client = new LiveClient({ connect, token: 'x', follow: null, listener: () => {} });
  client.start();
  await expect(client.awaitFirstAttempt()).rejects.toThrow(
    /^tcp:\/\/127\.0\.0\.1:\d+ cannot be reached: .*ECONNREFUSED/,
  );
  await client.stop();
});
