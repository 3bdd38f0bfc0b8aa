import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { LocalBus, type PresenceUpdate } from '../../src/bus/bus.ts';
import { RELIABLE_EVENTS } from '../../src/bus/wire-format.ts';
import { maxPresenceStalenessMs, Presence } from '../../src/live/presence.ts';
import { MAX_NODE_SILENCE_MS } from '../../src/live/remote-presence.ts';
import type { AccountId } from '../../src/model/ids.ts';

const alice = 1 as AccountId;
const bob = 2 as AccountId;
const accountIds = (first: number, count: number): AccountId[] =>
  Array.from({ length: count }, (_, n) => (first + n) as AccountId);

let nowMs: number;
beforeEach(() => {
  nowMs = 1_000_000;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => void jest.restoreAllMocks());

test('who is believed to be there is certain only after nobody would be believed any more who is not', () => {
  expect(maxPresenceStalenessMs(25_000)).toBeGreaterThan(MAX_NODE_SILENCE_MS);
  expect(maxPresenceStalenessMs(10 * 60_000)).toBeGreaterThan(2 * 10 * 60_000 + 5_000);
});

/** Several nodes whose notifications reach each other in order and at once, except those that a test loses. */
class Cluster {
  /** The rows of nodes in the database; null: the database is unreachable. */
  rows: string[] | null;
  isLost: (update: PresenceUpdate, from: string, to: string) => boolean = () => false;
  readonly said: PresenceUpdate[] = [];
  readonly nodes;

  constructor(...names: string[]) {
    this.rows = names;
    this.nodes = names.map((name) => this.#node(name));
    for (const { bus } of this.nodes) bus.publish('resync', RELIABLE_EVENTS);
  }

  #node(name: string) {
    const bus = new LocalBus();
    const told: [AccountId, boolean][] = [];
    const presence = new Presence({
      bus,
      node: name,
      listLiveNodes: async () => this.rows ?? Promise.reject(new Error('the database is away')),
      onChange: (id, online) => void told.push([id, online]),
    });
    bus.subscribe({
      presence: ({ node, update }) => {
        if (node !== name) return;
        this.said.push(update);
        for (const other of this.nodes ?? []) {
          if (other.name !== name && !this.isLost(update, name, other.name))
            other.bus.publish('presence', { node, update });
        }
      },
    });
    presence.start();
    return { name, bus, told, presence };
  }

  /** Lets time pass in steps of a second for the nodes in `running`; the other nodes are frozen. */
  async pass(seconds: number, running = this.nodes): Promise<void> {
    for (let n = 0; n < seconds; n += 1) {
      nowMs += 1_000;
      for (const { presence } of running) presence.tick();
      // Lets the look-up of nodes finish.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  get online(): AccountId[][] {
    return this.nodes.map(({ presence }) => presence.onlineAccounts().sort((a, b) => a - b));
  }
}

describe('nodes agree on who is there', () => {
  test('while somebody comes to both and leaves one after the other, and each change is told once', async () => {
    const cluster = new Cluster('a', 'b');
    const [a, b] = cluster.nodes as [(typeof cluster.nodes)[0], (typeof cluster.nodes)[0]];
    await cluster.pass(5);
    a.presence.firstForegroundSessionStarted(alice);
    b.presence.firstForegroundSessionStarted(alice);
    expect(cluster.online).toEqual([[alice], [alice]]);
    a.presence.lastForegroundSessionBackgrounded(alice);
    await cluster.pass(1);
    expect(cluster.online).toEqual([[alice], [alice]]);
    b.presence.lastForegroundSessionBackgrounded(alice);
    await cluster.pass(1);
    expect(cluster.online).toEqual([[], []]);
    for (const { told } of cluster.nodes) {
      expect(told).toEqual([
        [alice, true],
        [alice, false],
      ]);
    }
  });

  test('when a word was lost, by a snapshot that is asked for', async () => {
    const cluster = new Cluster('a', 'b');
    const [a] = cluster.nodes;
    await cluster.pass(5);
    cluster.isLost = () => true;
    a!.presence.firstForegroundSessionStarted(alice);
    cluster.isLost = () => false;
    a!.presence.firstForegroundSessionStarted(bob);
    expect(cluster.online).toEqual([[alice, bob], []]);
    await cluster.pass(4);
    expect(cluster.online).toEqual([
      [alice, bob],
      [alice, bob],
    ]);
  });

  test('when the last word was lost and nothing follows, within ten seconds', async () => {
    const cluster = new Cluster('a', 'b');
    const [a] = cluster.nodes;
    a!.presence.firstForegroundSessionStarted(alice);
    await cluster.pass(5);
    cluster.isLost = () => true;
    a!.presence.lastForegroundSessionBackgrounded(alice);
    a!.presence.tick();
    cluster.isLost = () => false;
    expect(cluster.online).toEqual([[], [alice]]);
    await cluster.pass(10);
    expect(cluster.online).toEqual([[], []]);
  });

  test('when a part of a snapshot was lost', async () => {
    const cluster = new Cluster('a', 'b');
    for (const id of accountIds(1, 2_000)) cluster.nodes[0]!.presence.firstForegroundSessionStarted(id);
    let lost = 0;
    cluster.isLost = (update) =>
      update.kind === 'change' || (update.kind === 'snapshot' && update.partNumber === 2 && (lost += 1) <= 2);
    cluster.nodes[0]!.presence.firstForegroundSessionStarted(9_999 as AccountId);
    await cluster.pass(20);
    expect(lost).toBeGreaterThan(2);
    expect(cluster.online[1]).toEqual(cluster.online[0]);
  });

  test('with 12,000 people on each of two nodes, and nobody is told of again who stays', async () => {
    const cluster = new Cluster('a', 'b');
    for (const id of accountIds(1, 12_000)) cluster.nodes[0]!.presence.firstForegroundSessionStarted(id);
    for (const id of accountIds(10_001, 12_000)) cluster.nodes[1]!.presence.firstForegroundSessionStarted(id);
    await cluster.pass(10);
    cluster.said.length = 0;
    await cluster.pass(300);
    for (const online of cluster.online) expect(online).toEqual(accountIds(1, 22_000));
    // Each node sends the number of its last change every five seconds.
    expect(cluster.said.length).toBeLessThanOrEqual(2 * 61);
    for (const { told } of cluster.nodes) expect(told).toHaveLength(22_000);
  });
});

describe('the people of a node', () => {
  test('are gone at once when it stops', async () => {
    const cluster = new Cluster('a', 'b');
    cluster.nodes[0]!.presence.firstForegroundSessionStarted(alice);
    await cluster.pass(5);
    cluster.nodes[0]!.presence.stop();
    cluster.nodes[0]!.presence.stop();
    expect(cluster.online).toEqual([[], []]);
    expect(cluster.said.filter(({ kind }) => kind === 'leave')).toHaveLength(1);
    expect(cluster.nodes[1]!.told.at(-1)).toEqual([alice, false]);
  });

  test('are gone as a whole once its row has run out, and not while it has one or is heard', async () => {
    const cluster = new Cluster('a', 'b');
    const [a, b] = cluster.nodes;
    for (const id of accountIds(1, 3)) a!.presence.firstForegroundSessionStarted(id);
    await cluster.pass(5);
    cluster.rows = ['b'];
    await cluster.pass(60);
    expect(cluster.online[1]).toHaveLength(3);
    cluster.rows = ['a', 'b'];
    await cluster.pass(60, [b!]);
    expect(cluster.online[1]).toHaveLength(3);
    cluster.rows = ['b'];
    await cluster.pass(12, [b!]);
    expect(cluster.online[1]).toEqual([]);
  });

  test('stay while the database is away, and no longer than pushes rely on it', async () => {
    const cluster = new Cluster('a', 'b');
    const [a, b] = cluster.nodes;
    a!.presence.firstForegroundSessionStarted(alice);
    await cluster.pass(5);
    cluster.rows = null;
    await cluster.pass(60, [b!]);
    expect(cluster.online[1]).toEqual([alice]);
    await cluster.pass((maxPresenceStalenessMs(0) - 60_000) / 1_000, [b!]);
    expect(cluster.online[1]).toEqual([]);
  });

  test('are those of the process that took its place', async () => {
    const startedMs = Date.now();
    // The process that replaces node a starts a minute later.
    const clock = jest.spyOn(Date, 'now').mockReturnValueOnce(startedMs).mockReturnValueOnce(startedMs);
    clock.mockReturnValue(startedMs + 60_000);
    const cluster = new Cluster('a', 'b', 'a');
    const [before, b, after] = cluster.nodes;
    before!.presence.firstForegroundSessionStarted(alice);
    await cluster.pass(5, [before!, b!]);
    // The former process of node a was killed, and sends nothing more.
    after!.presence.firstForegroundSessionStarted(bob);
    await cluster.pass(15, [b!, after!]);
    expect(b!.presence.onlineAccounts()).toEqual([bob]);
  });
});
