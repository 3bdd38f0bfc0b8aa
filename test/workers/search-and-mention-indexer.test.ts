import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { RELIABLE_EVENTS } from '../../src/bus/wire-format.ts';
import { LocalBus } from '../../src/bus/bus.ts';
import { silentLog } from '../../src/log.ts';
import type { AccountId, ConversationId, Seq } from '../../src/model/ids.ts';
import {
  SearchAndMentionIndexer,
  type SearchAndMentionIndexerServices,
} from '../../src/workers/search-and-mention-indexer.ts';
import type { Database } from '../../src/storage/database.ts';
import { MessageLog } from '../../src/storage/messages/message-log.ts';
import { DatabaseProxy } from '../support/database-proxy.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLog } from '../support/recording-log.ts';
import { logOptions, makeGroups, makeMembers, post, type StoredGroup } from '../storage/fixture.ts';

let test1: TestDatabase;
let database: Database;
let log: MessageLog;
let groups: StoredGroup[];
let bus: LocalBus;
const indexers: SearchAndMentionIndexer[] = [];
beforeEach(async () => {
  test1 = await createTestDatabase();
  database = test1.open();
  bus = new LocalBus();
  log = new MessageLog(
    database.intake,
    logOptions({ onCommitted: (heads) => bus.publish('messagesCommitted', heads) }),
  );
  groups = await makeGroups(test1, 3);
});
afterEach(async () => {
  for (const indexer of indexers.splice(0)) await indexer.stop();
  await log.stop();
  await test1.drop();
});

/**
 * The intake as the worker sees it: the number of posts that wait for their flush, and how often the worker has read
 * that.
 */
interface Intake {
  depth: number;
  looks: number;
}

function startIndexer(
  intake: Intake = { depth: 0, looks: 0 },
  changes: Partial<SearchAndMentionIndexerServices> = {},
): SearchAndMentionIndexer {
  const messageLog = {
    get depth() {
      intake.looks += 1;
      return intake.depth;
    },
  };
  const services = { database, bus, messageLog, deliveriesInFlight: () => 0, log: silentLog(), ...changes };
  const indexer = new SearchAndMentionIndexer(services as unknown as SearchAndMentionIndexerServices);
  indexers.push(indexer);
  indexer.start();
  return indexer;
}

const indexed = (): Promise<number> =>
  test1.query(async (sql) => {
    const [row] = await sql<{ count: number }[]>`select count(*) from search_index`;
    return row!.count;
  });
const reaches = (count: number): Promise<number> => eventually(indexed, (found) => found === count);

test('the worker indexes what was there before it, what it hears of, and after a gap what it did not hear of', async () => {
  await log.append(post(groups[0]!, 'before'));
  startIndexer();
  await reaches(1);
  await log.append(post(groups[1]!, 'heard'));
  await reaches(2);
  const silent = new MessageLog(database.intake, logOptions());
  await silent.append(post(groups[2]!, 'unheard'));
  await silent.stop();
  bus.publish('resync', RELIABLE_EVENTS);
  await reaches(3);
  await test1.query(
    (sql) => sql`
    with head as (update conversation_head set last_rev = last_rev + 1 where conversation_id = ${groups[0]!.id} returning last_rev)
    update message set text = 'edited', rev = (select last_rev from head), edited_at = now()
    where conversation_id = ${groups[0]!.id}`,
  );
  bus.publish('nonMessageChangesCommitted', [groups[0]!.id]);
  await eventually(
    () => test1.query((sql) => sql`select from search_index where document @@ 'edited'`),
    (rows) => rows.length === 1,
  );
});

test('the worker does nothing while posts wait to be written', async () => {
  await log.append(post(groups[0]!, 'hello'));
  const intake = { depth: 3, looks: 0 };
  startIndexer(intake);
  await eventually(
    () => Promise.resolve(intake.looks),
    (looks) => looks >= 5,
  );
  expect(await indexed()).toBe(0);
  intake.depth = 0;
  await reaches(1);
});

test('two workers share, and one that is stopped leaves the rest to the other', async () => {
  const [alice] = (await makeMembers(test1, groups[0]!, ['alice'])) as [AccountId];
  const first = startIndexer();
  startIndexer();
  const posting = Array.from({ length: 500 }, (_, i) => log.append(post(groups[i % 3]!, `${i} @alice`)));
  await Promise.all(posting.slice(0, 100));
  await first.stop();
  await Promise.all(posting);
  await reaches(500);
  const mentions = await test1.query((sql) => sql`select distinct account_id, conversation_id from mention`);
  expect([...mentions]).toEqual([{ account_id: alice, conversation_id: groups[0]!.id }]);
});

test('more conversations than are remembered one by one are found by a sweep', async () => {
  startIndexer();
  await log.append(post(groups[0]!, 'hello'));
  await reaches(1);
  const silent = new MessageLog(database.intake, logOptions());
  await silent.append(post(groups[1]!, 'among many'));
  await silent.stop();
  bus.publish(
    'messagesCommitted',
    new Map(Array.from({ length: 10_001 }, (_, i) => [(1_000 + i) as ConversationId, 1 as Seq])),
  );
  await reaches(2);
});

test('a conversation that cannot be indexed does not keep the others from it', async () => {
  await test1.query((sql) =>
    sql.unsafe(`
    create function refuse() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$;
    create trigger refuse before insert on search_index for each row when (new.conversation_id = ${groups[0]!.id})
      execute function refuse()`),
  );
  for (const group of groups) await log.append(post(group, 'hello'));
  startIndexer();
  await reaches(2);
  await log.append(post(groups[1]!, 'again'));
  await reaches(3);
});

test('the worker comes back when the database does, and speaks of it once', async () => {
  const proxy = await DatabaseProxy.start(test1.target);
  try {
    const records: string[] = [];
    startIndexer(undefined, { database: test1.open(proxy.address), log: recordingLog(records) });
    await log.append(post(groups[0]!, 'hello'));
    await reaches(1);
    await proxy.refuse();
    await log.append(post(groups[1]!, 'meanwhile'));
    const told = await eventually(
      () => Promise.resolve(records.length),
      (count) => count > 0,
    );
    expect(told).toBe(1);
    await proxy.forward();
    await reaches(2);
    expect(records.length).toBe(1);
  } finally {
    await proxy.stop();
  }
});
