import { describe, expect, jest, test } from '@jest/globals';
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

/** Two nodes whose notifications reach each other in order, when the test delivers them. */
class TwoNodes {
  readonly nodes = [this.#node(0), this.#node(1)] as const;
  readonly #queue: { to: number; signal: Signal }[] = [];
  #isDelivering = false;

  #node(index: number) {
    const bus = new LocalBus();
    const here = new Set<AccountId>();
    const told: boolean[] = [];
    const presence = new Presence(
      bus,
      { accounts: here, has: (id) => here.has(id) },
      (_, online) => void told.push(online),
    );
    // A signal is heard by the node that says it, and by the other one.
    bus.subscribe({
      signal: (signal) => {
        if (!this.#isDelivering) this.#queue.push({ to: 1 - index, signal });
      },
    });
    presence.start();
    return {
      bus,
      told,
      presence,
      come: (id: AccountId) => {
        here.add(id);
        presence.came(id);
      },
      go: (id: AccountId) => {
        here.delete(id);
        presence.turnedAway(id);
        presence.look();
      },
    };
  }

  /** Delivers what was said, one after the other, and what is said in answer. */
  deliver(): void {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      const answers: Signal[] = [];
      const { bus } = this.nodes[next.to as 0 | 1];
      const unsubscribe = bus.subscribe({ signal: (signal) => answers.push(signal) });
      this.#isDelivering = true;
      bus.publish('signal', next.signal);
      this.#isDelivering = false;
      unsubscribe();
      // The first is the delivered one itself.
      for (const signal of answers.filter((each) => each !== next.signal)) {
        this.#queue.push({ to: 1 - next.to, signal });
      }
    }
  }
}

describe('two nodes agree on who is there', () => {
  const alice = 1 as AccountId;
  const believed = ({ nodes }: TwoNodes): AccountId[][] => nodes.map(({ presence }) => presence.accounts());

  test('while somebody comes to both and leaves one after the other, and each change is told once', () => {
    const net = new TwoNodes();
    const [first, second] = net.nodes;
    first.come(alice);
    net.deliver();
    second.come(alice);
    net.deliver();
    expect(believed(net)).toEqual([[alice], [alice]]);
    first.go(alice);
    net.deliver();
    // The second node has said that the account is with it.
    expect(believed(net)).toEqual([[alice], [alice]]);
    second.go(alice);
    net.deliver();
    expect(believed(net)).toEqual([[], []]);
    for (const { told } of net.nodes) expect(told.at(-1)).toBe(false);
    expect(second.told).toEqual([true, false]);
  });

  test('when an account leaves one node in the moment in which it comes to the other', () => {
    const net = new TwoNodes();
    const [first, second] = net.nodes;
    first.come(alice);
    net.deliver();
    // Neither has heard of the other's change.
    first.go(alice);
    second.come(alice);
    net.deliver();
    expect(believed(net)).toEqual([[alice], [alice]]);
    second.go(alice);
    first.come(alice);
    net.deliver();
    expect(believed(net)).toEqual([[alice], [alice]]);
  });
});
