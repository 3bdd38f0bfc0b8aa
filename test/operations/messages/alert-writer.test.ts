import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { KlatchError } from '../../../src/errors.ts';
import { MAX_SENDER_ALERTS } from '../../../src/model/alert.ts';
import type { Seq } from '../../../src/model/ids.ts';
import type { AlertPost } from '../../../src/operations/messages/alert-writer.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { DatabaseProxy } from '../../support/database-proxy.ts';
import { eventually } from '../../support/eventually.ts';
import { isWaiting, lockHead, makeGroups, until, type StoredGroup } from '../../storage/fixture.ts';
import { accessTo, alertNamed, AlertNode, alertPost, writeTexts } from './alert-node.ts';

// These time-outs are longer than any test: a lock time-out would end the waits that the tests arrange.
const PATIENT = { lockTimeoutMs: 600_000, flushTimeoutMs: 600_000, databaseCallTimeoutMs: 600_000 };

let database: TestDatabase;
let group: StoredGroup;
const nodes: AlertNode[] = [];
beforeEach(async () => {
  database = await createTestDatabase();
  [group] = (await makeGroups(database, 1)) as [StoredGroup];
});
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.stop();
  await database.drop();
});

function openNode(options: ConstructorParameters<typeof AlertNode>[1] = { address: PATIENT }): AlertNode {
  const node = new AlertNode(database, options);
  nodes.push(node);
  return node;
}

const tell = (node: AlertNode, post: AlertPost): Promise<Seq> => node.post(accessTo(group), post);
const a = alertNamed('a');
const b = alertNamed('b');
const over = (...names: string[]) => names.map((name) => alertNamed(name, 'resolved'));

const texts = (): Promise<string[]> =>
  database.query(async (sql) =>
    (await sql<{ text: string }[]>`select text from message order by seq`).map(({ text }) => text),
  );

async function head(): Promise<{ seq: number; rev: number }> {
  const [row] = await database.query(
    (sql) => sql<{ seq: number; rev: number }[]>`
      select last_seq as seq, last_rev as rev from conversation_head where conversation_id = ${group.id}`,
  );
  return { ...row! };
}

async function row(): Promise<{ seq: number; version: number; state: string; count: number }> {
  const [found] = await database.query(
    (sql) => sql<{ seq: number; version: number; state: string; count: number }[]>`
      select seq, version, state, jsonb_array_length(alerts) as count from alert`,
  );
  return { ...found! };
}

/** Makes the last message of the alert this many minutes older. */
const makeQuiet = (minutes: number): Promise<unknown> =>
  database.query((sql) => sql`update alert set posted_at = posted_at - ${minutes}::int * interval '1 minute'`);

const codeOf = (answer: Promise<unknown>): Promise<unknown> =>
  answer.then(
    () => 'answered',
    (error: unknown) => (error instanceof KlatchError ? error.code : error),
  );

