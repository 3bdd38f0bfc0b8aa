import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Attachment } from '../../../src/model/attachment.ts';
import { callAs, CallError } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { insertFile } from '../../support/files.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import { TestServer } from '../../support/server.ts';
import { changes, history, joined, privateOf, send, withScopes } from '../conversation-calls.ts';

let server: TestServer;
let alice: TestPerson;
let bob: TestPerson;
let eve: TestPerson;
let group: number;
let turn = 0;

beforeAll(async () => {
  server = await TestServer.start({ limits: { attachmentsPerMessage: 3, sessionRequestBurst: 5_000 } });
});
afterAll(() => server.stop());
beforeEach(async () => {
  turn += 1;
  group = (await server.createGroup(`Group ${turn}`)).id;
  alice = await joined(server, `alice${turn}`, group);
  bob = await joined(server, `bob${turn}`, group);
  eve = await createPerson(server, `eve${turn}`);
});

const own = (changed: Parameters<typeof insertFile>[2] = {}): Promise<Attachment> =>
  insertFile(server, alice.id, changed);

const refusal = async (work: Promise<unknown>): Promise<CallError> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof CallError) return error;
    throw error;
  }
  throw new Error('it was done');
};

const newest = async (person: TestPerson): Promise<{ text: string; attachments: Attachment[]; rev: number }> =>
  (await history(server, person, { conversation: group, limit: 1 })).messages[0]!;

const stateOf = async ({ id }: Attachment): Promise<string> => {
  const [row] = await server.database.query((sql) => sql<{ state: string }[]>`select state from file where id = ${id}`);
  return row?.state ?? 'gone';
};

describe('a message with files', () => {
  test('shows them to everybody in it, in the order in which they were named', async () => {
    const [one, two] = [await own({ name: 'one' }), await own({ name: 'Zwei — 2.png', type: 'image/png' })];
    const { seq } = await send(server, alice, group, 'both', { files: [two.id, one.id] });
    expect(await newest(bob)).toMatchObject({ text: 'both', attachments: [two, one] });
    const page = await changes(server, bob, { conversation: group, after_rev: 0 });
    expect(page.changes.find(({ message }) => message?.seq === seq)!.message).toMatchObject({
      attachments: [two, one],
    });
    expect(Object.keys((await newest(bob)).attachments[0]!)).toEqual(['id', 'name', 'type', 'size']);
  });

  test('needs no text, and white space is none', async () => {
    for (const text of ['', ' \n\t']) {
      const file = await own();
      await send(server, alice, group, text, { files: [file.id] });
      expect(await newest(bob)).toMatchObject({ text: '', attachments: [file] });
    }
    expect((await refusal(send(server, alice, group, ' ', { files: [] }))).message).toMatch(/^text: must hold/);
  });

  test('is found by its words with what it carries', async () => {
    const file = await own();
    await send(server, alice, group, 'quarterly figures', { files: [file.id] });
    const found = await eventually(
      () => callAs(server, bob, 'messages.search', { text: 'quarterly', conversation: group }),
      ({ messages }) => messages.length > 0,
    );
    expect(found.messages[0]).toMatchObject({ attachments: [file] });
  });

  test("can be a bot's, and one in a private conversation", async () => {
    const bot = await withScopes(server, alice, ['messages:write']);
    const [first, second] = [await own(), await own()];
    await send(server, bot, group, '', { files: [first.id] });
    expect(await newest(bob)).toMatchObject({ attachments: [first] });
    const privately = await privateOf(server, alice, bob);
    await send(server, alice, privately, '', { files: [second.id] });
    const page = await history(server, bob, { conversation: privately });
    expect(page.messages[0]).toMatchObject({ attachments: [second] });
  });

  test('is posted by the command line as one of the members', async () => {
    const file = await own();
    await server.operate('messages.send', { conversation: group, as: alice.nick, text: '', files: [file.id] });
    expect(await newest(bob)).toMatchObject({ attachments: [file] });
  });
});

describe('what cannot be attached', () => {
  const NO_SUCH_FILE = 'the sender has no such file (files.list shows those of the sender)';
  test.each<[string, () => Promise<string>, string]>([
    ["somebody else's file", async () => (await insertFile(server, bob.id)).id, NO_SUCH_FILE],
    ['one that there is not', async () => 'x'.repeat(22), NO_SUCH_FILE],
    ['one that was removed', async () => (await own({ state: 'removed' })).id, NO_SUCH_FILE],
    [
      'one that is not complete',
      async () => (await own({ state: 'uploading' })).id,
      'it is not complete yet; finish its upload first',
    ],
    [
      "another message's",
      async () => {
        const { id } = await own();
        await send(server, alice, group, 'first', { files: [id] });
        return id;
      },
      'another message carries it already; upload it again',
    ],
  ])('%s is told by its number, and nothing is posted', async (_what, make, reason) => {
    const [good, bad] = [await own({ name: 'secret name' }), await make()];
    const before = await history(server, bob, { conversation: group });
    const error = await refusal(send(server, alice, group, 'both', { files: [good.id, bad] }));
    expect(error).toMatchObject({ status: 409, code: 'file_not_attachable' });
    expect(error.message).toBe(`files: number 2 cannot be attached: ${reason}`);
    expect(await history(server, bob, { conversation: group })).toEqual(before);
    await send(server, alice, group, '', { files: [good.id] });
  });

  test('too many, one twice, and what is no id', async () => {
    const ids = await Promise.all([1, 2, 3, 4].map(async () => (await own()).id));
    const errorOf = (files: unknown): Promise<CallError> =>
      refusal(callAs(server, alice, 'messages.send', { conversation: group, text: 'x', files }));
    expect(await errorOf(ids)).toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('at most 3 (limits.attachments-per-message), not 4; send the others in another'),
    });
    expect((await errorOf([ids[0], ids[1], ids[0]])).message).toBe('files: number 3 is named twice; name it once');
    for (const wrong of [['../../etc/passwd'], ['x'], [7], [null], 'x', { 0: ids[0] }, Array(101).fill(ids[0])]) {
      expect((await errorOf(wrong)).code).toBe('invalid_input');
    }
  });

  test('why a message is refused comes before why its files are', async () => {
    const [theirs, mine] = [await insertFile(server, bob.id), await own()];
    expect((await refusal(send(server, eve, group, '', { files: [theirs.id] }))).code).toBe('not_found');
    await server.operate('groups.archive', { group });
    expect((await refusal(send(server, alice, group, '', { files: [theirs.id] }))).code).toBe('group_archived');
    expect(await stateOf(mine)).toBe('stored');
  });

  test('of several messages at once with the same file one gets it', async () => {
    const { id } = await own();
    const sent = await Promise.allSettled(
      Array.from({ length: 8 }, (_, n) => send(server, alice, group, `${n}`, { files: [id] })),
    );
    expect(sent.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const each of sent)
      if (each.status === 'rejected') expect(each.reason).toMatchObject({ code: 'file_not_attachable' });
  });
});

