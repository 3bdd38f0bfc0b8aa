import { expect, test } from '@jest/globals';
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