describe('an alert', () => {
  test('is one message that is edited, with a line when it is over, and a new one when it fires again', async () => {
    const node = openNode();
    expect(await tell(node, alertPost('firing', [a]))).toBe(1);
    expect(await tell(node, alertPost('firing', [a, b]))).toBe(1);
    expect(await texts()).toEqual(['firing: a b']);
    expect(await tell(node, alertPost('resolved', over('a', 'b')))).toBe(1);
    expect(await texts()).toEqual(['resolved:', 'cpu is resolved']);
    const again = { ...a, startsAt: new Date('2026-11-23T11:00:00Z') };
    expect(await tell(node, alertPost('firing', [again]))).toBe(3);
    expect(await texts()).toEqual(['resolved:', 'cpu is resolved', 'firing: a']);
    // A new incident of the alert begins with one new message, and adds no message about the change of state.
    expect(await head()).toEqual({ seq: 3, rev: 5 });
  });

  test('is not touched by updates that are repeated or late: they are answered with its message', async () => {
    const node = openNode();
    const updates = [
      alertPost('firing', [a]),
      alertPost('firing', [a, b]),
      alertPost('firing', [...over('a'), b]),
      alertPost('resolved', over('a', 'b')),
    ];
    for (const update of updates) for (let times = 0; times < 2; times += 1) await tell(node, update);
    const before = [await texts(), await head(), await row()];
    for (const update of updates.toReversed()) expect(await tell(openNode(), update)).toBe(1);
    expect([await texts(), await head(), await row()]).toEqual(before);
    expect(await row()).toEqual({ seq: 1, version: 4, state: 'resolved', count: 2 });
  });

  test('without alerts of its own follows the order in which its updates are written', async () => {
    const node = openNode();
    const states = ['firing', 'firing', 'resolved', 'resolved', 'firing'] as const;
    const seqs: number[] = [];
    for (const state of states) seqs.push(await tell(node, alertPost(state, [])));
    expect(seqs).toEqual([1, 1, 1, 1, 3]);
    expect(await texts()).toEqual(['resolved:', 'cpu is resolved', 'firing:']);
    // Two messages that show the alert, an edit and the message "cpu is resolved" have used the four revs. So an update
    // that changes nothing takes no rev.
    expect(await head()).toEqual({ seq: 3, rev: 4 });
  });

  test(`keeps ${MAX_SENDER_ALERTS} alerts of its sender, of which a repetition changes nothing`, async () => {
    const node = openNode();
    const many = Array.from({ length: MAX_SENDER_ALERTS + 50 }, (_, n) => alertNamed(`f${n}`));
    await tell(node, alertPost('firing', many));
    await tell(node, alertPost('firing', many.toReversed()));
    expect(await row()).toEqual({ seq: 1, version: 1, state: 'firing', count: MAX_SENDER_ALERTS });
  });

  test('is another one under another key, in another format, and in another group', async () => {
    const node = openNode();
    const [other] = (await makeGroups(database, 1)) as [StoredGroup];
    expect(await tell(node, alertPost('firing', [a]))).toBe(1);
    expect(await tell(node, alertPost('firing', [a], { alertKey: 'disk' }))).toBe(2);
    expect(await tell(node, alertPost('firing', [a], { source: 'other' }))).toBe(3);
    expect(await node.post(accessTo(other), alertPost('firing', [a]))).toBe(1);
  });

  test('is reminded of by one repetition after an hour without a message of it, whichever node is told', async () => {
    const node = openNode();
    const reminding: Pick<AlertPost, 'writeTexts'> = {
      writeTexts: (change, shown) =>
        shown?.isReminderDue === true
          ? { text: shown.text, cardsJson: null, followUp: { text: 'still firing', cardsJson: null } }
          : writeTexts(change),
    };
    const repeat = (): Promise<Seq> => tell(openNode(), alertPost('firing', [a], reminding));
    await tell(node, alertPost('firing', [a]));
    await makeQuiet(59);
    expect(await repeat()).toBe(1);
    // An edit is not a message, so it does not delay the reminder.
    await tell(node, alertPost('firing', [a, b]));
    await makeQuiet(1);
    expect(await Promise.all([repeat(), repeat()])).toEqual([1, 1]);
    expect([await texts(), await head()]).toEqual([['firing: a b', 'still firing'], { seq: 2, rev: 3 }]);
    await makeQuiet(60);
    await tell(node, alertPost('resolved', over('a', 'b'), reminding));
    expect(await repeat()).toBe(1);
    expect(await texts()).toEqual(['resolved:', 'still firing', 'cpu is resolved']);
  });

  test('whose end is told only after it fired is nothing where it does not', async () => {
    const node = openNode();
    const end = (): Promise<string | null> =>
      node.postForId(accessTo(group), alertPost('resolved', [], { onlyAfterFiring: true }));
    expect(await end()).toBeNull();
    await tell(node, alertPost('firing', []));
    expect([await end(), await end()]).toEqual([`${group.id}:1`, null]);
    expect(await texts()).toEqual(['resolved:', 'cpu is resolved']);
  });

  test('can be told in new messages alone, of which the newest shows it', async () => {
    const node = openNode();
    const inNewMessages: Pick<AlertPost, 'writeTexts'> = {
      writeTexts: (change) => ({ ...writeTexts(change), isNewMessage: true }),
    };
    expect(await tell(node, alertPost('firing', [a], inNewMessages))).toBe(1);
    expect(await tell(node, alertPost('firing', [a, b], inNewMessages))).toBe(2);
    expect([await texts(), await head()]).toEqual([['firing: a', 'firing: a b'], { seq: 2, rev: 2 }]);
    expect(await row()).toMatchObject({ seq: 2, version: 2 });
  });

  test('whose post is repeated with its idempotency key is told once, and another body is refused', async () => {
    const node = openNode();
    await tell(node, alertPost('firing', []));
    const keyed = alertPost('resolved', [], { key: 'k', bodyHash: 'body' });
    expect(await tell(node, keyed)).toBe(1);
    // The alert fires again. A repeat of the earlier post that resolved the alert does not resolve it once more.
    expect(await tell(node, alertPost('firing', []))).toBe(3);
    expect(await tell(openNode(), keyed)).toBe(1);
    expect(await row()).toMatchObject({ state: 'firing', seq: 3 });
    expect(await codeOf(tell(node, { ...keyed, bodyHash: 'other' }))).toBe('idempotency_key_reused');
  });

  test('is not written with a token that does not hold any more', async () => {
    const revoked = accessTo({ ...group, tokenHash: 'revoked' });
    const node = openNode();
    expect(await codeOf(node.post(revoked, alertPost('firing', [a])))).toBe('invalid_token');
    await tell(node, alertPost('firing', [a]));
    expect(await codeOf(node.post(revoked, alertPost('firing', [a])))).toBe('invalid_token');
  });
});

