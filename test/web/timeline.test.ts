import { afterEach, describe, expect, test } from '@jest/globals';
import { ConnectionError } from '../../client/core/chat-error.ts';
import type { Message } from '../../client/core/shapes.ts';
import { MessagePages } from '../../web/core/message-pages.ts';
import { Timeline, type FetchedMessages } from '../../web/core/timeline.ts';
import { eventually } from '../support/eventually.ts';

/** So many failures that a pause after each would make the test longer than it may take. */
const FAILURES = 40;

const message = (seq: number): Message => ({
  id: `7:${seq}`,
  seq,
  rev: seq,
  sender: { id: 1, name: 'A', nick: 'a', kind: 'user' },
  text: `message ${seq}`,
  sent_at: '2026-11-26T10:00:00Z',
});

const timelines: Timeline[] = [];
afterEach(() => {
  for (const timeline of timelines.splice(0)) timeline.close();
});

function start(fetchHistory: (after: number | null) => Promise<FetchedMessages>): {
  timeline: Timeline;
  pages: MessagePages;
} {
  const pages = new MessagePages();
  const timeline = new Timeline({ conversation: 7, pages, fetchHistory, onFirstSeq: () => {}, onMessages: () => {} });
  timelines.push(timeline);
  return { timeline, pages };
}

describe('a timeline', () => {
  test('tries at once where the server can be reached again', async () => {
    let failures = 0;
    const { timeline, pages } = start(async () => {
      if (failures === FAILURES) return { messages: [message(1)] };
      failures += 1;
      setImmediate(() => timeline.wake());
      throw new ConnectionError('away');
    });
    timeline.want({ fromSeq: 1, toSeq: 1 });
    await eventually(
      () => pages.get(7, 1),
      (found) => found !== undefined,
    );
    expect([failures, timeline.problem.value]).toEqual([FAILURES, null]);
  });

  test('fetches the notices of a conversation without messages, once', async () => {
    const created = { kind: 'created', actor: null, details: {}, at: '2026-11-26T10:00:00Z', after_seq: 0, rev: 1 };
    let fetched = 0;
    const { timeline, pages } = start(async () => {
      fetched += 1;
      return { messages: [], notices: [created] };
    });
    for (let asked = 0; asked < 3; asked += 1) {
      timeline.wantNoticesOfEmpty();
      await eventually(
        () => pages.noticesAfter(7, 0),
        (notices) => notices.length === 1,
      );
    }
    expect([fetched, timeline.problem.value]).toEqual([1, null]);
  });

  test('says no longer that a message is missing once nobody looks at it', async () => {
    const { timeline } = start(async () => ({ messages: [] }));
    timeline.want({ fromSeq: 4, toSeq: 4 });
    await eventually(
      () => timeline.problem.value,
      (problem) => problem === 'The server did not send message 4',
    );
    // The conversation now has fewer messages than the page expects, as after a restore of a backup.
    timeline.want({ fromSeq: 4, toSeq: 3 });
    timeline.wake();
    await eventually(
      () => timeline.problem.value,
      (problem) => problem === null,
    );
  });

  test('fetches the newest messages before it knows their number, and then only what is missing', async () => {
    const requested: (number | null)[] = [];
    const answers: ((fetched: FetchedMessages) => void)[] = [];
    const { timeline, pages } = start((after) => {
      requested.push(after);
      return new Promise((resolve) => answers.push(resolve));
    });
    const newest = timeline.fetchNewest();
    timeline.want({ fromSeq: 2, toSeq: 4 });
    answers[0]!({ messages: [message(3), message(4)] });
    await newest;
    answers[1]!({ messages: [message(2), message(3)] });
    await eventually(
      () => pages.get(7, 2),
      (found) => found !== undefined,
    );
    expect(requested).toEqual([null, 1]);
  });

  test('fetches the range in view after the newest messages could not be fetched', async () => {
    const requested: (number | null)[] = [];
    const { timeline, pages } = start(async (after) => {
      requested.push(after);
      if (after === null) throw new ConnectionError('broken');
      return { messages: [message(1)] };
    });
    const newest = timeline.fetchNewest();
    timeline.want({ fromSeq: 1, toSeq: 1 });
    await newest;
    await eventually(
      () => pages.get(7, 1),
      (found) => found !== undefined,
    );
    expect([requested, timeline.problem.value]).toEqual([[null, 0], null]);
  });
});
