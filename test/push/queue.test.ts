import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { RELIABLE_EVENTS } from '../../src/bus/wire-format.ts';
import type { AccountId } from '../../src/model/ids.ts';
import { MessageLog } from '../../src/storage/messages/message-log.ts';
import { logOptions, makeGroups, post } from '../storage/fixture.ts';
import { eventually } from '../support/eventually.ts';
import { PushStage } from './stage.ts';

let stage: PushStage;
let alice: AccountId;
let bob: AccountId;
beforeAll(async () => {
  stage = await PushStage.open();
});
beforeEach(async () => {
  [alice, bob] = (await stage.members('alice', 'bob')) as [AccountId, AccountId];
});
afterEach(() => stage.clear());
afterAll(() => stage.close());

describe('a message', () => {
  test('is told to every device of every member who did not write it, and to nobody else', async () => {
    const phone = await stage.device(alice, 'apple');
    const laptop = await stage.device(alice, 'web');
    await stage.device(bob, 'google');
    stage.start();
    await stage.post('hello', bob);
    await stage.settled(1);
    expect(stage.got().map(({ kind, token }) => [kind, token])).toEqual([
      ['apple', phone.token],
      ['web', laptop.token],
    ]);
    expect(stage.got('web')[0]!.note).toMatchObject({
      conversationId: stage.group.id,
      firstSeq: 1,
      lastSeq: 1,
      title: 'Group 0',
      text: 'bob: hello',
      accountUnreadCount: 1,
      urgent: false,
      app: null,
    });
  });

  test('that was there before the device, or is older than pushes are kept, is told to nobody', async () => {
    await stage.post('before the device');
    await stage.device(alice);
    await stage.post('a day ago');
    await stage.database.query((sql) => sql`update message set sent_at = sent_at - interval '25 hours'`);
    await stage.post('now');
    stage.start();
    await stage.settled(3);
    expect(stage.told()).toEqual([['web-1', 'Sender 0: now']]);
    expect(stage.got()[0]!.note).toMatchObject({ firstSeq: 3, lastSeq: 3, accountUnreadCount: 3 });
  });

  test('of a conversation that nobody looked at for long is found among very many that are too old', async () => {
    await stage.device(alice);
    await stage.database.query(
      (sql) => sql`
      with old as (
        insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
        select ${stage.group.id}, n, n, ${stage.group.accountId}, 'old', now() - interval '2 days'
        from generate_series(1, 5000) n
      )
      update conversation_head set last_seq = 5000, last_rev = 5000 where conversation_id = ${stage.group.id}`,
    );
    await stage.post('now');
    stage.start();
    await stage.settled(5_001);
    expect(stage.told()).toEqual([['web-1', 'Sender 0: now']]);
  });

  test('whose word was lost is found by a sweep', async () => {
    await stage.device(alice);
    stage.start();
    await stage.post('heard');
    await stage.settled(1);
    const silent = new MessageLog(stage.pools.intake, logOptions());
    await silent.append(post(stage.group, 'unheard'));
    await silent.stop();
    stage.bus.publish('resync', RELIABLE_EVENTS);
    await stage.settled(2);
    expect(stage.told().map(([, text]) => text)).toEqual(['Sender 0: heard', 'Sender 0: unheard']);
  });

  test('that cannot be turned into pushes keeps no other from it, and is tried again after what is wrong', async () => {
    const [other] = await makeGroups(stage.database, 1);
    await stage.database.query(
      (sql) => sql`
      insert into membership (conversation_id, account_id, role) values (${other!.id}, ${alice}, 'member')`,
    );
    await stage.device(alice);
    await stage.database.query((sql) =>
      sql.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$;
      create trigger refuse before insert on push_pending for each row when (new.conversation_id = ${stage.group.id})
        execute function refuse()`),
    );
    try {
      await stage.post('stuck');
      await stage.post('goes on', null, other);
      stage.start();
      await eventually(
        () => stage.told(),
        (told) => told.length === 1,
      );
    } finally {
      await stage.database.query((sql) => sql.unsafe('drop function refuse() cascade'));
    }
    stage.bus.publish('resync', RELIABLE_EVENTS);
    await stage.settled(1);
    expect(stage.told().map(([, text]) => text)).toEqual(['Sender 0: goes on', 'Sender 0: stuck']);
  });

  test('that meets what passes, however often, is turned into pushes soon after', async () => {
    await stage.device(alice);
    // The tries are counted by a sequence, which keeps its value after a rollback.
    await stage.database.query((sql) =>
      sql.unsafe(`
      create sequence tries;
      create function refuse() returns trigger language plpgsql as $$ begin
        if nextval('tries') <= 4 then raise 'locked' using errcode = '55P03'; end if;
        return new;
      end $$;
      create trigger refuse before insert on push_pending for each row execute function refuse()`),
    );
    try {
      stage.start();
      await stage.post('hello');
      await stage.settled(1);
    } finally {
      await stage.database.query((sql) => sql.unsafe('drop function refuse() cascade; drop sequence tries'));
    }
    expect(stage.told()).toEqual([['web-1', 'Sender 0: hello']]);
  });

  test('that was deleted before it was sent is not told, and others that wait with it are', async () => {
    await stage.device(alice);
    stage.foreground.add(alice);
    stage.start();
    await stage.post('stays');
    await stage.post('goes');
    await stage.setForeground(2);
    stage.foreground.clear();
    await stage.database.query(async (sql) => {
      await sql`update message set deleted_at = now(), text = '' where seq = 2`;
      await sql`update push_pending set next_at = now()`;
    });
    stage.start();
    await stage.settled(2);
    expect(stage.told()).toEqual([['web-1', 'Sender 0: stays']]);
  });

  test('that tells of an alert which ended before it was sent is not told, and a message that was posted for an end is', async () => {
    await stage.device(alice);
    stage.foreground.add(alice);
    stage.start();
    for (const text of ['stays', 'fires', 'still fires', 'ended']) await stage.post(text);
    await stage.setForeground(4);
    stage.foreground.clear();
    await stage.database.query(async (sql) => {
      await sql`update message set edited_at = now() where seq in (2, 3)`;
      await sql`
        insert into alert (conversation_id, source, key, seq, state, since)
        select ${stage.group.id}, 'grafana', seq::text, seq, state, now()
        from (values (2, 'resolved'), (3, 'firing'), (4, 'resolved')) as v(seq, state)`;
      await sql`update push_pending set next_at = now()`;
    });
    stage.start();
    await stage.settled(4);
    expect(stage.told()).toEqual([['web-1', 'Sender 0: ended']]);
  });

  test('in any letters, with a file and no text, or under the name of a hook is told as it is', async () => {
    await stage.database.query((sql) => sql`update account set name = 'Ærøskøbing 🚂 Ирина' where id = ${bob}`);
    await stage.database.query(
      (sql) => sql`update conversation set title = '東京 " \\ ‮evil' where id = ${stage.group.id}`,
    );
    await stage.device(alice);
    stage.start();
    await stage.post('👋🏽 שלום "quoted" \\ and\nlines', bob);
    await stage.settled(1);
    await stage.log.append(post(stage.group, 'labelled', { label: 'Ωmega' }));
    await stage.settled(2);
    const silent = new MessageLog(stage.pools.intake, logOptions());
    await silent.append(post(stage.group, ' '));
    await silent.stop();
    await stage.database.query((sql) =>
      sql.unsafe(`update message set attachments = '[{"name":"Übersicht.pdf"},{"name":"фото.jpg"}]' where seq = 3`),
    );
    stage.bus.publish('resync', RELIABLE_EVENTS);
    await stage.settled(3);
    expect(stage.got().map(({ note }) => note.title)).toEqual(Array(3).fill('東京 " \\ ‮evil'));
    expect(stage.told().map(([, text]) => text)).toEqual([
      'Ærøskøbing 🚂 Ирина: 👋🏽 שלום "quoted" \\ and\nlines',
      'Ωmega: labelled',
      'Sender 0: Übersicht.pdf, фото.jpg',
    ]);
  });
});

describe('what a push says', () => {
  test.each([
    ['full', { title: 'Group 0', text: 'bob: hello' }],
    ['sender', { title: 'Group 0', text: 'bob' }],
    ['none', { title: 'Klatch under test', text: null }],
  ] as const)('follows push.content = %s', async (content, expected) => {
    await stage.device(alice);
    stage.start({ content });
    await stage.post('hello', bob);
    await stage.settled(1);
    expect(stage.got()[0]!.note).toMatchObject(expected);
  });

  test('is the name of whoever writes privately, and that is urgent, as a mention is', async () => {
    const [other] = await makeGroups(stage.database, 1);
    await stage.database.query(async (sql) => {
      await sql`delete from integration where conversation_id = ${other!.id}`;
      await sql`update conversation set kind = 'private', title = null where id = ${other!.id}`;
      await sql`
        insert into membership (conversation_id, account_id, role)
        values (${other!.id}, ${alice}, 'member'), (${other!.id}, ${bob}, 'member')`;
    });
    await stage.device(alice);
    stage.start();
    await stage.post('between us', bob, other);
    await eventually(
      () => stage.got(),
      (got) => got.length === 1,
    );
    expect(stage.got()[0]!.note).toMatchObject({ title: 'bob', text: 'between us', urgent: true });
    await stage.post('@alice: look', bob);
    await eventually(
      () => stage.got(),
      (got) => got.length === 2,
    );
    expect(stage.got()[1]!.note).toMatchObject({
      title: 'Group 0',
      text: 'bob: @alice: look',
      urgent: true,
      accountUnreadCount: 2,
    });
  });
});

describe('a burst', () => {
  test('is one push for each device, about all of it, and one statement for all of them', async () => {
    await stage.device(alice, 'web');
    await stage.device(alice, 'google');
    await stage.database.query((sql) =>
      sql.unsafe(`
      create table statement_log (rows bigint);
      create function note() returns trigger language plpgsql as $$
        begin insert into statement_log select count(*) from inserted; return null; end $$;
      create trigger note after insert on push_pending referencing new table as inserted
        for each statement execute function note()`),
    );
    await Promise.all(Array.from({ length: 1_000 }, (_, index) => stage.post(`message ${index + 1}`)));
    stage.start();
    await stage.settled(1_000);
    expect(stage.got().map(({ kind, note }) => [kind, note.firstSeq, note.lastSeq, note.text])).toEqual([
      ['google', 1, 1_000, 'Sender 0: message 1000'],
      ['web', 1, 1_000, 'Sender 0: message 1000'],
    ]);
    const statements = await stage.database.query((sql) => sql<{ rows: number }[]>`select rows from statement_log`);
    expect([...statements]).toEqual([{ rows: 2 }]);
    await stage.database.query((sql) => sql.unsafe('drop table statement_log; drop function note() cascade'));
  });

  test('that goes on while its push is being sent is told by a second push, about the rest', async () => {
    await stage.device(alice);
    const answered = Promise.withResolvers<void>();
    stage.service('web').answer = async () => {
      if (stage.got().length === 1) await answered.promise;
      return 200;
    };
    stage.start();
    await stage.post('first');
    await stage.service('web').received(1);
    await stage.post('second');
    await stage.post('third');
    await stage.setForeground(3);
    expect(stage.got()).toHaveLength(1);
    answered.resolve();
    await stage.settled(3);
    expect(stage.got().map(({ note }) => [note.firstSeq, note.lastSeq, note.text])).toEqual([
      [1, 1, 'Sender 0: first'],
      [2, 3, 'Sender 0: third'],
    ]);
  });
});
