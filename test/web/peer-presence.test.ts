import { describe, expect, test } from '@jest/globals';
import { PeerPresence } from '../../web/core/peer-presence.ts';

const peer = (account: number) => ({ conversation: 100 + account, account });

function start() {
  const asked: { conversation: number; answer: (online: number[]) => void; fail: () => void }[] = [];
  const presence = new PeerPresence(
    (conversation) =>
      new Promise((answer, fail) => asked.push({ conversation, answer, fail: () => fail(new Error('refused')) })),
  );
  return { presence, asked };
}

describe('the presence of people in private conversations', () => {
  test('is asked for once, one after the other, and only of the first 20', async () => {
    const { presence, asked } = start();
    const all = presence.fetchPresence(Array.from({ length: 30 }, (_, index) => peer(index + 1)));
    for (let each = 0; each < 20; each += 1) {
      expect(asked.length).toBe(each + 1);
      asked[each]!.answer(each % 2 === 0 ? [each + 1, 1_000] : []);
      await new Promise(setImmediate);
    }
    await all;
    await presence.fetchPresence([peer(1), peer(2)]);
    expect(asked.length).toBe(20);
    expect([1, 2, 21, 1_000].map((account) => presence.isOnline(account))).toEqual([true, false, null, null]);
  });

  test('follows notifications, of which one that comes before the answer is newer than it', async () => {
    const { presence, asked } = start();
    const done = presence.fetchPresence([peer(1)]);
    presence.onNotification(1, false);
    asked[0]!.answer([1]);
    await done;
    expect(presence.isOnline(1)).toBe(false);
    presence.onNotification(1, true);
    presence.onNotification(2, true);
    expect([presence.isOnline(1), presence.isOnline(2)]).toEqual([true, null]);
  });

  test('is not known without a connection, and an answer of the former one does not count', async () => {
    const { presence, asked } = start();
    const former = presence.fetchPresence([peer(1), peer(2)]);
    presence.clear();
    asked[0]!.answer([1]);
    await former;
    expect([presence.isOnline(1), asked.length]).toEqual([null, 1]);
    const next = presence.fetchPresence([peer(1)]);
    asked[1]!.fail();
    await next;
    expect(presence.isOnline(1)).toBe(null);
  });
});
