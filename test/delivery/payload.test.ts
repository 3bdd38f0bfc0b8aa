import { describe, expect, test } from '@jest/globals';
import { deliveryBody, deliveryId, eventBody } from '../../src/delivery/payload.ts';
import { MessageRequestBuilder } from '../../src/delivery/request-body-builder.ts';
import type { ConversationId, HookId, LogEpoch, Rev, Seq } from '../../src/model/ids.ts';
import type { DeliveryMessage } from '../../src/storage/hooks/lanes.ts';

const group = 7 as ConversationId;
const message: DeliveryMessage = {
  seq: 42 as Seq,
  logEpoch: 0 as LogEpoch,
  rev: 57 as Rev,
  revLogEpoch: 0 as LogEpoch,
  text: 'disk full',
  hops: 0,
  sentAt: new Date('2026-11-21T10:00:00.123Z'),
  deliveredAsDeleted: false,
  attachments: null,
  cards: null,
  title: 'Ops',
  senderId: 3,
  senderName: 'Ada',
  senderNick: 'ada',
  senderKind: 'user',
  label: null,
  iconUrl: null,
};
// oxlint-disable-next-line typescript/no-explicit-any
const bodyOf = (change: Partial<DeliveryMessage>): any =>
  JSON.parse(deliveryBody(group, { ...message, ...change }, (conversation, { id }) => `${conversation}/${id}`));

describe('the body of a delivery', () => {
  test('has the shape of the contract', () => {
    expect(bodyOf({})).toEqual({
      type: 'message.created',
      timestamp: '2026-11-21T10:00:00.123Z',
      data: {
        group: { id: 7, title: 'Ops' },
        message: {
          id: '7:42',
          seq: 42,
          rev: 57,
          text: 'disk full',
          sent_at: '2026-11-21T10:00:00.123Z',
          attachments: [],
        },
        sender: { id: 3, name: 'Ada', nick: 'ada', kind: 'user' },
      },
    });
  });

  test('names the epochs of its numbers beside them, where they are not 0', () => {
    const [early, late] = [29_711_520, 29_711_600] as LogEpoch[];
    const edited = { logEpoch: early!, revLogEpoch: late! };
    expect(bodyOf(edited).data.message).toMatchObject({ id: '7:42.29711520', epoch: early, rev_epoch: late });
    expect(Object.keys(bodyOf({ revLogEpoch: late! }).data.message).slice(0, 4)).toEqual([
      'id',
      'seq',
      'rev',
      'rev_epoch',
    ]);
    const actor = { actorId: 3, actorName: 'Ada', actorNick: 'ada', actorKind: 'user' as const };
    const event = { rev: 57 as Rev, seq: 42 as Seq, afterSeq: 42 as Seq, at: message.sentAt, hops: 0, ...actor };
    const changed = { ...message, ...edited, editedAt: null };
    // oxlint-disable-next-line typescript/no-explicit-any
    const body = (logEpoch: LogEpoch): any =>
      JSON.parse(eventBody(group, { ...event, kind: 'message.updated', logEpoch, message: changed }, () => ''));
    expect(body(late!).data).toMatchObject({ rev: 57, epoch: late, message: { epoch: early, rev_epoch: late } });
    expect(body(0 as LogEpoch).data).not.toHaveProperty('epoch');
  });

  test('keeps the place of a deleted message without its text', () => {
    const { data } = bodyOf({ text: '', deliveredAsDeleted: true });
    expect(data.message).toMatchObject({ seq: 42, text: '', deleted: true });
    expect(data.command).toBeUndefined();
  });

  test('carries the files of a message with links to them, and none of a deleted one', () => {
    // The properties of the attachment are in the order in which the database returns them.
    const attachments = [{ size: 5, type: 'image/png', name: 'a b.png', id: 'x'.repeat(22) }];
    const { message: shown, command } = bodyOf({ text: '', attachments }).data;
    expect(shown).toMatchObject({ text: '', attachments: [{ ...attachments[0], url: `7/${'x'.repeat(22)}` }] });
    expect(Object.keys(shown.attachments[0])).toEqual(['id', 'name', 'type', 'size', 'url']);
    expect(command).toBeUndefined();
    expect(bodyOf({ text: '', deliveredAsDeleted: true, attachments }).data.message.attachments).toEqual([]);
  });

  test('carries the cards of a message in the order of the documents, none of a deleted one, and no key without any', () => {
    const cards = [
      { url: 'https://example.org', mood: 'danger' as const, title: 'Disk', fields: [{ value: 'v', name: 'n' }] },
    ];
    const { message: shown } = bodyOf({ cards }).data;
    expect(shown.cards).toEqual(cards);
    expect(Object.keys(shown.cards[0])).toEqual(['title', 'url', 'mood', 'fields']);
    expect(Object.keys(shown.cards[0].fields[0])).toEqual(['name', 'value']);
    expect(bodyOf({ text: '', deliveredAsDeleted: true, cards }).data.message).not.toHaveProperty('cards');
    expect(bodyOf({ cards: [] }).data.message).not.toHaveProperty('cards');
  });

  test.each([
    ['/deploy', { name: 'deploy', text: '' }],
    ['  /deploy web-1 now \n', { name: 'deploy', text: 'web-1 now' }],
    ['/a_b-C9\nsecond line', { name: 'a_b-C9', text: 'second line' }],
    [`/${'x'.repeat(255)}`, { name: 'x'.repeat(255), text: '' }],
  ])('reads the command of %j', (text, command) => {
    expect(bodyOf({ text }).data.command).toEqual(command);
  });

  test.each(['deploy', '/', '/ deploy', '/dep!oy', '/path/to', `/${'x'.repeat(256)}`, '//x', 'say /deploy'])(
    'sees no command in %j',
    (text) => {
      expect(bodyOf({ text }).data).not.toHaveProperty('command');
    },
  );
});

