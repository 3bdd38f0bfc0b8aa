import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
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

  test('drops what a restored server lost, and hears what took its place', async () => {
    for (let i = 0; i < 5; i += 1) server.change(7);
    server.change(8);
    listening = await listen(server.url, {
      follow: {
        resumeRevByConversation: new Map([
          [7, 0],
          [8, 0],
        ]),
        startWithoutResumeRev: 'now',
        onlyConversations: null,
      },
    });
    await listening.heard('change', 6);
    server.restore(new Map([[7, 3]]), 100);
    // The new changes reach rev 5, the rev that the client has, and go beyond it.
    for (let i = 0; i < 4; i += 1) server.change(7, { lost: true });
    server.cut();
    await listening.heard('change', 10);
    expect(listening.revs(7)).toEqual([1, 2, 3, 4, 5, 4, 5, 6, 7]);
    expect(listening.revs(8)).toEqual([1]);
    expect(listening.events.filter(({ type }) => type === 'reset')).toEqual([
      { type: 'reset', conversation: 7, rev: 3 },
    ]);
    const { epochByConversation, handledRevByConversation } = listening.client;
    expect([epochByConversation, handledRevByConversation]).toEqual([
      new Map([
        [7, 100],
        [8, 100],
      ]),
      new Map([
        [7, 7],
        [8, 1],
      ]),
    ]);
    // The next reconnect causes no second reset.
    server.cut();
    await listening.heard('following', 3);
    expect(listening.events.filter(({ type }) => type === 'reset')).toHaveLength(1);
  });

  test.each([
    ['missed an epoch', 0],
    ['comes from a history that this server never had', 150],
  ])('drops everything where it %s', async (_, epoch) => {
    for (let i = 0; i < 5; i += 1) server.change(7);
    server.restore(new Map([[7, 4]]), 200, 100);
    listening = await listen(server.url, {
      follow: {
        resumeRevByConversation: new Map([[7, 5]]),
        resumeEpochByConversation: new Map([[7, epoch]]),
        startWithoutResumeRev: 'now',
        onlyConversations: null,
      },
    });
    await listening.heard('change', 4);
    expect(listening.events).toContainEqual({ type: 'reset', conversation: 7, rev: 0 });
    expect(listening.revs(7)).toEqual([1, 2, 3, 4]);
  });

  test('closes no gap over the border of an epoch', async () => {
    for (let i = 0; i < 5; i += 1) server.change(7);
    listening = await listen(server.url, {
      follow: { resumeRevByConversation: new Map([[7, 5]]), startWithoutResumeRev: 'now', onlyConversations: null },
    });
    await listening.heard('following');
    // The connection breaks while the client fetches its missing changes.
    server.override = ({ method }, peer) => {
      if (method !== 'conversations.sync') return undefined;
      peer.cut();
      return null;
    };
    server.change(7, { lost: true });
    server.change(7);
    await listening.heard('disconnected');
    server.restore(new Map([[7, 2]]), 100);
    for (let i = 0; i < 6; i += 1) server.change(7, { lost: true });
    server.override = () => undefined;
    await listening.heard('change', 6);
    expect(listening.revs(7)).toEqual([3, 4, 5, 6, 7, 8]);
  });
});
