import { describe, expect, test } from '@jest/globals';
import { LocalBus } from '../../src/bus/bus.ts';
import type { ConversationId, Seq } from '../../src/model/ids.ts';

const advanced = new Map([[7 as ConversationId, 42 as Seq]]);

describe('LocalBus', () => {
  test('tells every listener at once, and each only what it listens to', () => {
    const bus = new LocalBus();
    const heard: unknown[] = [];
    bus.subscribe({ advanced: (word) => heard.push(['first', word]) });
    bus.subscribe({ advanced: (word) => heard.push(['second', word]), gap: () => heard.push('gap') });
    bus.publish('advanced', advanced);
    bus.publish('tokensRevoked', ['hash']);
    bus.publish('gap');
    expect(heard).toEqual([['first', advanced], ['second', advanced], 'gap']);
  });

  test('tells nothing to who has unsubscribed, also twice or in the middle of a word', () => {
    const bus = new LocalBus();
    const heard: string[] = [];
    const stop = bus.subscribe({ gap: () => heard.push('one') });
    const stopOther = bus.subscribe({
      gap: () => {
        heard.push('two');
        stopOther();
        stop();
      },
    });
    bus.publish('gap');
    bus.publish('gap');
    stop();
    expect(heard).toEqual(['one', 'two']);
  });
});
