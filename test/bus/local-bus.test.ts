import { describe, expect, test } from '@jest/globals';
import { LocalBus } from '../../src/bus/bus.ts';
import { RELIABLE_EVENTS } from '../../src/bus/wire-format.ts';
import type { ConversationId, Seq } from '../../src/model/ids.ts';

const advanced = new Map([[7 as ConversationId, 42 as Seq]]);

describe('LocalBus', () => {
  test('tells every listener at once, and each only what it listens to', () => {
    const bus = new LocalBus();
    const received: unknown[] = [];
    bus.subscribe({ messagesCommitted: (payload) => received.push(['first', payload]) });
    bus.subscribe({
      messagesCommitted: (payload) => received.push(['second', payload]),
      resync: () => received.push('resync'),
    });
    bus.publish('messagesCommitted', advanced);
    bus.publish('tokensRevoked', ['hash']);
    bus.publish('resync', RELIABLE_EVENTS);
    expect(received).toEqual([['first', advanced], ['second', advanced], 'resync']);
  });

  test('tells nothing to who has unsubscribed, also twice or in the middle of a word', () => {
    const bus = new LocalBus();
    const received: string[] = [];
    const stop = bus.subscribe({ resync: () => received.push('one') });
    const stopOther = bus.subscribe({
      resync: () => {
        received.push('two');
        stopOther();
        stop();
      },
    });
    bus.publish('resync', RELIABLE_EVENTS);
    bus.publish('resync', RELIABLE_EVENTS);
    stop();
    expect(received).toEqual(['one', 'two']);
  });
});
