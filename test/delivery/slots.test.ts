import { describe, expect, test } from '@jest/globals';
import { Slots } from '../../src/delivery/slots.ts';

/** Asks for slots and notes who got one, in order. */
function asker(slots: Slots): {
  granted: string[];
  ask: (host: string, name?: string) => void;
  settled: () => Promise<void>;
} {
  const granted: string[] = [];
  return {
    granted,
    ask: (host, name = host) => {
      void slots.acquire(host).then((ok) => granted.push(ok ? name : `${name} refused`));
    },
    settled: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

describe('slots', () => {
  test('bound the requests of a host, and leave others their share', async () => {
    const slots = new Slots(4, 2);
    const { granted, ask, settled } = asker(slots);
    for (let n = 1; n <= 5; n += 1) ask('slow', `slow ${n}`);
    ask('other');
    await settled();
    expect(granted).toEqual(['slow 1', 'slow 2', 'other']);
    slots.release('slow');
    await settled();
    expect(granted).toEqual(['slow 1', 'slow 2', 'other', 'slow 3']);
  });

  test('bound all requests together', async () => {
    const slots = new Slots(2, 2);
    const { granted, ask, settled } = asker(slots);
    for (const host of ['a', 'b', 'c']) ask(host);
    await settled();
    expect(granted).toEqual(['a', 'b']);
    expect(slots.active).toBe(2);
    slots.release('a');
    await settled();
    expect(granted).toEqual(['a', 'b', 'c']);
  });

  test('are given to hosts in turn, however many lanes a host has', async () => {
    const slots = new Slots(1, 16);
    const { granted, ask, settled } = asker(slots);
    ask('busy', 'first');
    for (let n = 1; n <= 3; n += 1) ask('busy', `busy ${n}`);
    ask('quiet', 'quiet 1');
    for (const host of ['busy', 'busy', 'quiet', 'busy']) {
      slots.release(host);
      await settled();
      if (granted.length === 5) break;
    }
    expect(granted.slice(0, 3)).toEqual(['first', 'busy 1', 'quiet 1']);
  });

  test('are refused to everybody who waits when the server stops', async () => {
    const slots = new Slots(1, 1);
    const { granted, ask, settled } = asker(slots);
    ask('a', 'first');
    ask('a', 'second');
    slots.stop();
    ask('b', 'late');
    await settled();
    expect(granted).toEqual(['first', 'second refused', 'late refused']);
    slots.release('a');
    expect(slots.active).toBe(0);
  });

  test('cannot be released twice', () => {
    const slots = new Slots(1, 1);
    expect(() => slots.release('a')).toThrow('not taken');
  });
});
