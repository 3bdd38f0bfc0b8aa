import { afterEach, describe, expect, test } from '@jest/globals';
import { Typing } from '../../web/core/typing.ts';
import { eventually } from '../support/eventually.ts';

const started: Typing[] = [];
afterEach(() => {
  for (const typing of started.splice(0)) typing.clear();
});

function start(shownMs = 1_000_000) {
  const sent: number[] = [];
  const clock = { now: 0 };
  const typing = new Typing({ sendTyping: (conversation) => sent.push(conversation), shownMs, now: () => clock.now });
  started.push(typing);
  return { typing, sent, clock };
}

describe('an account that types', () => {
  test('tells the others at most once in 3 seconds, and at once in another conversation', () => {
    const { typing, sent, clock } = start();
    for (let ms = 0; ms < 9_000; ms += 100) {
      clock.now = ms;
      typing.onTyped(7);
    }
    expect(sent).toEqual([7, 7, 7]);
    typing.onTyped(8);
    expect(sent).toEqual([7, 7, 7, 8]);
  });
});

describe('others who type', () => {
  test('are shown in the order in which they began, until their message comes', () => {
    const { typing } = start();
    typing.onTypingNotification(7, { id: 2, name: 'Ann' });
    typing.onTypingNotification(7, { id: 3, name: 'Bob' });
    typing.onTypingNotification(8, { id: 4, name: 'Elsewhere' });
    typing.onTypingNotification(7, { id: 2, name: 'Ann' });
    expect(typing.typistNamesIn(7)).toEqual(['Ann', 'Bob']);
    typing.onMessage(7, 2);
    expect(typing.typistNamesIn(7)).toEqual(['Bob']);
    typing.clear();
    expect([typing.typistNamesIn(7), typing.typistNamesIn(8)]).toEqual([[], []]);
  });

  test('are forgotten when nothing more is heard of them', async () => {
    const { typing } = start(1);
    typing.onTypingNotification(7, { id: 2, name: 'Ann' });
    await eventually(
      () => typing.typistNamesIn(7),
      ({ length }) => length === 0,
    );
  });

  test('are at most a hundred, and the first one is forgotten for another', () => {
    const { typing } = start();
    for (let id = 1; id <= 150; id += 1) typing.onTypingNotification(7, { id, name: `N${id}` });
    const names = typing.typistNamesIn(7);
    expect([names.length, names[0], names.at(-1)]).toEqual([100, 'N51', 'N150']);
  });
});
