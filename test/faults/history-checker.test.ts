import { expect, test } from '@jest/globals';
import { judgeHistory } from '../../faults/histories/checker.ts';
import type {
  Action,
  Arrival,
  DeliveredItem,
  History,
  HookHistory,
  HookSettings,
  MessageState,
} from '../../faults/histories/history.ts';

const GROUP = 7;
const HOOK = 5;
const SETTINGS: HookSettings = {
  order: 'strict',
  batch: 1,
  events: ['message.updated', 'message.deleted'],
  skip: [],
};
const rev = (number: number) => ({ epoch: 0, number });

const registered: Action = { type: 'registered', asked: 1, answered: 2, hook: HOOK, settings: SETTINGS };
const posted = (seq: number, asked: number): Action => ({
  type: 'posted',
  asked,
  answered: asked + 1,
  message: `${seq}`,
  seq,
  rev: rev(seq),
  text: `text ${seq}`,
  by: 'user',
});
const edited: Action = {
  type: 'message.updated',
  asked: 30,
  answered: 31,
  message: '1',
  rev: rev(3),
  text: 'edited',
  by: 'user',
};

const created = (seq: number, state: Partial<DeliveredItem> = {}): DeliveredItem => ({
  type: 'message.created',
  key: `${seq}`,
  group: GROUP,
  message: `${seq}`,
  seq: rev(seq),
  rev: rev(seq),
  eventRev: null,
  text: `text ${seq}`,
  deleted: false,
  attachments: 0,
  ...state,
});
const updated: DeliveredItem = {
  ...created(1, { rev: rev(3), text: 'edited' }),
  type: 'message.updated',
  key: 'r3',
  eventRev: rev(3),
};
const arrival = (item: DeliveredItem, arrived: number, more: Partial<Arrival> = {}): Arrival => ({
  hook: HOOK,
  arrived,
  ended: arrived + 1,
  status: 200,
  webhookId: `${HOOK}_${GROUP}_${item.key}`,
  isGenuine: true,
  isArray: false,
  items: [item],
  ...more,
});

const ARRIVALS = [arrival(created(1), 12), arrival(created(2), 22), arrival(updated, 32)];
const STATES = new Map<string, MessageState>([
  ['1', { rev: rev(3), text: 'edited', deleted: false }],
  ['2', { rev: rev(2), text: 'text 2', deleted: false }],
]);

/** A history of two posts and an edit, all delivered. `hook` and `actions` add to it. */
function history(hook: Partial<HookHistory> = {}, actions: readonly Action[] = []): History {
  const all = [registered, posted(1, 10), posted(2, 20), edited, ...actions];
  const handled = ['1', '2', 'r3'];
  return {
    group: GROUP,
    actions: all.sort((a, b) => a.asked - b.asked),
    hooks: [{ hook: HOOK, arrivals: ARRIVALS, log: [], messages: STATES, handled, pending: 0, ...hook }],
    messages: STATES,
    notices: [],
  };
}

test('a history that is as it was promised has no violations', () => {
  expect(judgeHistory(history())).toEqual([]);
});

const [first, second, third] = ARRIVALS as [Arrival, Arrival, Arrival];
const late = (arrived: number): Arrival => arrival(created(1, { rev: rev(3), text: 'edited' }), arrived);
const kill = (asked: number): Action => ({ type: 'killed', asked, answered: asked + 1 });
const restored = (backupAt: number, asked: number): Action => ({
  type: 'restored',
  backupAt,
  asked,
  answered: asked + 1,
});
const fromFirst = (asked: number): Action => ({
  type: 'redelivered from',
  asked,
  answered: asked + 1,
  hook: HOOK,
  message: '1',
  status: 202,
  from: '1',
});