test('the edit of an alert is announced where there was one, and its event where a hook asks', async () => {
  const node = openNode();
  const words: string[] = [];
  node.bus.subscribe({
    messagesCommitted: (heads) => words.push(`message ${heads.get(group.id)}`),
    nonMessageChangesCommitted: () => words.push('changes'),
    hookEventsCommitted: () => words.push('events'),
  });
  const wordsOf = async (post: AlertPost): Promise<string[]> => {
    await tell(node, post);
    return words.splice(0);
  };
  expect(await wordsOf(alertPost('firing', [a]))).toEqual(['message 1']);
  expect(await wordsOf(alertPost('firing', [a, b]))).toEqual(['changes']);
  expect(await wordsOf(alertPost('firing', [a, b]))).toEqual([]);
  await database.query((sql) => sql`update conversation_head set wants_events = true`);
  expect(await wordsOf(alertPost('firing', [...over('a'), b]))).toEqual(['changes', 'events']);
  expect(await wordsOf(alertPost('resolved', over('a', 'b')))).toEqual(['message 2', 'changes', 'events']);
  // The repeat of a post also announces the edit: the node that wrote it may have died before it announced the edit.
  const keyed = alertPost('firing', [], { key: 'k', bodyHash: 'body' });
  expect(await wordsOf(keyed)).toEqual(['message 3']);
  expect(await wordsOf(keyed)).toEqual(['message 3', 'changes', 'events']);
});

describe('two nodes that are told of an alert', () => {
  test('at the same moment write both: the second decides again from what the first has written', async () => {
    const asked: string[] = [];
    const counting = (name: string): Pick<AlertPost, 'writeTexts'> => ({
      writeTexts: (change) => {
        asked.push(name);
        return writeTexts(change);
      },
    });
    const held = await lockHead(database.target, group.id);
    const answers = Promise.all([
      tell(openNode(), alertPost('firing', [a], counting('a'))),
      tell(openNode(), alertPost('firing', [b], counting('b'))),
    ]);
    await until(database, (sql) => isWaiting(sql, 'intake', 2));
    await held.release();
    expect(await answers).toEqual([1, 1]);
    expect(asked).toHaveLength(3);
    expect([await texts(), await head(), await row()]).toEqual([
      ['firing: a b'],
      { seq: 1, rev: 2 },
      { seq: 1, version: 2, state: 'firing', count: 2 },
    ]);
  });

  test('all the time lose none of its updates, and write none twice', async () => {
    const both = [openNode(), openNode()];
    const names = Array.from({ length: 20 }, (_, n) => `f${n}`);
    const tellAll = (make: (name: string) => AlertPost): Promise<Seq[]> =>
      Promise.all(
        both.flatMap((node, n) => (n === 0 ? names : names.toReversed()).map((name) => tell(node, make(name)))),
      );
    const begun = await tellAll((name) => alertPost('firing', [alertNamed(name)]));
    expect(new Set(begun)).toEqual(new Set([1]));
    expect(await row()).toEqual({ seq: 1, version: 20, state: 'firing', count: 20 });
    expect([await texts(), await head()]).toEqual([[`firing: ${names.toSorted().join(' ')}`], { seq: 1, rev: 20 }]);
    const ended = await tellAll((name) => alertPost('firing', over(name)));
    expect(new Set(ended)).toEqual(new Set([1]));
    expect(await row()).toEqual({ seq: 1, version: 40, state: 'resolved', count: 20 });
    // The last of the updates resolved the alert, and the group shows that once.
    expect([await texts(), await head()]).toEqual([['resolved:', 'cpu is resolved'], { seq: 2, rev: 41 }]);
  });
});