test('the delivery id names hook, group and seq, or the revs of events', () => {
  const idIn = (logEpoch: number, ...[first, last, rev = 0, lastRev = null]: (number | null)[]): string =>
    deliveryId(5 as HookId, group, { first: first!, last: last!, rev: rev!, lastRev, logEpoch: logEpoch as LogEpoch });
  const id = (...range: (number | null)[]): string => idIn(0, ...range);
  expect([id(42, 42), id(42, 45), id(42, 42, 57, 57), id(42, 7, 57, 60)]).toEqual([
    '5_7_42',
    '5_7_42-45',
    '5_7_r57',
    '5_7_r57-60',
  ]);
  expect([idIn(29_711_520, 42, 42), idIn(29_711_520, 42, 45), idIn(29_711_520, 42, 7, 57, 60)]).toEqual([
    '5_7_42.29711520',
    '5_7_42-45.29711520',
    '5_7_r57-60.29711520',
  ]);
});

test('no batch leaves out messages that a retention rule removes while it is read', async () => {
  const [first, behind] = [1, 4].map((seq) => ({ ...message, seq: seq as Seq, body: Buffer.from('{}') }));
  const reader = {
    peek: () => undefined,
    nextMessage: (_: ConversationId, after: Seq) => Promise.resolve(after === 0 ? first : behind),
  };
  const row = { id: 5, conversationId: group, batch: 10, skip: [] };
  const requests = new MessageRequestBuilder(reader as never, row as never);
  for (const resendRangeEnd of [null, 3 as Seq]) {
    const next = await requests.next(0 as Seq, { maxMessages: 10, resendRangeEnd });
    expect(next).toEqual({ skippedTo: 0, request: null, isNextMessageRemoved: true });
  }
});

test('a hook that is sent post after post of a webhook looks like a loop, and not one that is sent those of people', async () => {
  const startMs = Date.UTC(2026, 10, 21, 10);
  const looksLikeLoop = async (senderKind: DeliveryMessage['senderKind']): Promise<boolean> => {
    let nowMs = startMs;
    const reader = {
      peek: (_: ConversationId, after: Seq) => ({
        ...message,
        senderKind,
        seq: (after + 1) as Seq,
        sentAt: new Date(nowMs),
        body: Buffer.from('{}'),
      }),
    };
    const row = { id: 5, conversationId: group, batch: 1, skip: [] };
    const requests = new MessageRequestBuilder(reader as never, row as never, null, () => nowMs + 10);
    for (let seq = 0; nowMs < startMs + 6 * 60_000; seq += 1, nowMs += 500) requests.peek(seq as Seq);
    return requests.isLoop(nowMs);
  };
  expect(await looksLikeLoop('webhook')).toBe(true);
  expect(await looksLikeLoop('user')).toBe(false);
});
