import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { BusEvents } from '../../src/bus/bus.ts';
import { PostgresBus, type PostgresBusOptions } from '../../src/bus/postgres-bus.ts';
import { RELIABLE_EVENTS } from '../../src/bus/wire-format.ts';
import type { PostgresqlConfig } from '../../src/config/services.ts';
import { Connection } from '../../src/storage/db/connection.ts';
import { listen, notify } from '../../src/storage/db/notifications.ts';
import { eventually } from '../support/eventually.ts';
import { silentLog, type Log } from '../../src/log.ts';
import type { ConversationId, Seq } from '../../src/model/ids.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { HalfOpenProxy } from '../support/half-open-proxy.ts';

let database: TestDatabase;
const buses: PostgresBus[] = [];

beforeEach(async () => {
  database = await createTestDatabase({ empty: true });
});
afterEach(async () => {
  for (const bus of buses.splice(0)) bus.stop();
  await database.drop();
});

type RecordedEvent = [keyof BusEvents, unknown];

/** The events that a node receives, which a test takes one by one. */
class EventRecorder {
  readonly events: RecordedEvent[] = [];
  #wake: (() => void) | null = null;

  constructor(bus: PostgresBus) {
    for (const event of [
      'messagesCommitted',
      'hookEventsCommitted',
      'hooksChanged',
      'tokensRevoked',
      'resync',
    ] as const) {
      bus.subscribe({ [event]: (payload: unknown) => this.#record([event, payload]) });
    }
  }

  /** Resolves with the next event; only the time-out of the test ends the wait. */
  async next(): Promise<RecordedEvent> {
    while (this.events.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.events.shift()!;
  }

  #record(recorded: RecordedEvent): void {
    this.events.push(recorded);
    this.#wake?.();
  }
}

/** Starts a node that listens. It has received its first event, the resync of its start. */
async function node(
  options: PostgresBusOptions & { log?: Log } = {},
  changes: Partial<PostgresqlConfig> = {},
): Promise<{ bus: PostgresBus; recorder: EventRecorder }> {
  const bus = new PostgresBus(database.open(changes), options.log ?? silentLog(), options);
  buses.push(bus);
  const recorder = new EventRecorder(bus);
  bus.start();
  expect(await recorder.next()).toEqual(resync);
  return { bus, recorder };
}

/** A log with a promise of the next time that it writes the event `wanted`. */
function logUntil(wanted: string): { log: Log; written: () => Promise<void> } {
  let onWritten = (): void => {};
  return {
    log: { ...silentLog(), debug: (event) => event === wanted && onWritten() },
    written: () => new Promise((resolve) => (onWritten = resolve)),
  };
}

/**
 * Starts a node, and a listener that receives every notification. `untilWithoutPeers` waits until the node has received
 * nothing from peers for three heartbeats in a row.
 */
async function nodeWithoutPeers(name: string): Promise<{
  a: Awaited<ReturnType<typeof node>>;
  untilWithoutPeers: () => Promise<void>;
  received: string[];
  listener: Connection;
}> {
  const received: string[] = [];
  const listener = new Connection(database.target, 'test', { onNotify: (payload) => received.push(payload) });
  await listener.run(listen, 5_000);
  // A late heartbeat makes the node reopen its session. Then the count of heartbeats begins again.
  const forget = (): void => void received.splice(0);
  const a = await node({ node: name, heartbeatMs: 100, log: { ...silentLog(), debug: forget } });
  a.bus.subscribe({ resync: forget });
  const untilWithoutPeers = async (): Promise<void> => {
    forget();
    await eventually(
      async () => received.filter((payload) => payload === `${name} .`).length,
      (count) => count >= 5,
    );
  };
  return { a, untilWithoutPeers, received, listener };
}

const group = (id: number): ConversationId => id as ConversationId;
const seq = (n: number): Seq => n as Seq;
const resync: RecordedEvent = ['resync', RELIABLE_EVENTS];
/**
 * The resyncs (events of lost notifications) of a session that had listened: urgent kinds come first, the others a
 * moment later.
 */
const urgentResync: RecordedEvent = ['resync', new Set(['tokensRevoked', 'leasesNeedRebalancing'])];
const lateResync: RecordedEvent = [
  'resync',
  new Set([...RELIABLE_EVENTS].filter((event) => !['tokensRevoked', 'leasesNeedRebalancing'].includes(event))),
];

/** The process ids of the sessions that listen. */
const listeners = (): Promise<number[]> =>
  database.query(async (sql) => {
    const rows = await sql<{ pid: number }[]>`
      select pid from pg_stat_activity where datname = current_database() and application_name = 'klatch listen'`;
    return rows.map(({ pid }) => pid);
  });

describe('PostgresBus', () => {
  test('tells its own process at once and the other node soon, each word once', async () => {
    const [a, b] = [await node(), await node()];
    const advanced = new Map([
      [group(7), seq(42)],
      [group(8), seq(1)],
    ]);
    a.bus.publish('messagesCommitted', advanced);
    expect(a.recorder.events).toEqual([['messagesCommitted', advanced]]);
    expect(await b.recorder.next()).toEqual(['messagesCommitted', advanced]);
    b.bus.publish('hookEventsCommitted', [group(3)]);
    b.bus.publish('hooksChanged', [group(3), group(4)]);
    b.bus.publish('tokensRevoked', ['aa', 'bb']);
    a.recorder.events.shift();
    expect([await a.recorder.next(), await a.recorder.next(), await a.recorder.next()]).toEqual([
      ['hookEventsCommitted', [3]],
      // The next two events waited while `hookEventsCommitted` was sent. Of the waiting events, those about access
      // rights are sent first.
      ['tokensRevoked', ['aa', 'bb']],
      ['hooksChanged', [3, 4]],
    ]);
    // The notification from a to b and back shows that a repeat to the node of the sender would have arrived.
    a.bus.publish('hooksChanged', [group(5)]);
    b.recorder.events.splice(0, 3);
    expect(await b.recorder.next()).toEqual(['hooksChanged', [5]]);
    b.bus.publish('hooksChanged', [group(6)]);
    a.recorder.events.shift();
    expect(await a.recorder.next()).toEqual(['hooksChanged', [6]]);
    expect([...a.recorder.events, ...b.recorder.events]).toEqual([['hooksChanged', [6]]]);
  });

  test('puts what is published while a word is under way together, the newest seq of each conversation', async () => {
    const [a, b] = [await node(), await node()];
    for (let n = 1; n <= 100; n += 1) a.bus.publish('messagesCommitted', new Map([[group(1 + (n % 2)), seq(n)]]));
    const received = new Map<number, number>();
    let events = 0;
    while (received.get(1) !== 100 || received.get(2) !== 99) {
      const [event, payload] = await b.recorder.next();
      expect(event).toBe('messagesCommitted');
      for (const [id, newest] of payload as Map<number, number>) received.set(id, newest);
      events += 1;
    }
    expect(events).toBeLessThanOrEqual(2);
  });

  test.each([877, 5_000])('tells %d conversations one by one, in as many payloads as they need', async (count) => {
    const [a, b] = [await node(), await node()];
    const advanced = new Map(Array.from({ length: count }, (_, i) => [group(100_000 + i), seq(1)]));
    a.bus.publish('messagesCommitted', advanced);
    a.bus.publish('tokensRevoked', ['aa']);
    const received = new Map<ConversationId, Seq>();
    let payloads = 0;
    while (received.size < count) {
      const [event, payload] = await b.recorder.next();
      if (event === 'tokensRevoked') continue;
      expect(event).toBe('messagesCommitted');
      for (const [id, newest] of payload as Map<ConversationId, Seq>) received.set(id, newest);
      payloads += 1;
    }
    expect(received).toEqual(advanced);
    expect(payloads).toBe(Math.ceil(count / 876));
  });

  test('says of what is more than is kept that words of its kind were lost, and no others', async () => {
    const [a, b] = [await node(), await node()];
    const advanced = new Map(Array.from({ length: 25_000 }, (_, i) => [group(100_000 + i), seq(1)]));
    a.bus.publish('messagesCommitted', advanced);
    a.bus.publish('hooksChanged', [group(1)]);
    expect(await b.recorder.next()).toEqual(['hooksChanged', [1]]);
    expect(await b.recorder.next()).toEqual(['resync', new Set(['messagesCommitted'])]);
  });

  test('listens again when its session was killed, and announces the gap', async () => {
    const [a, b] = [await node(), await node()];
    const before = await listeners();
    await database.query((sql) => sql`select pg_terminate_backend(pid) from unnest(${before}::int[]) pid`);
    for (const { recorder } of [a, b]) {
      expect([await recorder.next(), await recorder.next()]).toEqual([urgentResync, lateResync]);
    }
    a.bus.publish('hooksChanged', [group(9)]);
    expect(await b.recorder.next()).toEqual(['hooksChanged', [9]]);
    const after = await listeners();
    expect(after).toHaveLength(2);
    expect(after.filter((pid) => before.includes(pid))).toEqual([]);
  });

  test('notices by its heartbeat that the path swallows packets, and comes back with a gap', async () => {
    const proxy = await HalfOpenProxy.start(database.target);
    const { log, written } = logUntil('bus: the listening session is lost');
    const a = await node({ heartbeatMs: 100, log }, { ...proxy.address, connectTimeoutMs: 2_000 });
    const b = await node();
    proxy.mode = 'swallow';
    await written();
    // Drops the events so far: a late heartbeat of node a may have caused a resync.
    a.recorder.events.splice(0);
    proxy.mode = 'pass';
    expect(await a.recorder.next()).toEqual(urgentResync);
    await eventually(
      async () => {
        b.bus.publish('hooksChanged', [group(9)]);
        return a.recorder.events;
      },
      (events) => JSON.stringify(events).includes('["hooksChanged",[9]]'),
    );
    a.bus.stop();
    await proxy.stop();
  });

  test('tells a word again that was lost, and nobody has to look at everything', async () => {
    const b = await node();
    const proxy = await HalfOpenProxy.start(database.target);
    const { log, written } = logUntil('bus: a notification to the other nodes failed and is repeated');
    const a = await node({ heartbeatMs: 100, log }, { ...proxy.address, connectTimeoutMs: 2_000 });
    proxy.mode = 'reset';
    const lost = written();
    a.bus.publish('tokensRevoked', ['aa']);
    await lost;
    expect(b.recorder.events).toEqual([]);
    proxy.mode = 'pass';
    expect(await b.recorder.next()).toEqual(['tokensRevoked', ['aa']]);
    a.bus.stop();
    await proxy.stop();
  });

  test('says nothing while it is alone, and everything again once another node is heard', async () => {
    const { a, untilWithoutPeers, received, listener } = await nodeWithoutPeers('a');
    const gaps: string[] = [];
    const gapListener = new Connection(database.target, 'test', {
      onNotify: (payload) => payload.endsWith(' *') && gaps.push(payload),
    });
    await gapListener.run(listen, 5_000);
    await untilWithoutPeers();
    a.bus.publish('hooksChanged', [group(1)]);
    await untilWithoutPeers();
    expect(received.filter((payload) => !payload.endsWith(' .'))).toEqual([]);
    // On a busy machine, node a may reopen its session just as b starts. For three heartbeats, a new session sends
    // notifications even without peers, so b misses none and needs no resync.
    for (let round = 1; gaps.length === 0 && round <= 20; round++) {
      await untilWithoutPeers();
      const b = await node({ heartbeatMs: 100 });
      // The test publishes repeatedly: on a busy machine a heartbeat of b may be late, and a has no peers until it
      // arrives.
      await eventually(
        async () => {
          a.bus.publish('hooksChanged', [group(2)]);
          return b.recorder.events;
        },
        (events) => JSON.stringify(events).includes('["hooksChanged",[2]]'),
      );
      b.bus.stop();
    }
    expect(gaps).toEqual(expect.arrayContaining(['a *']));
    gapListener.close();
    listener.close();
  });

  test('asks one node to confirm a change, which its listeners have heard by the time it answers', async () => {
    const [a, b, c] = [await node({ node: 'a' }), await node({ node: 'b' }), await node({ node: 'c' })];
    expect(await a.bus.confirmHooksChanged('b', group(3), 5_000)).toBe(true);
    // The event arrives at least once: a request that is not confirmed within 500 ms is repeated.
    expect([...new Set(b.recorder.events.map((recorded) => JSON.stringify(recorded)))]).toEqual([
      '["hooksChanged",[3]]',
    ]);
    // All nodes receive this event, so every earlier notification to c has arrived before it.
    a.bus.publish('hooksChanged', [group(4)]);
    expect(await c.recorder.next()).toEqual(['hooksChanged', [4]]);
    const many = await Promise.all(
      Array.from({ length: 50 }, (_, n) => a.bus.confirmHooksChanged(n % 2 === 0 ? 'b' : 'c', group(n), 5_000)),
    );
    expect(new Set(many)).toEqual(new Set([true]));
  });

  test('asks although it believes itself alone', async () => {
    const b = await node({ node: 'b', heartbeatMs: 60_000 });
    const { a, untilWithoutPeers, listener } = await nodeWithoutPeers('a');
    await untilWithoutPeers();
    listener.close();
    a.bus.publish('hooksChanged', [group(1)]);
    expect(await a.bus.confirmHooksChanged('b', group(2), 5_000)).toBe(true);
    expect(await b.recorder.next()).toEqual(['hooksChanged', [2]]);
  });

  test('hears no confirmation of a node that is not there, does not listen, or is not the one that was asked', async () => {
    const a = await node({ node: 'a', heartbeatMs: 60_000 });
    expect(await a.bus.confirmHooksChanged('nobody', group(1), 100)).toBe(false);
    const asked: string[] = [];
    const impostor = new Connection(database.target, 'test', { onNotify: (payload) => asked.push(payload) });
    await impostor.run(listen, 5_000);
    const request = a.bus.confirmHooksChanged('b', group(1), 3_000);
    // The request to the node `nobody` may arrive here late, so the test waits for the one to b.
    const found = await eventually(
      async () => asked.map((recorded) => /\?(\w+),b,1$/.exec(recorded)).find((match) => match !== null),
      (match) => match !== undefined,
    );
    const nonce = found![1]!;
    await impostor.run((sql) => notify(sql, `c !${nonce}`), 5_000);
    expect(await request).toBe(false);
    impostor.close();
  });

  test('answers a question that waits when it is stopped', async () => {
    const a = await node();
    const request = a.bus.confirmHooksChanged('nobody', group(1), 60_000);
    a.bus.stop();
    expect(await request).toBe(false);
  });

  test('tells that leases moved', async () => {
    const [a, b] = [await node(), await node()];
    let moved = 0;
    const received = new Promise<void>((resolve) =>
      b.bus.subscribe({ leasesNeedRebalancing: () => (moved += 1) && resolve() }),
    );
    a.bus.publish('leasesNeedRebalancing', undefined);
    await received;
    expect(moved).toBe(1);
  });

  test('keeps what was published before its start for it', async () => {
    const b = await node();
    const bus = new PostgresBus(database.open(), silentLog());
    buses.push(bus);
    bus.publish('hooksChanged', [group(1)]);
    bus.start();
    bus.start();
    expect(await b.recorder.next()).toEqual(['hooksChanged', [1]]);
  });

  test('stops without a trace: no session is left, no word is said, and stopping twice is harmless', async () => {
    const [a, b] = [await node(), await node()];
    a.bus.stop();
    a.bus.stop();
    a.bus.publish('hooksChanged', [group(1)]);
    const late = new PostgresBus(database.open(), silentLog());
    late.start();
    late.stop();
    // This bus is stopped while it sends its first notification.
    const eager = new PostgresBus(database.open(), silentLog());
    eager.subscribe({ resync: () => eager.stop() });
    const stopped = new Promise<void>((resolve) => eager.subscribe({ resync: () => resolve() }));
    eager.start();
    await stopped;
    while ((await listeners()).length !== 1);
    expect(b.recorder.events).toEqual([]);
  });
});
