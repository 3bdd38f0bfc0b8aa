import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { AccountId, Rev } from '../../../src/model/ids.ts';
import { readChanges } from '../../../src/storage/messages/changes.ts';
import { Program, runKlatch } from '../../cli/program.ts';
import { LaneFixture, seqs } from '../../delivery/fixtures/lane-fixture.ts';
import { LiveFixture } from '../../live/fixture.ts';
import { PushStage } from '../../push/stage.ts';
import { fillDatabase } from '../../storage/backup/filled.ts';
import { loadBackup, takeBackup } from '../../storage/backup/fixture.ts';
import { callAs } from '../../support/call.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestPerson } from '../../support/people.ts';
import { MAIN } from '../../support/program-files.ts';
import { readJson, TestServer, type TestGroup } from '../../support/server.ts';
import { changes, history, joined, send } from '../conversation-calls.ts';

/**
 * The two states after a retention rule removed messages: their rows still exist, or, a moment later, they are deleted.
 */
const REMOVALS = [
  ['whose rows are still there', false],
  ['whose rows are gone', true],
] as const;

async function removeBefore(
  database: TestDatabase,
  conversation: number,
  { firstSeq, deletesRows }: { firstSeq: number; deletesRows: boolean },
): Promise<void> {
  await database.query((sql) =>
    sql.begin(async (tx) => {
      await tx`update conversation_head set first_seq = ${firstSeq} where conversation_id = ${conversation}`;
      if (deletesRows) await tx`delete from message where conversation_id = ${conversation} and seq < ${firstSeq}`;
    }),
  );
}

/** The `first_seq` of a conversation in an answer. */
const firstOf = (answer: object): unknown => (answer as { first_seq?: number }).first_seq;

