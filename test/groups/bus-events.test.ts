import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { silentLog } from '../../src/log.ts';
import type { BusEvents } from '../../src/bus/bus.ts';
import { PostgresBus } from '../../src/bus/postgres-bus.ts';
import type { Database } from '../../src/storage/database.ts';
import { callAs } from '../support/call.ts';
import { eventually } from '../support/eventually.ts';
import { TestServer } from '../support/server.ts';
import { createGroup, createPeople, type People } from './fixture.ts';

type ReceivedEvents = {
  [Event in 'membersChanged' | 'nonMessageChangesCommitted' | 'tokensRevoked' | 'hooksChanged']: unknown[];
};

let server: TestServer;
let people: People;
let other: PostgresBus;
let database: Database;
const received: ReceivedEvents = {
  membersChanged: [],
  nonMessageChangesCommitted: [],
  tokensRevoked: [],
  hooksChanged: [],
};
beforeAll(async () => {
  server = await TestServer.start();
  people = await createPeople(server, 'alice', 'bob', 'carol');
  // This bus acts as another node on the same database, which receives notifications after a commit.
  database = server.database.open();
  other = new PostgresBus(database, silentLog(), { node: 'another' });
  const take = (event: keyof ReceivedEvents) => (items: readonly unknown[]) => void received[event].push(...items);
  other.subscribe(
    Object.fromEntries(Object.keys(received).map((e) => [e, take(e as keyof ReceivedEvents)])) as Partial<BusEvents>,
  );
  other.start();
  // The other node begins to listen at an unknown moment, so groups are created until it gets a notification.
  await eventually(
    () => as('alice', 'groups.create', { title: 'Heard?' }),
    () => received.nonMessageChangesCommitted.length > 0,
  );
});
afterAll(async () => {
  other.stop();
  await server.stop();
});

const as = (nick: string, name: string, input: object) => callAs(server, people[nick]!, name, input);

/** Creates a group. Resolves when the other node got the notification of it, and so of everything before. */
async function barrier(): Promise<number> {
  const { id } = await as('alice', 'groups.create', { title: 'Heard?' });
  await eventually(
    () => received.nonMessageChangesCommitted,
    (nonMessageChangesCommitted) => nonMessageChangesCommitted.includes(id),
  );
  return id;
}

/** The events that the other node gets because of `work`, after all of them have arrived. */
async function eventsOf(work: () => Promise<unknown>): Promise<ReceivedEvents> {
  await barrier();
  for (const items of Object.values(received)) items.length = 0;
  await work();
  const end = await barrier();
  const ours = (item: unknown): boolean => item !== end && (item as { conversationId?: number }).conversationId !== end;
  return Object.fromEntries(
    Object.entries(received).map(([event, items]) => [event, items.filter(ours)]),
  ) as ReceivedEvents;
}

describe('a change of a group is told to every node behind its commit', () => {
  test.each([
    ['groups.add-member', { user: 'carol' }, 'carol'],
    ['groups.set-role', { user: 'bob', role: 'member' }, 'bob'],
    ['groups.remove-member', { user: 'bob' }, 'bob'],
    ['groups.update', { title: 'New' }, null],
    ['groups.archive', {}, null],
  ] as const)('%s', async (name, input, member) => {
    const group = await createGroup(server, people['alice']!, { members: { bob: 'admin' } });
    const events = await eventsOf(() => as('alice', name, { group, ...input }));
    expect(events.nonMessageChangesCommitted).toEqual([group]);
    const accountId = member === null ? null : people[member]!.id;
    expect(events.membersChanged).toEqual(accountId === null ? [] : [{ conversationId: group, accountId }]);
  });

  test('groups.transfer, of both who change', async () => {
    const group = await createGroup(server, people['alice']!, { members: { bob: 'member' } });
    const events = await eventsOf(() => as('alice', 'groups.transfer', { group, user: 'bob' }));
    const accounts = events.membersChanged.map((each) => (each as { accountId: number }).accountId);
    expect(new Set(accounts)).toEqual(new Set([people['alice']!.id, people['bob']!.id]));
  });

  test('private.open, to both of its two, and the second time nothing', async () => {
    let id = 0;
    const first = await eventsOf(async () => ({ id } = await as('alice', 'private.open', { user: 'bob' })));
    expect(first.membersChanged).toHaveLength(2);
    expect(first.nonMessageChangesCommitted).toEqual([id]);
    const second = await eventsOf(() => as('bob', 'private.open', { user: 'alice' }));
    expect(second).toEqual({ membersChanged: [], nonMessageChangesCommitted: [], tokensRevoked: [], hooksChanged: [] });
  });

  test('a token that was replaced, and a hook that was added', async () => {
    const group = await createGroup(server, people['alice']!);
    const rotated = await eventsOf(() => as('alice', 'groups.rotate-token', { group }));
    expect([rotated.tokensRevoked.length, rotated.nonMessageChangesCommitted]).toEqual([1, [group]]);
    const added = await eventsOf(() => as('alice', 'hooks.create', { group, url: 'https://example.org/' }));
    expect([added.hooksChanged, added.nonMessageChangesCommitted]).toEqual([[group], [group]]);
  });

  test('what is refused says nothing', async () => {
    const group = await createGroup(server, people['alice']!, { members: { bob: 'member' } });
    const events = await eventsOf(async () => {
      for (const [name, input] of [
        ['groups.remove-member', { user: 'carol' }],
        ['groups.transfer', { user: 'carol' }],
        ['groups.leave', {}],
      ] as const)
        await expect(as('alice', name, { group, ...input })).rejects.toThrow();
    });
    expect(events).toEqual({ membersChanged: [], nonMessageChangesCommitted: [], tokensRevoked: [], hooksChanged: [] });
  });
});
