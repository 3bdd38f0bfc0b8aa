import { expect } from '@jest/globals';
import type { ChatEvent } from '../../../client/core/events.ts';
import type { Change, Message } from '../../../client/core/shapes.ts';

/** The changes of one conversation that a client received, in their order. */
export function changesOf(events: readonly ChatEvent[], conversation: number): Change[] {
  return events.flatMap((event) =>
    event.type === 'change' && event.conversation === conversation ? [event.change] : [],
  );
}

/**
 * Checks that these changes give the current state of the conversation:
 * - no change comes twice or out of order,
 * - every message is in its last state,
 * - every unchanged message comes exactly once.
 */
export function expectComplete(changes: readonly Change[], history: readonly Message[]): void {
  const revs = changes.map(({ rev }) => rev);
  expect(revs).toEqual([...new Set(revs)].sort((a, b) => a - b));
  const states = new Map<number, Message>();
  const times = new Map<number, number>();
  for (const { message } of changes) {
    if (message === undefined) continue;
    states.set(message.seq, message);
    times.set(message.seq, (times.get(message.seq) ?? 0) + 1);
  }
  const show = ({ seq, rev, text }: Message): unknown => ({ seq, rev, text });
  expect([...states.values()].sort((a, b) => a.seq - b.seq).map(show)).toEqual(history.map(show));
  const untouched = history.filter(({ edited_at, deleted }) => edited_at === undefined && deleted === undefined);
  expect(untouched.filter(({ seq }) => times.get(seq) !== 1).map(show)).toEqual([]);
}
