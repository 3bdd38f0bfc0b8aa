import { describe, expect, test } from '@jest/globals';
import { HookRecord, Recorder, textOf } from '../../faults/recorder.ts';
import { judge } from '../../faults/verdict.ts';

/** The record of a hook whose receiver got these posts in this order. The message of post n has the seq n + 1. */
function recordOf(posts: readonly number[], strict = true): HookRecord {
  const recorder = new Recorder();
  const record = recorder.expect('/0/0', strict);
  for (const post of posts) record.take(arrive(recorder, [post]));
  return record;
}

function arrive(recorder: Recorder, posts: readonly number[], id?: string) {
  const [first, last] = [posts[0]! + 1, posts.at(-1)! + 1];
  const bodies = posts.map((post) => ({ data: { message: { seq: post + 1, text: textOf(post) } } }));
  const headers = { 'webhook-id': id ?? (first === last ? `7_3_${first}` : `7_3_${first}-${last}`) };
  return recorder.arrived('/0/0', headers, JSON.stringify(bodies.length === 1 ? bodies[0] : bodies))!;
}

const verdictOf = (record: HookRecord, allowedDuplicates = 0) =>
  judge([{ record, acknowledged: new Map([0, 1, 2].map((post) => [post, post + 1])), allowedDuplicates }]);

