import { afterEach, describe, expect, test } from '@jest/globals';
import { PendingDeletions } from '../../web/core/pending-deletions.ts';
import { eventually } from '../support/eventually.ts';

/** A delay that is longer than any test: a deletion that is sent was not sent because of it. */
const NEVER_MS = 1_000_000;

const started: PendingDeletions[] = [];
afterEach(() => {
  for (const deletions of started.splice(0)) deletions.stop();
});

function start(undoMs: number) {
  const removed: { conversation: number; seq: number; outlivesPage: boolean; answer: () => void }[] = [];
  const deletions = new PendingDeletions({
    undoMs,
    remove: (conversation, seq, { outlivesPage }) =>
      new Promise((answer) => removed.push({ conversation, seq, outlivesPage, answer })),
  });
  started.push(deletions);
  const sent = () => removed.map(({ conversation, seq }) => `${conversation}:${seq}`);
  return { deletions, removed, sent };
}

describe('a deletion', () => {
  test('is sent once its time has come, and cannot be undone from then on', async () => {
    const { deletions, removed, sent } = start(1);
    deletions.add(7, 3);
    expect(deletions.stateOf(7, 3)).toBe('waiting');
    await eventually(sent, ({ length }) => length === 1);
    expect([sent(), deletions.stateOf(7, 3), deletions.undo(7, 3)]).toEqual([['7:3'], 'sent', false]);
    removed[0]!.answer();
    await eventually(
      () => deletions.stateOf(7, 3),
      (state) => state === null,
    );
  });

  test('that was undone is never sent, not with the end of the page either', async () => {
    const { deletions, sent } = start(NEVER_MS);
    deletions.add(7, 3);
    deletions.add(7, 4);
    expect(deletions.undo(7, 3)).toBe(true);
    expect([deletions.stateOf(7, 3), deletions.stateOf(7, 4)]).toEqual([null, 'waiting']);
    void deletions.sendNow({ outlivesPage: true });
    expect(sent()).toEqual(['7:4']);
  });

  test('is sent at once when the page ends, by a request that outlives the page, and once', async () => {
    const { deletions, removed, sent } = start(NEVER_MS);
    deletions.add(7, 3);
    deletions.add(8, 1);
    deletions.add(8, 1);
    void deletions.sendNow({ outlivesPage: true });
    void deletions.sendNow({ outlivesPage: true });
    expect(sent()).toEqual(['7:3', '8:1']);
    expect(removed.map(({ outlivesPage }) => outlivesPage)).toEqual([true, true]);
  });

  test('is sent earlier where many wait, so that the end of a page sends few', () => {
    const { deletions, sent } = start(NEVER_MS);
    for (let seq = 1; seq <= 22; seq += 1) deletions.add(7, seq);
    expect(sent()).toEqual(['7:1', '7:2']);
  });
});
