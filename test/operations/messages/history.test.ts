import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../../support/call.ts';
import type { TestPerson } from '../../support/people.ts';
import { postJson, TestServer, type TestGroup } from '../../support/server.ts';
import { history, joined, send } from '../conversation-calls.ts';

let server: TestServer;
let group: TestGroup;
let alice: TestPerson;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup('Operations');
  alice = await joined(server, 'alice', group.id);
  for (let i = 1; i <= 10; i += 1) await send(server, alice, group.id, `message ${i}`);
});
afterAll(() => server.stop());

const seqs = async (input: object): Promise<[number[], number | null]> => {
  const { messages, next } = await history(server, alice, { conversation: group.id, ...input });
  return [messages.map(({ seq }) => seq), next];
};

describe('messages.history', () => {
  test('begins with the newest and goes back, in the order of the seqs', async () => {
    expect(await seqs({ limit: 4 })).toEqual([[7, 8, 9, 10], 7]);
    expect(await seqs({ limit: 4, before: 7 })).toEqual([[3, 4, 5, 6], 3]);
    expect(await seqs({ limit: 4, before: 3 })).toEqual([[1, 2], null]);
    expect(await seqs({ limit: 4, before: 5 })).toEqual([[1, 2, 3, 4], null]);
    expect(await seqs({ before: 1 })).toEqual([[], null]);
  });

  test('goes forwards from any place', async () => {
    expect(await seqs({ limit: 4, after: 0 })).toEqual([[1, 2, 3, 4], 4]);
    expect(await seqs({ limit: 4, after: 4 })).toEqual([[5, 6, 7, 8], 8]);
    expect(await seqs({ limit: 4, after: 8 })).toEqual([[9, 10], null]);
    expect(await seqs({ after: 10 })).toEqual([[], null]);
    expect(await seqs({ after: 1_000 })).toEqual([[], null]);
  });

  test.each([
    [{ before: 3, after: 1 }, 'before, after: give one of them'],
    [{ before: 0 }, /^before: /],
    [{ after: -1 }, /^after: /],
    [{ after: 1.5 }, /^after: /],
    [{ after: 2 ** 53 }, /^after: /],
    [{ limit: 0 }, /^limit: /],
    [{ limit: 201 }, /^limit: /],
    [{ limit: '5' }, /^limit: /],
    [{ conversation: -1 }, /^conversation: /],
    [{ order: 'desc' }, /order/],
  ])('refuses %j', async (input, sentence) => {
    await expect(history(server, alice, { conversation: group.id, ...input })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(sentence),
    });
  });

  test('shows what a webhook calls itself beside the sender', async () => {
    await postJson(group.webhook, {
      text: 'alert for @Alice',
      username: 'grafana',
      icon_url: 'https://example.org/i.png',
    });
    const { messages } = await history(server, alice, { conversation: group.id, limit: 1 });
    expect(messages[0]).toMatchObject({
      sender: { kind: 'webhook', nick: null },
      label: 'grafana',
      icon_url: 'https://example.org/i.png',
      mentions: ['alice'],
    });
  });

  test('ends a page where its texts grow large, gives at least one message, and loses none', async () => {
    const large = await server.createGroup('Large');
    const bob = await joined(server, 'bob', large.id);
    // A page ends with the message that exceeds half a MiB. With 160,000 bytes each, the fourth message still begins
    // before that.
    for (let i = 0; i < 9; i += 1) await send(server, bob, large.id, '\u{1F600}'.repeat(40_000));
    for (const direction of ['after', 'before'] as const) {
      const found: number[] = [];
      let place: number | null = direction === 'after' ? 0 : 10;
      let pages = 0;
      while (place !== null) {
        const page: { messages: { seq: number }[]; next: number | null } = await history(server, bob, {
          conversation: large.id,
          [direction]: place,
          limit: 200,
        });
        expect(page.messages.length).toBeLessThanOrEqual(4);
        found.push(...page.messages.map(({ seq }) => seq));
        place = page.next;
        pages += 1;
      }
      expect(found.sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
      expect(pages).toBe(3);
    }
  });

  test('is closed to who was removed, at once', async () => {
    const eve = await joined(server, 'eve', group.id);
    await history(server, eve, { conversation: group.id });
    await server.operate('groups.remove-member', { group: group.id, user: 'eve' });
    for (const [name, input] of [
      ['messages.history', {}],
      ['conversations.sync', { after_rev: 0 }],
    ] as const) {
      await expect(callAs(server, eve, name, { conversation: group.id, ...input })).rejects.toMatchObject({
        code: 'not_found',
      });
    }
  });
});