describe('the verdict on a fault', () => {
  test('finds nothing where everything arrived once and in order', () => {
    const clean = { lost: 0, outOfOrder: 0, duplicates: 0, worstDuplicates: 0, allowedDuplicates: 0, violations: [] };
    expect(verdictOf(recordOf([0, 1, 2]))).toEqual(clean);
  });

  test('misses what was answered 200 and did not arrive', () => {
    expect(verdictOf(recordOf([0, 2]))).toMatchObject({ lost: 1, violations: ['1 messages were lost'] });
  });

  test('misses a message that arrived under the seq of another', () => {
    const recorder = new Recorder();
    const record = recorder.expect('/0/0', true);
    record.take({ ...arrive(recorder, [0]), posts: [1] });
    expect(verdictOf(record).lost).toBe(3);
  });

  test('sees the first arrival of a message after that of a later one, and not its repeats', () => {
    expect(verdictOf(recordOf([0, 2, 1])).outOfOrder).toBe(1);
    expect(verdictOf(recordOf([0, 1, 2, 1, 2]), 2).outOfOrder).toBe(0);
  });

  test('sees it in arrivals that were refused as well', () => {
    const recorder = new Recorder();
    const record = recorder.expect('/0/0', true);
    arrive(recorder, [1]);
    for (const post of [0, 1, 2]) record.take(arrive(recorder, [post]));
    expect(verdictOf(record).outOfOrder).toBe(1);
  });

  test('asks no order of a hook that has none', () => {
    expect(verdictOf(recordOf([2, 0, 1], false))).toMatchObject({ lost: 0, outOfOrder: 0, violations: [] });
  });

  test('counts repeats, and refuses more of them in one run than a lane may show', () => {
    expect(verdictOf(recordOf([0, 1, 0, 1, 2]), 2)).toMatchObject({
      duplicates: 2,
      worstDuplicates: 2,
      violations: [],
    });
    const tooMany = 'a lane sent 2 messages again in a run, 1 are allowed';
    expect(verdictOf(recordOf([0, 1, 0, 1, 2]), 1).violations).toEqual([tooMany]);
  });

  test('tells of the lane that is nearest to its bound', () => {
    const lane = (posts: readonly number[], allowedDuplicates: number) => ({
      record: recordOf(posts),
      acknowledged: new Map<number, number>(),
      allowedDuplicates,
    });
    const lanes = [lane([0, 0, 1], 8), lane([0, 1, 0, 1, 1], 4), lane([0, 1, 2, 0, 1, 2, 0], 80)];
    expect(judge(lanes)).toMatchObject({ duplicates: 8, worstDuplicates: 3, allowedDuplicates: 4, violations: [] });
  });

  test('counts them for each run by itself', () => {
    const recorder = new Recorder();
    const record = recorder.expect('/0/0', true);
    for (const post of [0, 1, 2]) {
      record.beginRun();
      for (let n = 0; n < 2; n += 1) record.take(arrive(recorder, [post]));
    }
    expect(verdictOf(record, 1)).toMatchObject({ duplicates: 3, worstDuplicates: 1, violations: [] });
  });

  test('does not take a refused delivery for a duplicate', () => {
    const recorder = new Recorder();
    const record = recorder.expect('/0/0', true);
    for (const post of [0, 0, 1, 2]) arrive(recorder, [post]);
    for (const post of [0, 1, 2]) record.take(arrive(recorder, [post]));
    expect(verdictOf(record)).toMatchObject({ lost: 0, duplicates: 0, violations: [] });
  });

  test('knows the messages of a batch, and a webhook-id that names others', () => {
    const recorder = new Recorder();
    const record = recorder.expect('/0/0', true);
    record.take(arrive(recorder, [0, 1, 2]));
    expect(verdictOf(record)).toMatchObject({ lost: 0, outOfOrder: 0, violations: [] });
    expect([...recorder.violations]).toEqual([]);
    arrive(recorder, [0, 1], '7_3_1-3');
    expect([...recorder.violations]).toEqual(['a webhook-id did not name the messages of its body']);
  });

  test('sees a message that comes again under its number with another text', () => {
    const recorder = new Recorder();
    const record = recorder.expect('/0/0', true);
    for (const post of [0, 1, 2]) record.take(arrive(recorder, [post]));
    record.take({ ...arrive(recorder, [1]), posts: [7] });
    expect(verdictOf(record, 1).violations).toEqual(['a message came again under its number with another text']);
  });

  test('takes an edited message for that of its post, and one of a later epoch for itself', () => {
    const recorder = new Recorder();
    const record = recorder.expect('/0/0', true);
    const body = { type: 'message.created', data: { message: { seq: 1, text: `${textOf(0)} (edit 3)` } } };
    const delivery = recorder.arrived('/0/0', { 'webhook-id': '7_3_1.29012345' }, JSON.stringify(body))!;
    expect(delivery).toMatchObject({ seqs: [1], posts: [0] });
    expect([...recorder.violations]).toEqual([]);
    expect(record.outOfOrder).toBe(0);
  });

  test('asks of events the order of epoch and rev, counts their repeats, and takes none for a message', () => {
    const recorder = new Recorder();
    const record = recorder.expect('/0/0', true);
    const takeEvent = (rev: number, epoch?: number) => {
      const body = { type: 'message.updated', data: { rev, epoch, message: { seq: 1, text: textOf(0) } } };
      const id = `7_3_r${rev}${epoch === undefined ? '' : `.${epoch}`}`;
      const delivery = recorder.arrived('/0/0', { 'webhook-id': id }, JSON.stringify(body))!;
      record.take(delivery);
      return delivery;
    };
    expect(takeEvent(5)).toMatchObject({ seqs: [], posts: [], events: [{ epoch: 0, rev: 5 }] });
    for (const rev of [7, 7, 6]) takeEvent(rev);
    expect(record).toMatchObject({ outOfOrder: 1, duplicates: 1, worstDuplicates: 1, taken: 0 });
    expect([5, 6, 7, 8].map((rev) => record.hasEvent(rev))).toEqual([true, true, true, false]);
    takeEvent(6, 29_012_345);
    expect(record).toMatchObject({ outOfOrder: 1, duplicates: 1 });
    expect([...recorder.violations]).toEqual([]);
  });

  test('sees a webhook-id of events on messages, and the other way round', () => {
    for (const [id, type] of [
      ['7_3_r5', 'message.created'],
      ['7_3_5', 'message.updated'],
      ['7_3_r6', 'message.updated'],
    ]) {
      const recorder = new Recorder();
      recorder.expect('/0/0', true);
      const body = { type, data: { rev: 5, message: { seq: 5, text: textOf(0) } } };
      recorder.arrived('/0/0', { 'webhook-id': id }, JSON.stringify(body));
      expect(recorder.violations.size).toBe(1);
    }
  });

  test('sees a rev that comes twice with another message or text, in one epoch', () => {
    const recorder = new Recorder();
    recorder.expect('/0/0', true);
    const arriveMessage = (seq: number, text: string, rev: number, epoch?: number): void => {
      const message = { seq, text, rev, rev_epoch: epoch };
      const body = { type: 'message.created', data: { group: { id: 3 }, message } };
      recorder.arrived('/0/0', { 'webhook-id': `7_3_${seq}` }, JSON.stringify(body));
    };
    arriveMessage(1, 'post 0', 1);
    arriveMessage(1, 'post 0', 1);
    arriveMessage(1, 'post 0 (edit 1)', 2);
    arriveMessage(1, 'post 9', 1, 29_012_345);
    expect(recorder.textByRev.conflicts).toBe(0);
    arriveMessage(1, 'post 9', 1);
    arriveMessage(2, 'post 0', 1);
    recorder.textByRev.note({ group: 3, epoch: 0, rev: 2 }, '1 post 0 (edit 2)');
    expect(recorder.textByRev.conflicts).toBe(3);
  });

  test('sees a post that was written twice', () => {
    const recorder = new Recorder();
    const record = recorder.expect('/0/0', true);
    for (const post of [0, 1, 2]) record.take(arrive(recorder, [post]));
    record.take({ ...arrive(recorder, [3]), posts: [1] });
    expect(verdictOf(record).violations).toEqual(['a post repeated with its Idempotency-Key was written twice']);
  });
});
