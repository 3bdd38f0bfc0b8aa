import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { lockGroup } from '../../../src/storage/groups/groups.ts';
import { AlertConflictError } from '../../../src/storage/messages/message-log.ts';
import { eraseMessage } from '../../../src/storage/messages/messages.ts';
import type { Post } from '../../../src/storage/messages/write-posts.ts';
import { holdOpen, isWaiting, lockHead, post, until } from '../fixture.ts';
import { AlertFixture } from './alert-fixture.ts';

let it: AlertFixture;
beforeEach(async () => {
  it = await AlertFixture.start();
});
afterEach(() => it.stop());

describe('a change that was decided from another row', () => {
  const conflict = { status: 'rejected', reason: expect.any(AlertConflictError) };

  test('is not written, nor is anything else of its post', async () => {
    const row = await it.begin();
    await it.askForEvents();
    await it.log.append(it.edit(row, 'CPU resolved', 'over'));
    const [before, state, told] = [await it.messages(), await it.read(), await it.events()];
    for (const stale of [it.alertPost('again', {}), it.edit(row, 'late', 'late line'), it.edit(row, 'late', null)])
      await expect(it.log.append(stale)).rejects.toThrow(AlertConflictError);
    await expect(it.log.append(it.unchanged(row))).rejects.toThrow(AlertConflictError);
    expect([await it.messages(), await it.read(), await it.events()]).toEqual([before, state, told]);
    expect(it.log.depth).toBe(0);
  });

  test('by another post of the same flush is not written', async () => {
    const row = await it.begin();
    const answers = await Promise.allSettled([
      it.log.append(it.edit(row, 'first', 'first line')),
      it.log.append(it.edit(row, 'second', 'second line')),
      it.log.append(post(it.group, 'plain')),
    ]);
    expect(answers).toMatchObject([{ value: { outcome: 'new', seq: 1 } }, conflict, { value: { seq: 3 } }]);
    expect(await it.messages()).toEqual([
      [1, 2, 'first', true],
      [2, 3, 'first line', false],
      [3, 4, 'plain', false],
    ]);
  });

  /**
   * Makes the posts of two nodes wait for the same lock, so that the snapshot of the second is older than the commit of
   * the first.
   */
  async function atOnce(one: Post, other: Post): Promise<PromiseSettledResult<unknown>[]> {
    const second = it.openLog();
    const held = await lockHead(it.testDatabase.target, it.group.id);
    const answers = Promise.allSettled([it.log.append(one), second.append(other)]);
    await until(it.testDatabase, (sql) => isWaiting(sql, 'intake', 2));
    await held.release();
    return answers;
  }

  test('by another node that wrote the first row at the same moment is not written', async () => {
    const answers = await atOnce(it.alertPost('of one node', {}), it.alertPost('of another node', {}));
    expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(answers).toContainEqual(conflict);
    expect([(await it.messages()).length, await it.head()]).toMatchObject([1, { seq: 1, rev: 1 }]);
    expect(await it.read()).toMatchObject({ version: 1, seq: 1 });
  });

  test('by another node that changed the row at the same moment is not written', async () => {
    const row = await it.begin();
    const answers = await atOnce(it.edit(row, 'of one node', 'line'), it.edit(row, 'of another node', 'line'));
    expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(answers).toContainEqual(conflict);
    expect([(await it.messages()).length, await it.head()]).toMatchObject([2, { seq: 2, rev: 3 }]);
    expect(await it.read()).toMatchObject({ version: 2 });
    // No flush had to be repeated: a statement that locks the alert's row reads its newest version.
    expect(it.logs.map(({ counts }) => counts.failedCommits)).toEqual([0, 0]);
  });

  test('that was removed and made again is not written', async () => {
    const row = await it.begin();
    await it.testDatabase.query((sql) => sql`delete from alert`);
    await it.log.append(it.alertPost('new', {}));
    expect(await it.read()).toMatchObject({ version: row.version, seq: 2 });
    await expect(it.log.append(it.edit(row, 'late', null))).rejects.toThrow(AlertConflictError);
    expect((await it.messages()).map(([, , text]) => text)).toEqual(['CPU firing', 'new']);
  });

  test('whose message was deleted meanwhile is not written: a deleted message gets no text back', async () => {
    const row = await it.begin();
    const deleting = await holdOpen(it.testDatabase.target, async (tx) => {
      await lockGroup(tx, it.group.id);
      const actorId = it.group.accountId;
      await eraseMessage(tx, { conversationId: it.group.id, seq: row.seq, actorId, hops: 0 });
    });
    const answers = Promise.allSettled([it.log.append(it.edit(row, 'late', 'late line'))]);
    await until(it.testDatabase, (sql) => isWaiting(sql, 'intake'));
    await deleting.release();
    expect(await answers).toEqual([conflict]);
    expect(await it.messages()).toEqual([[1, 2, '', false]]);
    const gone = await it.read();
    expect(gone).toMatchObject({ shownText: null, version: 1 });
    await it.log.append(it.alertPost('anew', { decidedFrom: gone }));
    expect(await it.read()).toMatchObject({ shownText: 'anew', seq: 2, version: 2 });
  });

  test('whose message a retention rule removed is not written', async () => {
    const row = await it.begin();
    await it.log.append(post(it.group, 'newer'));
    await it.testDatabase.query(
      (sql) => sql`update conversation_head set first_seq = 2 where conversation_id = ${it.group.id}`,
    );
    await expect(it.log.append(it.edit(row, 'late', null))).rejects.toThrow(AlertConflictError);
    expect(await it.read()).toMatchObject({ shownText: null });
  });
});
