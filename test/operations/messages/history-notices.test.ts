import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { SerializedNotice } from '../../../src/operations/core/serializers.ts';
import { callAs } from '../../support/call.ts';
import type { TestPerson } from '../../support/people.ts';
import { TestServer } from '../../support/server.ts';
import { changes, history, joined, send } from '../conversation-calls.ts';

let server: TestServer;
let alice: TestPerson;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.stop());

type PlacedNotice = SerializedNotice & { readonly rev: number };

/** The first notices of every group, with the seq that precedes each: its creation, and that its owner joined. */
const BEGINNING: [string, number][] = [
  ['created', 0],
  ['joined', 0],
];

/** Creates a group with this title and with alice as a member. */
async function makeGroup(title: string): Promise<number> {
  const { id } = await server.createGroup(title);
  const nick = `alice-${id}`;
  alice = await joined(server, nick, id, 'owner');
  return id;
}

async function page(
  group: number,
  input: object = {},
): Promise<{ seqs: number[]; places: [string, number][]; notices: PlacedNotice[]; complete: boolean }> {
  const answer = await history(server, alice, { conversation: group, notices: true, ...input });
  const { notices, notices_complete: complete } = answer as unknown as {
    notices: PlacedNotice[];
    notices_complete: boolean;
  };
  const places = notices.map(({ kind, details, after_seq: afterSeq }): [string, number] => [
    kind === 'renamed' ? String(details['title']) : kind,
    afterSeq,
  ]);
  return { seqs: answer.messages.map(({ seq }) => seq), places, notices, complete };
}

const rename = (group: number, title: string): Promise<unknown> =>
  callAs(server, alice, 'groups.update', { group, title });

describe('notices in messages.history', () => {
  test('come with the message behind which they were written, in pages of both directions, each once', async () => {
    const group = await makeGroup('Pages');
    await rename(group, 'before all');
    for (let seq = 1; seq <= 6; seq += 1) {
      await send(server, alice, group, `message ${seq}`);
      if (seq % 2 === 0) for (const part of ['a', 'b']) await rename(group, `${seq}${part}`);
    }
    // An edit takes a rev, and does not move the notices among the messages.
    await callAs(server, alice, 'messages.edit', { conversation: group, seq: 2, text: 'edited' });
    const beginning: [string, number][] = [...BEGINNING, ['before all', 0]];
    const behind = (seq: number): [string, number][] => [
      [`${seq}a`, seq],
      [`${seq}b`, seq],
    ];
    expect((await page(group, { limit: 2 })).places).toEqual(behind(6));
    expect((await page(group, { limit: 2, before: 5 })).places).toEqual(behind(4));
    expect((await page(group, { limit: 2, before: 3 })).places).toEqual([...beginning, ...behind(2)]);
    expect((await page(group, { limit: 3, after: 0 })).places).toEqual([...beginning, ...behind(2)]);
    expect((await page(group, { limit: 3, after: 3 })).places).toEqual([...behind(4), ...behind(6)]);
    expect((await page(group, { limit: 1, after: 2 })).places).toEqual([]);
    expect(await page(group, { after: 6 })).toMatchObject({ seqs: [], places: [], complete: true });
    expect(await page(group, { before: 1 })).toMatchObject({ seqs: [], places: [], complete: true });
  });

  test('are those of conversations.sync, and are there only for who asks', async () => {
    const group = await makeGroup('Same');
    await send(server, alice, group, 'one');
    await rename(group, 'two');
    const { notices } = await page(group);
    const synced = (await changes(server, alice, { conversation: group, after_rev: 0 })).changes;
    const expected = synced.flatMap(({ rev, notice }) => (notice === undefined ? [] : [{ rev, ...notice }]));
    expect(notices).toEqual(expected);
    expect(notices).toHaveLength(BEGINNING.length + 1);
    const plain = await history(server, alice, { conversation: group });
    expect(plain).not.toHaveProperty('notices');
    expect(plain).not.toHaveProperty('notices_complete');
  });

  test('come without a message where there is none yet', async () => {
    const group = await makeGroup('Empty');
    await rename(group, 'quiet');
    for (const input of [{}, { after: 0 }, { before: 100 }]) {
      expect(await page(group, input)).toMatchObject({
        seqs: [],
        places: [...BEGINNING, ['quiet', 0]],
        complete: true,
      });
    }
    expect((await page(group, { after: 1 })).places).toEqual([]);
  });

  test('are the newest 200 of a page, which then says that some were left out', async () => {
    const group = await makeGroup('Many');
    await send(server, alice, group, 'one');
    await server.database.query((sql) =>
      sql.begin(async (tx) => {
        await tx`
          insert into notice (conversation_id, rev, after_seq, kind)
          select ${group}, h.last_rev + n, 1, 'many-' || n from conversation_head h, generate_series(1, 201) n
          where h.conversation_id = ${group}`;
        await tx`update conversation_head set last_rev = last_rev + 201 where conversation_id = ${group}`;
      }),
    );
    const { places, complete } = await page(group);
    expect(complete).toBe(false);
    expect(places).toHaveLength(200);
    expect([places[0], places.at(-1)]).toEqual([
      ['many-2', 1],
      ['many-201', 1],
    ]);
  });

  test('begin with those before the first message that a retention rule left', async () => {
    const group = await makeGroup('Removed');
    for (const seq of [1, 2, 3]) {
      await send(server, alice, group, `message ${seq}`);
      await rename(group, `behind ${seq}`);
    }
    await server.database.query(
      (sql) => sql`update conversation_head set first_seq = 3 where conversation_id = ${group}`,
    );
    expect(await page(group)).toMatchObject({
      seqs: [3],
      places: [
        ['behind 2', 2],
        ['behind 3', 3],
      ],
    });
    await server.database.query(
      (sql) => sql`update conversation_head set first_seq = 4 where conversation_id = ${group}`,
    );
    expect(await page(group)).toMatchObject({ seqs: [], places: [['behind 3', 3]] });
  });
});