describe('a client_id', () => {
  test('answers the first message for the same text and files', async () => {
    const [one, two] = [await own(), await own()];
    const first = await send(server, alice, group, 'once', { client_id: 'c', files: [one.id] });
    expect(await send(server, alice, group, 'once', { client_id: 'c', files: [one.id] })).toEqual({
      ...first,
      repeated: true,
    });
    for (const files of [[two.id], [one.id, two.id], []]) {
      const error = await refusal(send(server, alice, group, 'once', { client_id: 'c', files }));
      expect(error.code).toBe('idempotency_key_reused');
    }
    // The message was posted before it was deleted, so a repeat does not post it again.
    await callAs(server, alice, 'messages.delete', { conversation: group, seq: first.seq });
    expect(await send(server, alice, group, 'once', { client_id: 'c', files: [one.id] })).toMatchObject({
      repeated: true,
    });
  });

  test('of a message that was refused for its files is free for another try', async () => {
    const file = await own({ state: 'uploading' });
    const again = (): Promise<unknown> => send(server, alice, group, 'x', { client_id: 'd', files: [file.id] });
    expect((await refusal(again())).code).toBe('file_not_attachable');
    await server.database.query((sql) => sql`update file set state = 'stored' where id = ${file.id}`);
    expect(await again()).toMatchObject({ repeated: false });
  });
});

describe('editing and deleting', () => {
  test('an edit keeps the files, and may take all of the text away', async () => {
    const file = await own();
    const { seq } = await send(server, alice, group, 'before', { files: [file.id] });
    const edit = (text: string, at = seq): Promise<unknown> =>
      callAs(server, alice, 'messages.edit', { conversation: group, seq: at, text });
    expect(await edit('after')).toMatchObject({ text: 'after', attachments: [file] });
    expect(await edit(' ')).toMatchObject({ text: '', attachments: [file] });
    expect(await newest(bob)).toMatchObject({ text: '', attachments: [file] });
    const plain = await send(server, alice, group, 'plain');
    expect((await refusal(edit('', plain.seq))).message).toMatch(/^text: must hold something/);
  });

  test('a deleted message has none, and they are given up', async () => {
    const [one, two, other] = [await own(), await own(), await own()];
    const { seq } = await send(server, alice, group, 'x', { files: [one.id, two.id] });
    await send(server, alice, group, 'y', { files: [other.id] });
    const deleted = await callAs(server, alice, 'messages.delete', { conversation: group, seq });
    expect(deleted).toMatchObject({ deleted: true, text: '', attachments: [] });
    const page = await changes(server, bob, { conversation: group, after_rev: 0 });
    expect(page.changes.find(({ message }) => message?.seq === seq)!.message).toMatchObject({ attachments: [] });
    // The job that removes files may have run already.
    for (const file of [one, two]) expect(await stateOf(file)).not.toBe('stored');
    expect(await stateOf(other)).toBe('stored');
    // A repeat of the deletion changes nothing.
    expect(await callAs(server, alice, 'messages.delete', { conversation: group, seq })).toEqual(deleted);
    expect((await refusal(send(server, alice, group, 'again', { files: [one.id] }))).code).toBe('file_not_attachable');
    const [row] = await server.database.query(
      (sql) => sql`select attachments from message where conversation_id = ${group} and seq = ${seq}`,
    );
    expect(row).toEqual({ attachments: null });
  });

  test('a page of history ends early where long names are, and goes on behind them', async () => {
    const name = 'é'.repeat(2_000);
    for (let n = 0; n < 6; n += 1) {
      const files = await Promise.all([1, 2, 3].map(async () => (await own({ name })).id));
      await send(server, alice, group, 'x'.repeat(40_000).replaceAll('x', '€'), { files });
    }
    const page = await history(server, bob, { conversation: group });
    expect(page.messages.length).toBeLessThan(6);
    expect(page.next).not.toBeNull();
    const rest = await history(server, bob, { conversation: group, before: page.next! });
    expect(page.messages.length + rest.messages.length).toBe(6);
  });
});
