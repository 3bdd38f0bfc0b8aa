import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ConversationId, Seq } from '../../../src/model/ids.ts';
import { lockGroup, setArchived } from '../../../src/storage/groups/groups.ts';
import { AlertConflictError, PoisonMessageError } from '../../../src/storage/messages/message-log.ts';
import { raiseLogEpoch } from '../../../src/storage/messages/log-epoch.ts';
import { insertFile } from '../../support/files.ts';
import { keyedPost, makeGroups, post, type StoredGroup } from '../fixture.ts';
import { AlertFixture, SINCE, stateOf } from './alert-fixture.ts';

let it: AlertFixture;
beforeEach(async () => {
  it = await AlertFixture.start();
});
afterEach(() => it.stop());

describe('a post that changes an alert', () => {
  test('writes its state, the edit and the new message together, the edit before the message', async () => {
    const first = await it.log.append(it.alertPost('CPU firing', {}));
    expect(first).toEqual({
      outcome: 'new',
      logEpoch: 0,
      seq: 1,
      alert: { postedSeq: 1, isEdited: false, wantsEvents: false },
    });
    const row = await it.read();
    expect(row).toEqual({
      ...stateOf(),
      version: 1,
      seq: 1,
      shownText: 'CPU firing',
      shownCards: [],
      isReminderDue: false,
    });
    await it.log.append(post(it.group, 'between'));
    const second = await it.log.append(it.edit(row!, 'CPU resolved', 'it is over'));
    expect(second).toEqual({
      outcome: 'new',
      logEpoch: 0,
      seq: 1,
      alert: { postedSeq: 3, isEdited: true, wantsEvents: false },
    });
    expect(await it.messages()).toEqual([
      [1, 3, 'CPU resolved', true],
      [2, 2, 'between', false],
      [3, 4, 'it is over', false],
    ]);
    expect(await it.head()).toMatchObject({ seq: 3, rev: 4 });
    expect(await it.read()).toEqual({
      ...stateOf({ state: 'resolved' }),
      version: 2,
      seq: 1,
      shownText: 'CPU resolved',
      shownCards: [],
      isReminderDue: false,
    });
    expect(await it.events()).toEqual([]);
  });

  test('is answered with the epoch of the message that shows the alert, and its edit is an event of the new epoch', async () => {
    const row = await it.begin();
    await it.askForEvents();
    const epoch = await it.testDatabase.query((sql) => raiseLogEpoch(sql));
    const edited = await it.log.append(it.edit(row, 'CPU resolved', 'over'));
    expect(edited).toMatchObject({ outcome: 'new', seq: 1, logEpoch: 0, alert: { postedSeq: 2, isEdited: true } });
    const [event] = await it.testDatabase.query((sql) => sql`select epoch from hook_event`);
    expect(event).toEqual({ epoch });
  });

  test('takes its place among the other posts of its flush, and hooks are told of the edit in it', async () => {
    const row = await it.begin();
    await it.askForEvents();
    const answers = await Promise.all([
      it.log.append(post(it.group, 'a')),
      it.log.append(it.edit(row, 'CPU resolved', 'over', { hops: 3 })),
      it.log.append(post(it.group, 'b')),
    ]);
    expect(answers).toEqual([
      { outcome: 'new', logEpoch: 0, seq: 2 },
      { outcome: 'new', logEpoch: 0, seq: 1, alert: { postedSeq: 3, isEdited: true, wantsEvents: true } },
      { outcome: 'new', logEpoch: 0, seq: 4 },
    ]);
    expect(it.log.counts).toMatchObject({ commits: 2, posted: 4 });
    expect(await it.messages()).toEqual([
      [1, 3, 'CPU resolved', true],
      [2, 2, 'a', false],
      [3, 4, 'over', false],
      [4, 5, 'b', false],
    ]);
    const told = { rev: 3, after_seq: 2, seq: 1, kind: 'message.updated', actor: it.group.accountId, hops: 3 };
    expect(await it.events()).toEqual([told]);
  });

  test('shares a flush with posts that carry files, and with those of other groups', async () => {
    const row = await it.begin();
    const [other] = (await makeGroups(it.testDatabase, 1)) as [StoredGroup];
    const file = await insertFile({ database: it.testDatabase }, it.group.accountId);
    const answers = await Promise.all([
      it.log.append(post(other, 'elsewhere')),
      it.log.append(post(it.group, 'with a file', { attachments: [file.id] })),
      it.log.append(it.edit(row, 'CPU resolved', null)),
    ]);
    expect(answers).toMatchObject([{ seq: 1 }, { seq: 2 }, { seq: 1, alert: { postedSeq: null, isEdited: true } }]);
    expect(await it.messages()).toEqual([
      [1, 3, 'CPU resolved', true],
      [2, 2, 'with a file', false],
    ]);
    expect(await it.messages(other.id)).toEqual([[1, 1, 'elsewhere', false]]);
  });

  test('with the text that is there takes no rev, and an edit alone leaves the time of the last message', async () => {
    const row = await it.begin();
    await it.askForEvents();
    const before = await it.head();
    const same = await it.log.append(it.edit(row, 'CPU firing', null));
    expect(same).toEqual({
      outcome: 'new',
      logEpoch: 0,
      seq: 1,
      alert: { postedSeq: null, isEdited: false, wantsEvents: false },
    });
    expect([await it.messages(), await it.head(), await it.events()]).toEqual([
      [[1, 1, 'CPU firing', false]],
      before,
      [],
    ]);
    const state = await it.read();
    expect(state).toMatchObject({ version: 2, state: 'resolved' });
    await it.log.append(it.edit(state!, 'CPU resolved', null));
    expect(await it.head()).toEqual({ ...before, rev: 2 });
    expect(it.log.counts).toMatchObject({ commits: 3, posted: 1 });
  });

  test('gives its message the cards of its new text, and with the text that is there leaves them', async () => {
    const title = (text: string): string => JSON.stringify([{ title: text }]);
    const cards = async (): Promise<unknown[]> =>
      (await it.testDatabase.query((sql) => sql`select cards from message order by seq`)).map((row) => row['cards']);
    await it.log.append(it.alertPost('CPU firing', {}, { cardsJson: title('firing') }));
    const row = (await it.read())!;
    expect(row.shownCards).toEqual([{ title: 'firing' }]);
    const same = { decidedFrom: row, editedText: 'CPU firing', editedCardsJson: title('others') };
    await it.log.append(it.alertPost('', { ...same, newMessage: 'none' }));
    expect(await cards()).toEqual([[{ title: 'firing' }]]);
    const edit = { decidedFrom: (await it.read())!, editedText: 'CPU over', editedCardsJson: title('over') };
    await it.log.append(
      it.alertPost('it is over', { ...edit, newMessage: 'follow-up' }, { cardsJson: title('follow-up') }),
    );
    expect(await cards()).toEqual([[{ title: 'over' }], [{ title: 'follow-up' }]]);
    const last = { decidedFrom: (await it.read())!, editedText: 'CPU again', editedCardsJson: null };
    await it.log.append(it.alertPost('', { ...last, newMessage: 'none' }));
    expect(await cards()).toEqual([null, [{ title: 'follow-up' }]]);
  });

  test('and nothing of it is answered with its message, and writes nothing', async () => {
    const row = await it.begin();
    const before = await it.head();
    expect(await it.log.append(it.unchanged(row))).toMatchObject({
      outcome: 'new',
      logEpoch: 0,
      seq: 1,
      alert: { isEdited: false },
    });
    expect([await it.read(), await it.head()]).toEqual([row, before]);
  });

  test('may be a new incident, which a new message shows', async () => {
    const row = await it.begin();
    const again = it.alertPost('firing again', { decidedFrom: row });
    expect(await it.log.append(again)).toMatchObject({ seq: 2, alert: { postedSeq: 2, isEdited: false } });
    expect(await it.read()).toMatchObject({ seq: 2, version: 2 });
  });

  test('keeps whatever keys, texts and fingerprints there are', async () => {
    const awkward = ['"quoted"', 'back\\slash', '{a,b}', 'NULL', "it's", 'line\nbreak', 'Привет', '👩‍👩‍👧 𝄞', '\u0001'];
    for (const text of awkward) {
      const senderAlerts = [{ fingerprint: text, startsAt: SINCE, state: 'firing' as const }];
      const key = { source: `source ${text}`, key: text };
      await it.log.append(it.alertPost('first', { ...key, state: stateOf({ senderAlerts }) }));
      const stored = (await it.read(key))!;
      expect(stored.senderAlerts).toEqual(senderAlerts);
      const write = {
        ...key,
        decidedFrom: stored,
        editedText: text,
        editedCardsJson: null,
        newMessage: 'none',
      } as const;
      await it.log.append(it.alertPost('', write));
      expect((await it.messages()).at(-1)).toMatchObject([stored.seq, expect.any(Number), text, true]);
    }
  });

  test('is refused by the database with more alerts than are kept, and the others of its flush are not', async () => {
    const senderAlerts = Array.from({ length: 501 }, (_, n) => ({
      fingerprint: `f${n}`,
      startsAt: SINCE,
      state: 'firing' as const,
    }));
    const answers = await Promise.allSettled([
      it.log.append(post(it.group, 'a')),
      it.log.append(it.alertPost('too many', { state: stateOf({ senderAlerts }) })),
      it.log.append(it.alertPost('enough', { key: 'other', state: stateOf({ senderAlerts: senderAlerts.slice(1) }) })),
    ]);
    expect(answers).toMatchObject([
      { value: { seq: 1 } },
      { reason: expect.any(PoisonMessageError) },
      { value: { seq: 2 } },
    ]);
  });

  test('into an archived group, or with a revoked token, is refused and changes nothing', async () => {
    const row = await it.begin();
    const revoked = it.edit(row, 'CPU resolved', 'over', { admission: 'revoked' });
    expect(await it.log.append(revoked)).toEqual({ outcome: 'refused' });
    await it.database.general.transaction(async (tx) => {
      await lockGroup(tx, it.group.id);
      await setArchived(tx, it.group.id, true);
    });
    expect(await it.log.append(it.edit(row, 'CPU resolved', 'over'))).toEqual({ outcome: 'refused' });
    expect([await it.read(), await it.messages()]).toEqual([row, [[1, 1, 'CPU firing', false]]]);
  });

  test('announces its new message, and not the one that it edits', async () => {
    const words: [ConversationId, Seq][][] = [];
    const told = it.openLog({ onCommitted: (advanced) => words.push([...advanced]) });
    await told.append(it.alertPost('CPU firing', {}));
    await told.append(post(it.group, 'between'));
    const line = await told.append(it.edit((await it.read())!, 'CPU resolved', 'over'));
    expect(line).toMatchObject({ seq: 1 });
    await told.append(it.edit((await it.read())!, 'CPU resolved for good', null));
    expect(words).toEqual([[[it.group.id, 1]], [[it.group.id, 2]], [[it.group.id, 3]]]);
  });
});

