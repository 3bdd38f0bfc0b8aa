import { describe, expect, test } from '@jest/globals';
import { HostLimiter } from '../../src/delivery/host-limiter.ts';
import { isSlowReceiver, SLOW_REQUEST_THRESHOLD_MS } from '../../src/outbound/slow-receivers.ts';

/** Requests slots of the limiter, and records in order the callers that got one. */
function asker(limiter: HostLimiter): {
  granted: string[];
  ask: (host: string, name?: string, slow?: boolean) => void;
  settled: () => Promise<void>;
} {
  const granted: string[] = [];
  return {
    granted,
    ask: (host, name = host, slow = false) => {
      void limiter.acquire(host, slow).then((ok) => granted.push(ok ? name : `${name} refused`));
    },
    settled: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

describe('slots', () => {
  test('bound the requests of a host, and leave others their share', async () => {
    const limiter = new HostLimiter(4, 2);
    const { granted, ask, settled } = asker(limiter);
    for (let n = 1; n <= 5; n += 1) ask('slow', `slow ${n}`);
    ask('other');
    await settled();
    expect(granted).toEqual(['slow 1', 'slow 2', 'other']);
    limiter.release('slow');
    await settled();
    expect(granted).toEqual(['slow 1', 'slow 2', 'other', 'slow 3']);
  });

  test('bound all requests together', async () => {
    const limiter = new HostLimiter(2, 2);
    const { granted, ask, settled } = asker(limiter);
    for (const host of ['a', 'b', 'c']) ask(host);
    await settled();
    expect(granted).toEqual(['a', 'b']);
    expect(limiter.inFlightCount).toBe(2);
    limiter.release('a');
    await settled();
    expect(granted).toEqual(['a', 'b', 'c']);
  });

  test('are given to hosts in turn, however many lanes a host has', async () => {
    const limiter = new HostLimiter(1, 16);
    const { granted, ask, settled } = asker(limiter);
    ask('busy', 'first');
    for (let n = 1; n <= 3; n += 1) ask('busy', `busy ${n}`);
    ask('quiet', 'quiet 1');
    for (const host of ['busy', 'busy', 'quiet', 'busy']) {
      limiter.release(host);
      await settled();
      if (granted.length === 5) break;
    }
    expect(granted.slice(0, 3)).toEqual(['first', 'busy 1', 'quiet 1']);
  });

  test('are refused to everybody who waits when the server stops', async () => {
    const limiter = new HostLimiter(1, 1);
    const { granted, ask, settled } = asker(limiter);
    ask('a', 'first');
    ask('a', 'second');
    limiter.stop();
    ask('b', 'late');
    await settled();
    expect(granted).toEqual(['first', 'second refused', 'late refused']);
    limiter.release('a');
    expect(limiter.inFlightCount).toBe(0);
  });

  test('cannot be released twice, and not as another kind than they were taken', async () => {
    const limiter = new HostLimiter(1, 1);
    expect(() => limiter.release('a')).toThrow('not taken');
    await limiter.acquire('a');
    expect(() => limiter.release('a', true)).toThrow('not taken');
    limiter.release('a');
    await limiter.acquire('a', true);
    expect(() => limiter.release('a')).toThrow('not taken');
  });
});

describe('slots of slow lanes', () => {
  test('are half of all, however many hosts are slow, and the others stay for quick lanes', async () => {
    const limiter = new HostLimiter(256, 16);
    const { granted, ask, settled } = asker(limiter);
    for (let n = 0; n < 16 * 40; n += 1) ask(`slow-${n % 40}`, 'slow', true);
    await settled();
    expect(granted).toHaveLength(128);
    expect(limiter.slowInFlightCount).toBe(128);
    for (let n = 0; n < 200; n += 1) ask(`quick-${n % 50}`, 'quick');
    await settled();
    expect(granted.filter((name) => name === 'quick')).toHaveLength(128);
    expect(limiter.inFlightCount).toBe(256);
  });

  test('are half of a host, so that its quick lanes go on beside those that hang', async () => {
    const limiter = new HostLimiter(256, 16);
    const { granted, ask, settled } = asker(limiter);
    for (let n = 0; n < 30; n += 1) ask('shared', 'slow', true);
    for (let n = 0; n < 30; n += 1) ask('shared', 'quick');
    await settled();
    expect(granted.filter((name) => name === 'slow')).toHaveLength(8);
    expect(granted.filter((name) => name === 'quick')).toHaveLength(8);
  });

  test('are one at least, where there is only one', async () => {
    const limiter = new HostLimiter(1, 1);
    const { granted, ask, settled } = asker(limiter);
    ask('a', 'slow', true);
    await settled();
    expect(granted).toEqual(['slow']);
    limiter.release('a', true);
    expect(limiter.inFlightCount).toBe(0);
  });

  test('come in turn with those of quick lanes while everything is taken', async () => {
    const limiter = new HostLimiter(2, 2);
    const { granted, ask, settled } = asker(limiter);
    ask('busy');
    ask('busy');
    ask('slow', 'slow', true);
    for (let n = 0; n < 4; n += 1) ask('busy');
    await settled();
    limiter.release('busy');
    limiter.release('busy');
    await settled();
    expect(granted.slice(2).toSorted()).toEqual(['busy', 'slow']);
  });

  test('come in turn with those of quick lanes where a host has only one', async () => {
    const limiter = new HostLimiter(4, 1);
    const { granted, ask, settled } = asker(limiter);
    for (let n = 0; n < 3; n += 1) ask('a', 'quick');
    for (let n = 0; n < 3; n += 1) ask('a', 'slow', true);
    for (let n = 0; n < 5; n += 1) {
      await settled();
      limiter.release('a', granted.at(-1) === 'slow');
    }
    await settled();
    expect(granted).toEqual(['quick', 'slow', 'quick', 'slow', 'quick', 'slow']);
  });

  test('are refused when the server stops', async () => {
    const limiter = new HostLimiter(2, 2);
    const { granted, ask, settled } = asker(limiter);
    ask('a', 'first', true);
    ask('a', 'second', true);
    limiter.stop();
    await settled();
    expect(granted).toEqual(['first', 'second refused']);
  });

  test('are asked for after a time-out, a failed look-up or a long attempt', () => {
    expect(isSlowReceiver({ category: 'timeout', durationMs: 100 })).toBe(true);
    expect(isSlowReceiver({ category: 'dns', durationMs: 0 })).toBe(true);
    expect(isSlowReceiver({ category: null, durationMs: SLOW_REQUEST_THRESHOLD_MS + 1 })).toBe(true);
    expect(isSlowReceiver({ category: null, durationMs: SLOW_REQUEST_THRESHOLD_MS })).toBe(false);
    expect(isSlowReceiver({ category: 'status', durationMs: 5 })).toBe(false);
  });
});

describe('slots under random use', () => {
  const HOSTS = 6;
  const STEPS = 1_000;

  /**
   * Makes a generator that returns the same numbers for the same seed, so that a failure can be reproduced
   * (mulberry32).
   */
  function random(seed: number): () => number {
    let state = seed;
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
  }

  interface Ask {
    readonly host: string;
    readonly slow: boolean;
    readonly askedAt: number;
  }

  interface Bounds {
    readonly max: number;
    readonly perHost: number;
  }

  const half = (bound: number): number => Math.max(1, Math.floor(bound / 2));

  /** The limiter with its slots, and the test's own record of lanes that wait and hold slots. */
  class Use {
    readonly bounds: Bounds;
    readonly limiter: HostLimiter;
    readonly waiting = new Set<Ask>();
    readonly held: Ask[] = [];

    constructor(bounds: Bounds) {
      this.bounds = bounds;
      this.limiter = new HostLimiter(bounds.max, bounds.perHost);
    }

    acquire(ask: Ask): void {
      this.waiting.add(ask);
      void this.limiter.acquire(ask.host, ask.slow).then((granted) => {
        this.waiting.delete(ask);
        if (granted) this.held.push(ask);
      });
    }

    release(index: number): void {
      const [ask] = this.held.splice(index, 1);
      this.limiter.release(ask!.host, ask!.slow);
    }

    /** Violations, in words: more slots are held than allowed, or a lane waits although it could get a free slot. */
    violations(): string[] {
      const { max, perHost } = this.bounds;
      const hold = (host: string | null, slow: boolean): number =>
        this.held.filter((ask) => (host === null || ask.host === host) && (!slow || ask.slow)).length;
      const room = (host: string, slow: boolean): number => {
        const quickFree = Math.min(max - hold(null, false), perHost - hold(host, false));
        if (!slow) return quickFree;
        return Math.min(quickFree, half(max) - hold(null, true), half(perHost) - hold(host, true));
      };
      const { inFlightCount: active, slowInFlightCount: slowActive, waiterCount: waiting } = this.limiter;
      const counted = active === this.held.length && slowActive === hold(null, true) && waiting === this.waiting.size;
      return [
        ...(counted ? [] : ['counts']),
        ...this.held.filter((ask) => room(ask.host, ask.slow) < 0).map(({ host }) => `too many at ${host}`),
        ...[...this.waiting].filter((ask) => room(ask.host, ask.slow) > 0).map(({ host }) => `forgotten at ${host}`),
      ];
    }
  }

  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  test.each([
    { max: 1, perHost: 1 },
    { max: 3, perHost: 1 },
    { max: 7, perHost: 3 },
    { max: 16, perHost: 4 },
  ])('stay within $max and $perHost for a host, and none is free while somebody could take it', async (bounds) => {
    const next = random(bounds.max * 31 + bounds.perHost);
    const use = new Use(bounds);
    for (let step = 0; step < STEPS; step += 1) {
      // The load comes in waves: lanes take everything for a while, then all of them release it.
      const growing = Math.floor(step / 100) % 2 === 0;
      if (use.waiting.size < 30 && next() < (growing ? 0.7 : 0.4)) {
        use.acquire({ host: `host-${Math.floor(next() * HOSTS)}`, slow: next() < 0.5, askedAt: step });
      } else if (use.held.length > 0) {
        use.release(Math.floor(next() * use.held.length));
      }
      await settled();
      expect(use.violations()).toEqual([]);
    }
    while (use.held.length > 0) {
      use.release(0);
      await settled();
    }
    expect(use.waiting.size).toBe(0);
    expect(use.limiter.inFlightCount).toBe(0);
  });

  test('are never kept from quick lanes by slow ones that never give theirs back', async () => {
    const next = random(7);
    const use = new Use({ max: 16, perHost: 4 });
    let waitedMost = 0;
    for (let step = 0; step < STEPS; step += 1) {
      const slow = step < 100 && next() < 0.5;
      use.acquire({ host: `host-${Math.floor(next() * HOSTS)}`, slow, askedAt: step });
      await settled();
      expect(use.violations()).toEqual([]);
      // Fast lanes get their answers at once, slow ones never.
      for (let n = 0; n < 2; n += 1) {
        const index = use.held.findIndex((ask) => !ask.slow);
        if (index !== -1) use.release(index);
        await settled();
      }
      for (const ask of use.waiting) if (!ask.slow) waitedMost = Math.max(waitedMost, step - ask.askedAt);
    }
    expect(use.limiter.slowInFlightCount).toBe(8);
    expect(waitedMost).toBeLessThanOrEqual(HOSTS);
  });

  test('come to each slow lane too while quick ones ask without a pause', async () => {
    const next = random(11);
    const use = new Use({ max: 8, perHost: 2 });
    let waitedMost = 0;
    for (let step = 0; step < STEPS; step += 1) {
      while (use.waiting.size < 20) {
        use.acquire({ host: `host-${Math.floor(next() * HOSTS)}`, slow: next() < 0.2, askedAt: step });
        await settled();
      }
      if (use.held.length > 0) use.release(Math.floor(next() * use.held.length));
      await settled();
      for (const ask of use.waiting) waitedMost = Math.max(waitedMost, step - ask.askedAt);
    }
    expect(waitedMost).toBeLessThan(200);
  });
});