test.each<[string, History, string]>([
  ['a message that was lost', history({ arrivals: [first, third] }), '2 was not delivered'],
  ['an event that was lost', history({ arrivals: [first, second] }), 'r3 was not delivered'],
  [
    'messages in the wrong order',
    history({ arrivals: [arrival(created(2), 22), arrival(created(1), 24), third] }),
    '5_7_2 came before 1',
  ],
  [
    'an event before a message that was posted before the change',
    history({ arrivals: [first, arrival(updated, 32), arrival(created(2), 34)] }),
    '5_7_r3 came before 2',
  ],
  [
    'two requests at once',
    history({ arrivals: [{ ...first, ended: 23 }, second, third] }),
    'was the 2th request at once',
  ],
  ['a repeat without a reason', history({ arrivals: [first, second, third, late(40)] }), '1 came again in 5_7_1'],
  [
    'a failure that is not repeated at once',
    history({ arrivals: [first, { ...second, status: 500 }, third, arrival(created(2), 40)] }),
    '5_7_r3 came before 2',
  ],
  [
    'another text',
    history({ arrivals: [arrival(created(1, { text: 'x' }), 12), second, third] }),
    'another state under rev 1',
  ],
  [
    'a state that never was',
    history({ arrivals: [arrival(created(1, { rev: rev(9) }), 12), second, third] }),
    'carries rev 9',
  ],
  [
    'an id of another message',
    history({ arrivals: [{ ...first, webhookId: '5_7_3' }, second, third] }),
    'should be 5_7_1',
  ],
  ['a wrong signature', history({ arrivals: [{ ...first, isGenuine: false }, second, third] }), 'was not signed'],
  ['an array without a batch', history({ arrivals: [{ ...first, isArray: true }, second, third] }), 'is an array'],
  [
    'an old state in the end',
    history({ messages: new Map([...STATES, ['1', { ...STATES.get('1')!, rev: rev(1) }]]) }),
    'at rev 1',
  ],
  ['something handled twice', history({ handled: ['1', '2', 'r3', '1'] }), '1 was handled twice'],
  ['something pending', history({ pending: 1 }), '1 are pending'],
  [
    'messages skipped that nobody dropped',
    history({ log: [{ outcome: 'skipped', seq: 1, last_seq: 1 }] }),
    'nobody asked',
  ],
  [
    'messages expired that are there',
    history({ log: [{ outcome: 'expired', seq: 1, last_seq: 1 }] }),
    'was not removed',
  ],
  [
    'a refusal that never was',
    history({ log: [{ outcome: 'dead_lettered', seq: 1, last_seq: 1 }] }),
    'without being refused',
  ],
  ['a delivery that never was', history({ log: [{ outcome: 'delivered', seq: 1, last_seq: 2 }] }), 'was not accepted'],
  [
    'a redelivery that did not come',
    history({}, [
      { type: 'redelivered from', asked: 50, answered: 51, hook: HOOK, message: '2', status: 202, from: '2' },
    ]),
    '2 did not come again',
  ],
  [
    'a message that was asked for and did not come',
    history({}, [{ type: 'redelivered only', asked: 50, answered: 51, hook: HOOK, messages: ['1'], status: 202 }]),
    '1 did not come once more',
  ],
  [
    'a message to a hook that is paused',
    history({ arrivals: [first, second, third, late(60), late(62)] }, [
      { type: 'redelivered only', asked: 50, answered: 51, hook: HOOK, messages: ['1'], status: 202 },
      { type: 'paused', asked: 52, answered: 53, hook: HOOK },
    ]),
    'while it was paused',
  ],
  ['an id that was given out twice', history({}, [posted(2, 60)]), 'message 2 was given out twice'],
  ['numbers of lost changes without a new epoch', history({}, [restored(40, 50), posted(4, 60)]), 'is of no new epoch'],
  [
    'a second repeat of what was on its way at a redelivery',
    history({ arrivals: [first, second, third, late(52), late(54), late(56)] }, [fromFirst(50)]),
    '1 came again in 5_7_1 without a reason',
  ],
])('%s is a violation', (_, broken, sentence) => {
  expect(judgeHistory(broken).join('\n')).toContain(sentence);
});

test('what was on its way at a redelivery may come beside what is redelivered', () => {
  const redelivered = [late(60), arrival(created(2), 62), arrival(updated, 64)];
  const arrivals = [first, second, third, arrival(updated, 52), ...redelivered];
  expect(judgeHistory(history({ arrivals }, [fromFirst(50)]))).toEqual([]);
});

test('a restore lets come again what was taken since the backup, and no more than a kill of what was taken before', () => {
  const seqs = [4, 5, 6, 7, 8, 9, 10, 11, 12];
  const posts = seqs.map((seq) => posted(seq, 40 + 2 * seq));
  const taken = seqs.map((seq) => arrival(created(seq), 100 + 2 * seq));
  const again = seqs.map((seq) => arrival(created(seq), 200 + 2 * seq));
  const stateOf = (seq: number): MessageState => ({ rev: rev(seq), text: `text ${seq}`, deleted: false });
  const messages = new Map([...STATES, ...seqs.map((seq) => [`${seq}`, stateOf(seq)] as const)]);
  const handled = ['1', '2', 'r3', ...seqs.map(String)];
  const hook = { arrivals: [...ARRIVALS, ...taken, ...again], handled, messages };
  const judge = (backupAt: number): string[] =>
    judgeHistory({ ...history(hook, [...posts, restored(backupAt, 150)]), messages });
  expect(judge(90)).toEqual([]);
  expect(judge(140)).toEqual(['hook 5 of group 7: 9 requests came again after restored, 8 may']);
});

test('a kill lets messages come again, and only those after it', () => {
  expect(judgeHistory(history({ arrivals: [first, second, third, late(60)] }, [kill(50)]))).toEqual([]);
  expect(judgeHistory(history({ arrivals: [first, second, third, late(60)] }, [kill(70)]))).not.toEqual([]);
});
