import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ServerError } from '../../../client/core/chat-error.ts';
import { anything } from '../../../client/core/decode.ts';
import type { ChatEvent } from '../../../client/core/events.ts';
import { FakeServer } from './fake-server.ts';
import { listen, type Listening } from './listening.ts';

describe.each(['ws', 'tcp'] as const)('calls of a client over %s', (kind) => {
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

  /** The number of calls of a method. */
  const asked = (method: string): number => server.requests.filter((request) => request.method === method).length;

  test('reach the server from the listener as soon as it is connected', async () => {
    const hear = async (event: ChatEvent): Promise<void> => {
      const options = { decode: anything, failsWhenDisconnected: true };
      if (event.type === 'connected') await listening!.client.call('live.foreground', { foreground: false }, options);
    };
    listening = await listen(server.url, { hear });
    await listening.heard('following');
    server.cut();
    await listening.heard('following', 2);
    expect(asked('live.foreground')).toBe(2);
  });

  test('makes a request again that may be made twice, when the connection breaks beneath it or the server asks to', async () => {
    let cuts = 2;
    server.override = ({ method }, peer) => {
      if (method !== 'messages.send') return undefined;
      cuts -= 1;
      if (cuts >= 0) peer.cut();
      return cuts >= 0 ? null : { result: 'sent' };
    };
    listening = await listen(server.url);
    const sent = listening.client.call('messages.send', {}, { decode: anything, isRepeatable: true });
    expect(await sent).toBe('sent');
    expect(asked('messages.send')).toBe(3);
  });

  test('does not make a request again that might do harm', async () => {
    server.override = ({ method }, peer) => {
      if (method !== 'messages.send') return undefined;
      peer.cut();
      return null;
    };
    listening = await listen(server.url);
    const sent = listening.client.call('messages.send', {}, { decode: anything });
    await expect(sent).rejects.toThrow('the connection was cut');
    expect(asked('messages.send')).toBe(1);
  });

  test('hands a refusal on with its code and sentence', async () => {
    server.override = ({ method }) =>
      method === 'x' ? { error: { message: 'You may not', data: { code: 'forbidden' } } } : undefined;
    listening = await listen(server.url);
    const call = listening.client.call('x', {}, { decode: anything, isRepeatable: true });
    await expect(call).rejects.toThrow(ServerError);
    await expect(call).rejects.toMatchObject({ code: 'forbidden', message: 'You may not' });
  });
});
