import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LocalBus } from '../../src/bus/bus.ts';
import { LogFollower, type LogFollowerOptions } from '../../src/bus/log-follower.ts';
import { RELIABLE_EVENTS } from '../../src/bus/wire-format.ts';
import type { ConversationId, Seq } from '../../src/model/ids.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import { MessageLog } from '../../src/storage/messages/message-log.ts';
import { logOptions, makeGroups, post, type StoredGroup } from '../storage/fixture.ts';
import { DatabaseProxy } from '../support/database-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLog } from '../support/recording-log.ts';

let database: TestDatabase;
let pool: Pool;
let bus: LocalBus;
/** A message log that publishes its commits on the bus. */
let log: MessageLog;
/** A message log that commits without a notification, as if the notification was lost. */
let silent: MessageLog;
let groups: [StoredGroup, StoredGroup, StoredGroup];
/** The batches that the follower passed to its worker, in their order. */
let turns: (readonly ConversationId[])[];
let lines: string[];
let follower: LogFollower;
beforeEach(async () => {
  database = await createTestDatabase();
  const pools = database.open();
  pool = pools.general;
  bus = new LocalBus();
  const onCommitted = (heads: ReadonlyMap<ConversationId, Seq>): void => bus.publish('messagesCommitted', heads);
  log = new MessageLog(pools.intake, logOptions({ onCommitted }));
  silent = new MessageLog(pools.intake, logOptions());
  groups = (await makeGroups(database, 3)) as [StoredGroup, StoredGroup, StoredGroup];
  await database.query(
    (sql) => sql`create table copied_head (conversation_id bigint primary key, seq bigint not null)`,
  );
  turns = [];
  lines = [];
});
afterEach(async () => {
  await follower.stop();
  await log.stop();
  await silent.stop();
  await database.drop();
});

/** Starts a follower whose worker copies the heads of conversations. */
function start(changes: Partial<LogFollowerOptions> = {}, of = pool): void {
  follower = new LogFollower({
    bus,
    log: recordingLog(lines),
    events: ['messagesCommitted'],
    findConversations: ({ after, limit }) =>
      of.run(async (sql) => {
        const rows = await sql<{ id: ConversationId }[]>`
          select conversation_id as id from conversation_head h left join copied_head c using (conversation_id)
          where conversation_id > ${after} and h.last_seq > coalesce(c.seq, 0) order by 1 limit ${limit}`;
        return rows.map(({ id }) => id);
      }),
    process: async (conversations) => {
      turns.push(conversations);
      await copyHeads(conversations, of);
      return [];
    },
    maxBatchSize: 1,
    notifiedBeforeSwept: false,
    beforeTurn: () => Promise.resolve(true),
    debounceMs: () => 0,
    pauseFactor: () => 0,
    sweepIntervalMs: 3_600_000,
    databaseRetryDelayMs: 20,
    texts: { waitsForDatabase: 'the database is away', conversationSkipped: 'skipped' },
    ...changes,
  });
  follower.start();
}

const copyHeads = (conversations: readonly ConversationId[], of = pool): Promise<unknown> =>
  of.transaction(
    (tx) => tx`
    insert into copied_head select conversation_id, last_seq from conversation_head
    where conversation_id = any(${[...conversations]}::bigint[])
    on conflict (conversation_id) do update set seq = excluded.seq`,
  );

const copied = (): Promise<[ConversationId, number][]> =>
  database.query(async (sql) => {
    const rows = await sql<{ id: ConversationId; seq: number }[]>`
      select conversation_id as id, seq from copied_head order by 1`;
    return rows.map(({ id, seq }) => [id, seq]);
  });
const reaches = (...seqs: number[]): Promise<unknown> =>
  eventually(copied, (heads) => JSON.stringify(heads.map(([, seq]) => seq)) === JSON.stringify(seqs));
const turnsOf = (group: StoredGroup): number => turns.filter((batch) => batch.includes(group.id)).length;
const until = (right: () => boolean): Promise<unknown> => eventually(right, (is) => is);

