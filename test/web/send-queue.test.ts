import { afterEach, describe, expect, test } from '@jest/globals';
import { ConnectionError, ServerError } from '../../client/core/chat-error.ts';
import type { Message } from '../../client/core/shapes.ts';
import { SendQueue, TOO_OLD_REFUSAL, type QueuedMessage } from '../../web/core/send-queue.ts';
import { eventually } from '../support/eventually.ts';

const ACCOUNT = 1;
const queues: SendQueue[] = [];
afterEach(() => {
  for (const queue of queues.splice(0)) queue.stop();
});

/** Makes a send queue, with a server whose answers the test gives. */
function start(lastSeq = 0, now = Date.now) {
  const kept = new Map<string, QueuedMessage>();
  const sent: { entry: QueuedMessage; answer: (seq: number) => void; fail: (error: Error) => void }[] = [];
  const seen = { lastSeq };
  const queue = new SendQueue({
    account: ACCOUNT,
    send: (entry) => new Promise((answer, fail) => sent.push({ entry, answer, fail })),
    keep: async (entry) => void kept.set(entry.clientId, entry),
    remove: async (clientId) => void kept.delete(clientId),
    isShown: (_conversation, seq) => seq <= seen.lastSeq,
    onChange: () => {},
    now,
  });
  queues.push(queue);
  const sentTexts = () => sent.map(({ entry }) => entry.text);
  const shown = (conversation = 7) => queue.entriesOf(conversation).map(({ text }) => text);
  return { queue, kept, sent, seen, sentTexts, shown };
}

const own = (seq: number, text: string, clientId?: string): Message => ({
  id: `7:${seq}`,
  seq,
  rev: seq,
  sender: { id: ACCOUNT, name: 'A', nick: 'a', kind: 'user' },
  text,
  sent_at: '2026-11-26T10:00:00Z',
  ...(clientId === undefined ? {} : { client_id: clientId }),
});
const entry = (changes: Partial<QueuedMessage>): QueuedMessage => ({
  clientId: 'web-1',
  account: ACCOUNT,
  conversation: 7,
  text: 'kept',
  createdAt: Date.now(),
  refusal: null,
  ...changes,
});

