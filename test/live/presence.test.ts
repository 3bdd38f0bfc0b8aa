import { describe, expect, jest, test } from '@jest/globals';
import { LocalBus, type EphemeralEvent } from '../../src/bus/bus.ts';
import { maxPresenceStalenessMs, Presence } from '../../src/live/presence.ts';
import type { AccountId } from '../../src/model/ids.ts';

test('who is believed to be there is certain only after nobody would be believed any more who is not', () => {
  // What other nodes say is believed for three minutes; a dead connection is found after two heartbeats.
  expect(maxPresenceStalenessMs(25_000)).toBeGreaterThan(3 * 60_000);
  expect(maxPresenceStalenessMs(10 * 60_000)).toBeGreaterThan(2 * 10 * 60_000 + 5_000);
});

test('a node that stops tells the others at once who has left it', () => {
  const bus = new LocalBus();
  const local = new Set<AccountId>();
  const published: EphemeralEvent[] = [];
  bus.subscribe({ ephemeral: (signal) => published.push(signal) });
  const presence = new Presence(
    bus,
    {
      get accounts() {
        return local;
      },
      has: (id) => local.has(id),
    },
    () => {},
  );
  presence.start();
  const alice = 1 as AccountId;
  local.add(alice);
  presence.firstForegroundSessionStarted(alice);
  local.delete(alice);
  presence.lastForegroundSessionEnded(alice);
  expect(published.map((each) => each.kind === 'presence' && each.online)).toEqual([true]);
  presence.stop();
  presence.stop();
  expect(published).toEqual([
    { kind: 'presence', accountId: alice, online: true },
    { kind: 'presence', accountId: alice, online: false },
  ]);
  expect(presence.onlineAccounts()).toEqual([]);
});

test.each([19, 1_000, 50_000])('each of %d accounts is told of again within a minute, again and again', (count) => {
  let nowMs = 0;
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  try {
    const accounts = Array.from({ length: count }, (_, n) => (n + 1) as AccountId);
    const bus = new LocalBus();
    const publishedMs = new Map<AccountId, number>();
    let longestMs = 0;
    bus.subscribe({
      ephemeral: (signal) => {
        if (signal.kind !== 'presence') return;
        longestMs = Math.max(longestMs, nowMs - (publishedMs.get(signal.accountId) ?? 0));
        publishedMs.set(signal.accountId, nowMs);
      },
    });
    const presence = new Presence(bus, { accounts, has: () => true }, () => {});
    for (; nowMs <= 300_000; nowMs += 1_000) presence.tick();
    expect(publishedMs.size).toBe(count);
    expect(longestMs).toBeLessThanOrEqual(60_000);
    expect(nowMs - Math.min(...[...publishedMs.values()].slice(0, 1_000))).toBeLessThanOrEqual(60_000);
  } finally {
    clock.mockRestore();
  }
});

/** Two nodes whose notifications reach each other in order, when the test delivers them. */
class TwoNodes {
  readonly nodes = [this.#node(0), this.#node(1)] as const;
  readonly #queue: { to: number; signal: EphemeralEvent }[] = [];
  #isDelivering = false;

  #node(index: number) {
    const bus = new LocalBus();
    const local = new Set<AccountId>();
    const published: boolean[] = [];
    const presence = new Presence(
      bus,
      { accounts: local, has: (id) => local.has(id) },
      (_, online) => void published.push(online),
    );
    // A signal is heard by the node that says it, and by the other one.
    bus.subscribe({
      ephemeral: (signal) => {
        if (!this.#isDelivering) this.#queue.push({ to: 1 - index, signal });
      },
    });
    presence.start();
    return {
      bus,
      published,
      presence,
      connect: (id: AccountId) => {
        local.add(id);
        presence.firstForegroundSessionStarted(id);
      },
      disconnect: (id: AccountId) => {
        local.delete(id);
        presence.accountInBackground(id);
        presence.tick();
      },
    };
  }

  /** Delivers what was said, one after the other, and what is said in answer. */
  deliver(): void {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      const responses: EphemeralEvent[] = [];
      const { bus } = this.nodes[next.to as 0 | 1];
      const unsubscribe = bus.subscribe({ ephemeral: (signal) => responses.push(signal) });
      this.#isDelivering = true;
      bus.publish('ephemeral', next.signal);
      this.#isDelivering = false;
      unsubscribe();
      // The first is the delivered one itself.
      for (const signal of responses.filter((each) => each !== next.signal)) {
        this.#queue.push({ to: 1 - next.to, signal });
      }
    }
  }
}

describe('two nodes agree on who is there', () => {
  const alice = 1 as AccountId;
  const onlineOn = ({ nodes }: TwoNodes): AccountId[][] => nodes.map(({ presence }) => presence.onlineAccounts());

  test('while somebody comes to both and leaves one after the other, and each change is told once', () => {
    const cluster = new TwoNodes();
    const [first, second] = cluster.nodes;
    first.connect(alice);
    cluster.deliver();
    second.connect(alice);
    cluster.deliver();
    expect(onlineOn(cluster)).toEqual([[alice], [alice]]);
    first.disconnect(alice);
    cluster.deliver();
    // The second node has said that the account is with it.
    expect(onlineOn(cluster)).toEqual([[alice], [alice]]);
    second.disconnect(alice);
    cluster.deliver();
    expect(onlineOn(cluster)).toEqual([[], []]);
    for (const { published } of cluster.nodes) expect(published.at(-1)).toBe(false);
    expect(second.published).toEqual([true, false]);
  });

  test('when an account leaves one node in the moment in which it comes to the other', () => {
    const cluster = new TwoNodes();
    const [first, second] = cluster.nodes;
    first.connect(alice);
    cluster.deliver();
    // Neither has heard of the other's change.
    first.disconnect(alice);
    second.connect(alice);
    cluster.deliver();
    expect(onlineOn(cluster)).toEqual([[alice], [alice]]);
    second.disconnect(alice);
    first.connect(alice);
    cluster.deliver();
    expect(onlineOn(cluster)).toEqual([[alice], [alice]]);
  });
});