describe('a post of an alert', () => {
  test('waits for those of the same alert before it, so that each is decided once', async () => {
    const node = openNode();
    let decided = 0;
    const counting: Pick<AlertPost, 'writeTexts'> = {
      writeTexts: (change) => {
        decided += 1;
        return writeTexts(change);
      },
    };
    const held = await lockHead(database.target, group.id);
    const names = Array.from({ length: 20 }, (_, n) => `f${n}`);
    const answers = names.map((name) => tell(node, alertPost('firing', [alertNamed(name)], counting)));
    // A post of another alert does not wait for the posts of the first one.
    const other = tell(node, alertPost('firing', [], { alertKey: 'disk' }));
    await until(database, (sql) => isWaiting(sql, 'intake'));
    await held.release();
    const seqs = new Set(await Promise.all(answers));
    expect([seqs.size, seqs.has(await other)]).toEqual([1, false]);
    expect(decided).toBe(20);
    expect(await texts()).toContain(`firing: ${names.toSorted().join(' ')}`);
  });

  test('is given up in a sentence when the alert is another one each time, and nothing of it is written', async () => {
    const elsewhere = await createTestDatabase();
    try {
      await elsewhere.query(
        (sql) => sql`
          insert into alert (conversation_id, source, key, seq, state, since, version)
          values (${group.id}, 'test', 'cpu', 1, 'firing', now(), 99)`,
      );
      const node = openNode({ reads: elsewhere.open() });
      await expect(tell(node, alertPost('firing', [a]))).rejects.toThrow(
        'Too many posts change this alert at the same time; this one was not posted, please repeat it',
      );
      expect(await texts()).toEqual([]);
    } finally {
      await elsewhere.drop();
    }
  });

  test('waits for a database that is away as long as it may wait, and not longer', async () => {
    const proxy = await DatabaseProxy.start(database.target);
    try {
      const node = openNode({ address: proxy.address });
      const hasty = openNode({ address: proxy.address, intakeTimeoutMs: 300 });
      await proxy.refuse();
      expect(await codeOf(tell(hasty, alertPost('firing', [a])))).toBe('database_unavailable');
      const waiting = tell(node, alertPost('firing', [a]));
      await proxy.forward();
      expect(await waiting).toBe(1);
    } finally {
      await proxy.stop();
    }
  });

  test('whose answer of the database was lost is told as that, and announced: nobody knows what was written', async () => {
    const proxy = await DatabaseProxy.start(database.target);
    try {
      const node = openNode({ address: { ...PATIENT, ...proxy.address } });
      const words: string[] = [];
      node.bus.subscribe({
        nonMessageChangesCommitted: ([id]) => words.push(`changes ${id}`),
        hookEventsCommitted: ([id]) => words.push(`events ${id}`),
      });
      await tell(node, alertPost('firing', [a]));
      const held = await lockHead(database.target, group.id);
      const answer = codeOf(tell(node, alertPost('firing', [a, b])));
      await until(database, (sql) => isWaiting(sql, 'intake'));
      proxy.cut();
      expect(await answer).toBe('outcome_unknown');
      expect(words).toEqual([`changes ${group.id}`, `events ${group.id}`]);
      await held.release();
      // The caller repeats the post at any node.
      await eventually(
        () => tell(openNode(), alertPost('firing', [a, b])),
        (seq) => seq === 1,
      );
      expect(await row()).toMatchObject({ version: 2, count: 2 });
    } finally {
      await proxy.stop();
    }
  });

  test('is refused while a thousand wait already, and may come again afterwards', async () => {
    const node = openNode({ address: PATIENT, intakeTimeoutMs: 600_000 });
    const held = await lockHead(database.target, group.id);
    const waiting = Array.from({ length: 1_000 }, () => tell(node, alertPost('firing', [a])));
    expect(await codeOf(tell(node, alertPost('firing', [a])))).toBe('overloaded');
    await held.release();
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([1]));
    expect(await tell(node, alertPost('firing', [a]))).toBe(1);
    expect(await row()).toMatchObject({ version: 1 });
  });
});