describe('a send queue', () => {
  test('sends one after the other in a conversation, and conversations beside each other', async () => {
    const { queue, sent, sentTexts } = start();
    for (const text of ['one', 'two']) queue.add(7, text);
    queue.add(8, 'elsewhere');
    await eventually(sentTexts, ({ length }) => length === 2);
    expect(sentTexts()).toEqual(['one', 'elsewhere']);
    sent[0]!.answer(1);
    await eventually(sentTexts, ({ length }) => length === 3);
    expect(sentTexts().at(-1)).toBe('two');
  });

  test('keeps a message before it is sent, and removes it once it is answered', async () => {
    const { queue, kept, sent } = start();
    queue.add(7, 'one');
    expect([...kept.values()].map(({ text, conversation }) => [text, conversation])).toEqual([['one', 7]]);
    await eventually(
      () => sent.length,
      (count) => count === 1,
    );
    sent[0]!.answer(1);
    await eventually(
      () => kept.size,
      (size) => size === 0,
    );
  });

  test('repeats under the same client_id until the server answers', async () => {
    const { queue, sent } = start();
    queue.add(7, 'one');
    await eventually(
      () => sent.length,
      (count) => count === 1,
    );
    for (const [at, error] of [new ConnectionError('cut'), new ServerError('outcome_unknown', 'lost')].entries()) {
      sent[at]!.fail(error);
      await new Promise((resolve) => setImmediate(resolve));
      queue.wake();
      await eventually(
        () => sent.length,
        (count) => count === at + 2,
      );
    }
    expect(new Set(sent.map(({ entry: { clientId } }) => clientId)).size).toBe(1);
  });

  test('keeps what is refused with its text, says why, and goes on with the next', async () => {
    const { queue, kept, sent, sentTexts } = start();
    queue.add(7, 'too much');
    queue.add(7, 'next');
    await eventually(
      () => sent.length,
      (count) => count === 1,
    );
    sent[0]!.fail(new ServerError('too_large', 'The text is too long'));
    await eventually(
      () => sent.length,
      (count) => count === 2,
    );
    const [refused] = queue.entriesOf(7);
    expect(refused).toMatchObject({ text: 'too much', refusal: 'The text is too long' });
    expect(kept.get(refused!.clientId)?.refusal).toBe('The text is too long');
    sent[1]!.answer(1);
    queue.retry(refused!.clientId);
    await eventually(
      () => sentTexts().at(-1),
      (text) => text === 'too much',
    );
    expect(sent[2]!.entry.clientId).not.toBe(refused!.clientId);
  });

  test.each([
    ['the answer comes first', ['answer', 'change']],
    ['the change comes first', ['change', 'answer']],
  ])('shows an own message once where %s', async (_, order) => {
    const { queue, sent, seen, shown } = start();
    queue.add(7, 'one ');
    await eventually(
      () => sent.length,
      (count) => count === 1,
    );
    const isInTimeline = () => seen.lastSeq >= 5;
    for (const step of order) {
      if (step === 'change') {
        seen.lastSeq = 5;
        queue.onOwnMessage(7, own(5, 'one', sent[0]!.entry.clientId));
      } else sent[0]!.answer(5);
      await new Promise((resolve) => setImmediate(resolve));
      expect(shown().length + (isInTimeline() ? 1 : 0)).toBe(1);
    }
  });

  test('takes a message that names its client_id for its own, and another of the same text for another', async () => {
    const { queue, sent, seen, shown } = start();
    queue.add(7, 'yes');
    await eventually(
      () => sent.length,
      (count) => count === 1,
    );
    queue.onOwnMessage(7, own(4, 'yes', 'of-another-tab'));
    expect(shown()).toEqual(['yes']);
    queue.onOwnMessage(7, own(5, 'yes', sent[0]!.entry.clientId));
    // The page does not show the row of the message yet.
    expect(shown()).toEqual(['yes']);
    seen.lastSeq = 5;
    expect(shown()).toEqual([]);
  });

  test('goes on with what the browser kept, in its order, for this account alone', async () => {
    const { queue, sent, sentTexts, shown } = start();
    queue.restore([
      entry({ clientId: 'b', text: 'second', createdAt: Date.now() - 1_000 }),
      entry({ clientId: 'a', text: 'first', createdAt: Date.now() - 2_000 }),
      entry({ clientId: 'c', account: 2, text: 'of somebody else' }),
      entry({ clientId: 'd', text: 'old', createdAt: Date.now() - 24 * 3_600_000 }),
    ]);
    await eventually(
      () => sent.length,
      (count) => count === 1,
    );
    sent[0]!.answer(1);
    await eventually(
      () => sent.length,
      (count) => count === 2,
    );
    expect(sentTexts()).toEqual(['first', 'second']);
    expect(shown()).toContain('old');
    expect(queue.entriesOf(7).find(({ text }) => text === 'old')?.refusal).toBe(TOO_OLD_REFUSAL);
  });

  test('asks before it repeats what the server may have forgotten, also on a page that stays open', async () => {
    let nowMs = Date.now();
    const { queue, sent } = start(0, () => nowMs);
    queue.add(7, 'one');
    await eventually(
      () => sent.length,
      (count) => count === 1,
    );
    nowMs += 24 * 60 * 60 * 1_000;
    sent[0]!.fail(new ConnectionError('gone'));
    await new Promise((resolve) => setImmediate(resolve));
    queue.wake();
    await eventually(
      () => queue.entriesOf(7)[0]?.refusal,
      (refusal) => refusal === TOO_OLD_REFUSAL,
    );
    expect(sent).toHaveLength(1);
  });

  test('keeps what waits when the session ends, and refuses none of it', async () => {
    const { queue, kept, sent } = start();
    for (const text of ['one', 'two']) queue.add(7, text);
    await eventually(
      () => sent.length,
      (count) => count === 1,
    );
    sent[0]!.fail(new ServerError('unauthenticated', 'Sign in first'));
    await new Promise((resolve) => setImmediate(resolve));
    queue.wake();
    await new Promise((resolve) => setImmediate(resolve));
    expect([...kept.values()].map(({ text, refusal }) => [text, refusal])).toEqual([
      ['one', null],
      ['two', null],
    ]);
    expect(sent).toHaveLength(1);
  });

  test('sends what the browser stored before what was written until it answered', async () => {
    const { queue, sent, sentTexts, shown } = start();
    queue.add(7, 'new');
    queue.restore([entry({})]);
    expect(shown()).toEqual(['kept', 'new']);
    await eventually(sentTexts, (texts) => texts.length === 1);
    sent[0]!.answer(1);
    await eventually(sentTexts, (texts) => texts.length === 2);
    expect(sentTexts()).toEqual(['kept', 'new']);
  });

  test('shows a restored message once, which was stored before and which no change tells of', async () => {
    const { queue, sent, seen, shown } = start();
    queue.restore([entry({})]);
    await eventually(
      () => sent.length,
      (count) => count === 1,
    );
    sent[0]!.answer(5);
    await new Promise((resolve) => setImmediate(resolve));
    expect(shown()).toEqual(['kept']);
    // The list of conversations has arrived, with the newest seq.
    seen.lastSeq = 5;
    expect(shown()).toEqual([]);
    queue.forgetShownEntries();
    seen.lastSeq = 0;
    expect(shown()).toEqual([]);
  });

  test('takes 500 messages', () => {
    const { queue } = start();
    for (let count = 0; count < 500; count += 1) expect(queue.add(7, 'x')).toBe(true);
    expect(queue.add(7, 'x')).toBe(false);
  });
});