describe('an idempotency key of a post that changes an alert', () => {
  test('answers the message that shows the alert, and changes nothing more', async () => {
    const row = await it.begin();
    const over = it.edit(row, 'CPU resolved', 'over', { key: 'k', bodyHash: 'body' });
    const answers = await Promise.all([it.log.append(over), it.log.append(over)]);
    expect(answers).toMatchObject([
      { outcome: 'new', logEpoch: 0, seq: 1 },
      { outcome: 'repeat', logEpoch: 0, seq: 1, sameBody: true },
    ]);
    expect(await it.log.append(over)).toEqual({ outcome: 'repeat', logEpoch: 0, seq: 1, sameBody: true });
    expect(await it.log.append({ ...over, bodyHash: 'other' })).toEqual({
      outcome: 'repeat',
      logEpoch: 0,
      seq: 1,
      sameBody: false,
    });
    expect([(await it.read())!.version, (await it.messages()).length]).toEqual([2, 2]);
  });

  test('is kept of a post that changes nothing', async () => {
    const row = await it.begin();
    await it.log.append(it.unchanged(row, { key: 'k', bodyHash: 'body' }));
    expect(await it.log.append(keyedPost(it.group, 'k', 'another'))).toEqual({
      outcome: 'repeat',
      logEpoch: 0,
      seq: 1,
      sameBody: false,
    });
  });

  test('is free after a conflict', async () => {
    const row = await it.begin();
    const late = it.edit({ ...row, version: 7 }, 'late', null, { key: 'k', bodyHash: 'body' });
    await expect(it.log.append(late)).rejects.toThrow(AlertConflictError);
    expect(await it.log.append(it.edit(row, 'CPU resolved', null, { key: 'k', bodyHash: 'body' }))).toMatchObject({
      outcome: 'new',
    });
  });

  test('that a plain post of the same flush has belongs to that one, though the alert is another one by now', async () => {
    const row = await it.begin();
    const late = it.edit({ ...row, version: 7 }, 'late', null, { key: 'k', bodyHash: 'body' });
    const answers = await Promise.all([it.log.append(late), it.log.append(keyedPost(it.group, 'k', 'plain'))]);
    expect(answers).toEqual([
      { outcome: 'repeat', logEpoch: 0, seq: 2, sameBody: false },
      { outcome: 'new', logEpoch: 0, seq: 2 },
    ]);
  });
});
