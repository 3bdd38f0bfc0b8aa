import { expect, jest, test } from '@jest/globals';
import { LocalBus, type Signal } from '../../src/bus/bus.ts';
import { certainAfterMs, Presence } from '../../src/live/presence.ts';
import type { AccountId } from '../../src/model/ids.ts';

test('who is believed to be there is certain only after nobody would be believed any more who is not', () => {
  // What other nodes say is believed for three minutes; a dead connection is found after two heartbeats.
  expect(certainAfterMs(25_000)).toBeGreaterThan(3 * 60_000);
  expect(certainAfterMs(10 * 60_000)).toBeGreaterThan(2 * 10 * 60_000 + 5_000);
});

test('a node that stops tells the others at once who has left it', () => {
  const bus = new LocalBus();
  const here = new Set<AccountId>();
  const told: Signal[] = [];
  bus.subscribe({ signal: (signal) => told.push(signal) });
  const presence = new Presence(
    bus,
    {
      get accounts() {
        return here;
      },
      has: (id) => here.has(id),
    },
    () => {},
  );
  presence.start();
  const alice = 1 as AccountId;
  here.add(alice);
  presence.came(alice);
  here.delete(alice);
  presence.went(alice);
  expect(told.map((each) => each.kind === 'presence' && each.online)).toEqual([true]);
  presence.stop();
  presence.stop();
  expect(told).toEqual([
    { kind: 'presence', accountId: alice, online: true },
    { kind: 'presence', accountId: alice, online: false },
  ]);
  expect(presence.accounts()).toEqual([]);
});

test.each([19, 1_000, 50_000])('each of %d accounts is told of again within a minute, again and again', (count) => {
  let nowMs = 0;
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  try {
    const accounts = Array.from({ length: count }, (_, n) => (n + 1) as AccountId);
    const bus = new LocalBus();
    const toldMs = new Map<AccountId, number>();
    let longestMs = 0;
    bus.subscribe({
      signal: (signal) => {
        if (signal.kind !== 'presence') return;
        longestMs = Math.max(longestMs, nowMs - (toldMs.get(signal.accountId) ?? 0));
        toldMs.set(signal.accountId, nowMs);
      },
    });
    const presence = new Presence(bus, { accounts, has: () => true }, () => {});
    for (; nowMs <= 300_000; nowMs += 1_000) presence.look();
    expect(toldMs.size).toBe(count);
    expect(longestMs).toBeLessThanOrEqual(60_000);
    expect(nowMs - Math.min(...[...toldMs.values()].slice(0, 1_000))).toBeLessThanOrEqual(60_000);
  } finally {
    clock.mockRestore();
  }
});