describe.each(REMOVALS)('to clients, messages that were removed, %s,', (_, deletesRows) => {
  let server: TestServer;
  let group: TestGroup;
  let alice: TestPerson;
  let bob: TestPerson;
  beforeAll(async () => {
    server = await TestServer.start({
      endpoints: [{ type: 'websocket', interface: '127.0.0.1', port: 0, tls: null }],
    });
    group = await server.createGroup('Operations');
    alice = await joined(server, 'alice', group.id);
    bob = await joined(server, 'bob', group.id);
    for (let n = 1; n <= 10; n += 1) await send(server, alice, group.id, `message ${n} for @bob`);
    await indexed();
    await removeBefore(server.database, group.id, { firstSeq: 7, deletesRows });
  });
  afterAll(() => server.stop());

  const indexed = (): Promise<unknown> =>
    eventually(
      () =>
        server.database.query(
          (sql) => sql`
            select from conversation_head h left join search_index_progress d using (conversation_id)
            where h.last_rev > coalesce(d.indexed_rev, 0)`,
        ),
      (behind) => behind.length === 0,
    );

  test('are before the beginning of the history, which says so', async () => {
    const read = async (input: object): Promise<[number[], number | null, unknown]> => {
      const page = await history(server, alice, { conversation: group.id, ...input });
      return [page.messages.map(({ seq }) => seq), page.next, firstOf(page)];
    };
    expect(await read({ limit: 3 })).toEqual([[8, 9, 10], 8, 7]);
    expect(await read({ limit: 3, before: 8 })).toEqual([[7], null, 7]);
    expect(await read({ before: 7 })).toEqual([[], null, 7]);
    expect(await read({ before: 3 })).toEqual([[], null, 7]);
    expect(await read({ limit: 2, after: 0 })).toEqual([[7, 8], 8, 7]);
    expect(await read({ after: 5 })).toEqual([[7, 8, 9, 10], null, 7]);
  });

  test('are not synchronized, and a client learns what to drop', async () => {
    const page = await changes(server, alice, { conversation: group.id, after_rev: 0 });
    expect(page.changes.flatMap(({ message }) => message?.seq ?? [])).toEqual([7, 8, 9, 10]);
    expect(firstOf(page)).toBe(7);
    expect(firstOf(await changes(server, alice, { conversation: group.id, after_rev: page.rev }))).toBe(7);
  });

  test('are neither unread nor messages of the group', async () => {
    const shown = await callAs<object>(server, bob, 'conversations.show', { conversation: group.id });
    expect(shown).toMatchObject({ first_seq: 7, last_seq: 10, read_seq: 0, unread: 4, unread_mentions: 4 });
    expect(await server.operate('groups.info', { group: group.id })).toMatchObject({ messages: 4 });
  });

  test('are found by no search, whose pages go on past them', async () => {
    const found: number[] = [];
    let before: string | null = null;
    do {
      const more: object = before === null ? {} : { before };
      const page: { messages: { seq: number }[]; next: string | null } = await callAs(server, bob, 'messages.search', {
        text: 'message',
        limit: 2,
        ...more,
      });
      found.push(...page.messages.map(({ seq }) => seq));
      before = page.messages.length === 0 ? null : page.next;
    } while (before !== null);
    expect(found).toEqual([10, 9, 8, 7]);
  });

  test('can be neither edited nor deleted', async () => {
    for (const [operation, more] of [
      ['messages.edit', { text: 'other' }],
      ['messages.delete', {}],
    ] as const) {
      const changed = callAs(server, alice, operation, { conversation: group.id, seq: 6, ...more });
      await expect(changed).rejects.toMatchObject({ code: 'not_found' });
    }
  });

  test('are no part of what the terminal client shows, which says where the history begins', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'klatch-first-seq-'));
    try {
      const env = { XDG_CONFIG_HOME: folder, XDG_STATE_HOME: folder };
      const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'bob' });
      const signIn = ['chat', 'sign-in', '--server', server.endpoints[0]!.url, '--link'] as const;
      const signedIn = new Program([process.execPath, MAIN, ...signIn], { env, input: link });
      expect(await signedIn.ended).toMatchObject({ code: 0 });
      const read = (last: string) => runKlatch(['chat', 'read', 'Operations', '--keep-unread', '--last', last], env);
      const all = (await read('20')).stdout.trimEnd().split('\n');
      expect(all[0]).toBe('-- messages before #7 were removed by a retention rule');
      expect(all.slice(1).map((line) => /#(\d+)/.exec(line)?.[1])).toEqual(['7', '8', '9', '10']);
      expect((await read('2')).stdout).not.toContain('removed');
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

describe.each(REMOVALS)('to live clients, messages that were removed, %s,', (_, deletesRows) => {
  test('are not sent, and the answer says where the conversation begins', async () => {
    const live = await LiveFixture.start();
    try {
      for (let n = 1; n <= 5; n += 1) await live.post(`message ${n}`);
      await removeBefore(live.server.database, live.group.id, { firstSeq: 4, deletesRows });
      const client = await live.signIn(live.urls[0]);
      const followed = await client.call('live.subscribe', { default: 'start' });
      expect(followed.conversations).toEqual([{ id: live.group.id, rev: 0, first_seq: 4 }]);
      await live.post('message 6');
      const seen = (): number[] => client.changes(live.group.id).flatMap(({ message }) => message?.seq ?? []);
      await eventually(seen, (all) => all.includes(6));
      expect(seen()).toEqual([4, 5, 6]);
    } finally {
      await live.stop();
    }
  });
});

describe.each(REMOVALS)('to hooks, messages that were removed, %s,', (_, deletesRows) => {
  let lane: LaneFixture;
  beforeEach(async () => {
    lane = await LaneFixture.start();
  });
  afterEach(() => lane.stop());

  const arrived = (): number[] => lane.receiver.arrivals.flatMap(seqs);
  const notices = async (): Promise<unknown[]> => {
    const request = { conversationId: lane.group.id as never, afterRev: 0 as Rev, limit: 100, maxBytes: 10_000 };
    const page = await lane.server.database.query((sql) => readChanges(sql, request));
    return page!.changes.flatMap((change) =>
      change.type === 'notice' && change.notice.kind === 'hook_messages_expired' ? [change.notice.details] : [],
    );
  };

  test.each(['strict', 'none'])('are passed by a hook with order %s, with one row and one notice', async (order) => {
    let failing = true;
    const delivered: number[] = [];
    await lane.register({ order }, (arrival) => {
      if (failing) return 500;
      delivered.push(...seqs(arrival));
      return 200;
    });
    await lane.post(1, 10);
    await lane.receiver.received(10);
    await removeBefore(lane.server.database, lane.group.id, { firstSeq: 7, deletesRows });
    // The hook fails until then, because the server may still send a message that it read a moment before the removal.
    await eventually(
      () => lane.log(),
      (rows) => rows.some((row) => row.endsWith('expired')),
    );
    failing = false;
    await lane.rowWhere(({ cursor }) => cursor === 10);
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 0,
    );
    expect(delivered.sort((a, b) => a - b)).toEqual([7, 8, 9, 10]);
    expect((await lane.log()).filter((row) => row.endsWith('expired'))).toEqual(['1-6 expired']);
    expect(await notices()).toEqual([{ hook: lane.hook, host: '127.0.0.1', messages: 6 }]);
  });

  test('are passed by a paused hook at the next start, and are not pending', async () => {
    await lane.register();
    await lane.post(1, 2);
    await lane.rowWhere(({ cursor }) => cursor === 2);
    await lane.pause(true);
    await lane.post(3, 10);
    await removeBefore(lane.server.database, lane.group.id, { firstSeq: 7, deletesRows });
    expect(await lane.health()).toMatchObject({ pending: 4 });
    await lane.server.restart();
    await lane.rowWhere(({ cursor }) => cursor === 6);
    expect((await lane.log()).at(-1)).toBe('3-6 expired');
    expect(await notices()).toEqual([{ hook: lane.hook, host: '127.0.0.1', messages: 4 }]);
    expect(arrived()).toEqual([1, 2]);
  });

  test('end a request apart, of which the rest is sent', async () => {
    await lane.register({ order: 'none', batch: 4 });
    await lane.post(1, 8);
    await lane.rowWhere(({ cursor }) => cursor === 8);
    await lane.pause(true);
    await lane.server.database.query(async (sql) => {
      for (const [first, last] of [[1, 2] as const, [5, 8] as const])
        await sql`
          insert into delivery_retry (conversation_id, hook_id, seq, last_seq, attempts, next_at)
          values ((select conversation_id from reverse_hook where id = ${lane.hook}), ${lane.hook}, ${first}, ${last}, 1, now())`;
    });
    await removeBefore(lane.server.database, lane.group.id, { firstSeq: 7, deletesRows });
    lane.receiver.arrivals.splice(0);
    expect(await lane.health()).toMatchObject({ pending: 2 });
    await lane.pause(false);
    await eventually(
      () => lane.retries(),
      (rows) => rows.length === 0,
    );
    expect(arrived()).toEqual([7, 8]);
    expect((await lane.log()).filter((row) => row.endsWith('expired'))).toEqual(['1-6 expired']);
    expect(await notices()).toEqual([{ hook: lane.hook, host: '127.0.0.1', messages: 4 }]);
  });

  test('are not delivered again: a place before them is moved, a single one is refused', async () => {
    await lane.register();
    await lane.post(1, 10);
    await lane.rowWhere(({ cursor }) => cursor === 10);
    await removeBefore(lane.server.database, lane.group.id, { firstSeq: 7, deletesRows });
    const redeliver = (request: object): Promise<{ from: string | null; pending: number }> =>
      lane.server.operate('hooks.redeliver', { hook: lane.hook, ...request });
    const id = (seq: number): string => `${lane.group.id}:${seq}`;
    await expect(redeliver({ only: [id(8), id(6)] })).rejects.toThrow(
      `${id(6)} was removed by a retention rule; the group begins with ${id(7)}`,
    );
    for (const from of [id(3), '2020-01-01T00:00:00Z']) {
      lane.receiver.arrivals.splice(0);
      expect(await redeliver({ from })).toMatchObject({ from: id(7), pending: 4 });
      await lane.receiver.received(4);
      expect(arrived()).toEqual([7, 8, 9, 10]);
      await lane.rowWhere(({ cursor }) => cursor === 10);
    }
  });

  test('are unknown to a hook that is registered later, and all of them can be removed', async () => {
    await lane.post(1, 10);
    await removeBefore(lane.server.database, lane.group.id, { firstSeq: 11, deletesRows });
    await lane.register();
    await lane.post(11, 12);
    await lane.rowWhere(({ cursor }) => cursor === 12);
    expect(arrived()).toEqual([11, 12]);
    expect(await notices()).toEqual([]);
  });
});

describe.each(REMOVALS)('to devices, messages that were removed, %s,', (_, deletesRows) => {
  let stage: PushStage;
  let alice: AccountId;
  beforeAll(async () => {
    stage = await PushStage.open();
  });
  beforeEach(async () => {
    [alice] = (await stage.members('alice')) as [AccountId];
    await stage.device(alice);
  });
  afterEach(() => stage.clear());
  afterAll(() => stage.close());

  test('are told to nobody, and count as unread nowhere', async () => {
    for (let n = 1; n <= 10; n += 1) await stage.post(`message ${n}`);
    await removeBefore(stage.database, stage.group.id, { firstSeq: 7, deletesRows });
    stage.start();
    await stage.settled(10);
    expect(stage.got().map(({ note }) => note)).toMatchObject([
      { firstSeq: 7, lastSeq: 10, accountUnreadCount: 4, text: 'Sender 0: message 10' },
    ]);
  });

  test('are told to nobody when their pushes wait already, and hold up nobody', async () => {
    stage.foreground.add(alice);
    const queue = stage.start();
    for (let n = 1; n <= 3; n += 1) await stage.post(`message ${n}`);
    await stage.setForeground(3);
    await stage.waits(1);
    await queue.stop(1_000);
    await removeBefore(stage.database, stage.group.id, { firstSeq: 4, deletesRows });
    await stage.database.query((sql) => sql`update push_pending set next_at = now()`);
    stage.foreground.clear();
    stage.start();
    await stage.settled(3);
    await stage.post('message 4');
    await stage.settled(4);
    expect(stage.told()).toEqual([['web-1', 'Sender 0: message 4']]);
  });
});

describe('a backup', () => {
  test('has where each conversation begins', async () => {
    const [source, target] = [await createTestDatabase(), await createTestDatabase({ empty: true })];
    try {
      await fillDatabase(source);
      const heads = (database: TestDatabase) =>
        database.query((sql) => sql`select conversation_id, first_seq, last_seq from conversation_head order by 1`);
      const [before] = await heads(source);
      const { conversation_id: id, last_seq: firstSeq } = before as { conversation_id: number; last_seq: number };
      await removeBefore(source, id, { firstSeq, deletesRows: true });
      await loadBackup(target.target, (await takeBackup(source.target)).bytes);
      expect(await heads(target)).toEqual(await heads(source));
      expect((await heads(target))[0]).toMatchObject({ conversation_id: id, first_seq: firstSeq });
    } finally {
      await source.drop();
      await target.drop();
    }
  });
});

describe('a file', () => {
  test('of a message that was removed is read by nobody any more', async () => {
    const server = await TestServer.start();
    try {
      const group = await server.createGroup();
      const alice = await joined(server, 'alice', group.id);
      const headers = { authorization: `Bearer ${alice.token}`, 'content-type': 'text/plain' };
      const upload = await readJson(
        await fetch(`${server.url}/v1/files?name=note.txt`, { method: 'POST', headers, body: 'a note' }),
      );
      const id = (upload.body as { id: string }).id;
      await send(server, alice, group.id, 'with a file', { files: [id] });
      await send(server, alice, group.id, 'without one');
      const read = async (): Promise<number> => (await fetch(`${server.url}/v1/files/${id}`, { headers })).status;
      expect(await read()).toBe(200);
      await removeBefore(server.database, group.id, { firstSeq: 2, deletesRows: false });
      expect(await read()).toBe(404);
    } finally {
      await server.stop();
    }
  });
});