describe('a follower of the log', () => {
  test('processes what was there before it, what the bus announces, and after a resync what nothing announced', async () => {
    await silent.append(post(groups[0], 'before'));
    start();
    await reaches(1);
    await log.append(post(groups[1], 'announced'));
    await reaches(1, 1);
    await silent.append(post(groups[2], 'not announced'));
    bus.publish('resync', RELIABLE_EVENTS);
    await reaches(1, 1, 1);
  });

  test('finds by its next sweep what nothing announced', async () => {
    start({ sweepIntervalMs: 50 });
    await silent.append(post(groups[0], 'not announced'));
    await reaches(1);
  });

  test('hears only the events of its worker', async () => {
    start({ events: ['nonMessageChangesCommitted'] });
    bus.publish('messagesCommitted', new Map([[groups[0].id, 1 as Seq]]));
    bus.publish('nonMessageChangesCommitted', [groups[1].id]);
    await until(() => turnsOf(groups[1]) > 0);
    expect(turnsOf(groups[0])).toBe(0);
  });

  test('sweeps page by page, in batches that grow and stay within their bound', async () => {
    await database.query(
      (sql) => sql`
      with made as (
        insert into conversation (kind, title) select 'group', 'many' from generate_series(1, 1001) returning id
      )
      insert into conversation_head (conversation_id, last_seq, last_rev, last_at) select id, 1, 1, now() from made`,
    );
    start({ maxBatchSize: 20 });
    await eventually(copied, (heads) => heads.length === 1_001);
    expect(turns.flat()).toHaveLength(1_001);
    expect(turns[0]).toHaveLength(1);
    expect(Math.max(...turns.map((batch) => batch.length))).toBeLessThanOrEqual(20);
    expect(turns.length).toBeLessThan(1_001);
  });

  test.each([
    ['before those of a sweep', true],
    ['after those of a sweep', false],
  ])('processes new messages of a conversation in one turn, as its worker wants %s', async (_, newMessagesFirst) => {
    const [newer, ...others] = groups;
    for (const group of others) await silent.append(post(group, 'of a sweep'));
    const first = Promise.withResolvers<void>();
    start({
      notifiedBeforeSwept: newMessagesFirst,
      process: async (conversations) => {
        turns.push(conversations);
        await first.promise;
        await copyHeads(conversations);
        return [];
      },
    });
    await until(() => turns.length === 1);
    for (let seq = 1; seq <= 20; seq += 1) await log.append(post(newer, 'new'));
    first.resolve();
    await reaches(20, 1, 1);
    const [second, third] = newMessagesFirst ? [newer, others[1]] : [others[1], newer];
    expect(turns).toEqual([[others[0].id], [second.id], [third.id]]);
  });

  test('finds more conversations than it queues by a sweep', async () => {
    start();
    await log.append(post(groups[0], 'hello'));
    await reaches(1);
    await silent.append(post(groups[1], 'not announced'));
    const many = Array.from({ length: 10_001 }, (_, index): [ConversationId, Seq] => [
      (1_000 + index) as ConversationId,
      1 as Seq,
    ]);
    bus.publish('messagesCommitted', new Map(many));
    await reaches(1, 1);
    expect(turns).toEqual([[groups[0].id], [groups[1].id]]);
  });

  test('drops what is queued where the worker needs none of it, and keeps what comes meanwhile', async () => {
    const asked: (() => void)[] = [];
    let isNeeded = false;
    start({
      beforeTurn: async () => {
        const answer = isNeeded;
        if (!answer) await new Promise<void>((resolve) => asked.push(resolve));
        return answer;
      },
    });
    await until(() => asked.length === 1);
    asked[0]!();
    await log.append(post(groups[0], 'needed by nobody'));
    await until(() => asked.length === 2);
    await log.append(post(groups[1], 'needed'));
    isNeeded = true;
    asked[1]!();
    await reaches(1);
    expect(turns).toEqual([[groups[1].id]]);
  });

  test('waits for the database, says so once, and processes everything when it is back', async () => {
    const proxy = await DatabaseProxy.start(database.target);
    try {
      start({}, database.open(proxy.address).general);
      await log.append(post(groups[0], 'before'));
      await reaches(1);
      await proxy.refuse();
      await log.append(post(groups[1], 'meanwhile'));
      await until(() => turnsOf(groups[1]) > 2);
      await log.append(post(groups[2], 'meanwhile'));
      await proxy.forward();
      await reaches(1, 1, 1);
      expect(lines).toHaveLength(1);
      expect(lines[0]).toContain('the database is away');
    } finally {
      await proxy.stop();
    }
  });
});

describe('a conversation that fails on its own', () => {
  const refuse = (sqlstate: string): Promise<unknown> =>
    database.query((sql) =>
      sql.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin
        raise 'not this one' using errcode = '${sqlstate}';
      end $$;
      create trigger refuse before insert on copied_head for each row when (new.conversation_id = ${groups[0].id})
        execute function refuse()`),
    );
  const permit = (): Promise<unknown> => database.query((sql) => sql.unsafe('drop function refuse() cascade'));

  test('delays no other one, is tried three times, and again after its next notification', async () => {
    await refuse('P0001');
    for (const group of groups) await silent.append(post(group, 'hello'));
    start({ maxBatchSize: 10 });
    await reaches(1, 1);
    await until(() => lines.length > 0);
    expect(turns.filter((batch) => batch.length === 1 && batch[0] === groups[0].id)).toHaveLength(3);
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { event: 'skipped', conversation: groups[0].id },
    ]);
    await permit();
    await log.append(post(groups[0], 'again'));
    await reaches(2, 1, 1);
  });

  test('is never given up for what a retry may avoid', async () => {
    await refuse('55P03');
    await silent.append(post(groups[0], 'hello'));
    start();
    await until(() => turns.length > 6);
    await permit();
    await reaches(1);
    expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual(['the database is away']);
  });
});

describe('the end of a follower', () => {
  test('waits for the current turn, and no other one begins', async () => {
    for (const group of groups) await silent.append(post(group, 'hello'));
    const turn = Promise.withResolvers<void>();
    start({
      process: async (conversations) => {
        turns.push(conversations);
        await turn.promise;
        await copyHeads(conversations);
        return [];
      },
    });
    await until(() => turns.length === 1);
    let hasStopped = false;
    const stopping = follower.stop().then(() => (hasStopped = true));
    await log.append(post(groups[0], 'meanwhile'));
    expect(hasStopped).toBe(false);
    turn.resolve();
    await stopping;
    expect(turns).toHaveLength(1);
    expect(await copied()).toHaveLength(1);
  });

  test('comes at once while it waits for notifications, for more of them, or for the database', async () => {
    const hourMs = 3_600_000;
    start();
    await log.append(post(groups[0], 'hello'));
    await reaches(1);
    await follower.stop();
    start({ debounceMs: () => hourMs });
    await follower.stop();
    start({
      databaseRetryDelayMs: hourMs,
      findConversations: () => Promise.reject(new Error('no page')),
    });
    await until(() => lines.length > 0);
    await follower.stop();
  });
});
