import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Receiver } from '../../support/receiver.ts';
import { postJson, TestServer, type TestGroup } from '../../support/server.ts';

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start({ limits: { textCodePoints: 20 } });
  group = await server.createGroup('Operations');
  for (const user of ['alice', 'bob']) {
    await server.operate('accounts.create', { nick: user, name: user.toUpperCase() });
    await server.operate('groups.add-member', { group: group.id, user });
  }
  await server.operate('accounts.create', { nick: 'eve' });
});
afterAll(() => server.stop());

interface Sent {
  readonly id: string;
  readonly seq: number;
  readonly repeated: boolean;
}

const send = (text: string, input: Record<string, unknown> = {}): Promise<Sent> =>
  server.operate('messages.send', { conversation: group.id, as: 'alice', text, ...input });

describe("a member's message", () => {
  test('is numbered with those of the webhook, and is forwarded with its sender', async () => {
    const receiver = await Receiver.start();
    try {
      await postJson(`${group.webhook}/reverse`, { url: receiver.url() });
      await postJson(group.webhook, { text: 'first' });
      const sent = await send('/deploy web');
      expect(sent).toMatchObject({ id: `${group.id}:${sent.seq}`, conversation: group.id, repeated: false });
      const [before, arrival] = await receiver.received(2);
      expect(before!.body.data.message.seq).toBe(sent.seq - 1);
      expect(arrival!.body.data).toMatchObject({
        message: { id: sent.id, text: '/deploy web' },
        sender: { name: 'ALICE', nick: 'alice', kind: 'user' },
        command: { name: 'deploy', text: 'web' },
      });
    } finally {
      await receiver.stop();
    }
  });

  test('with a key is posted once, for this member alone', async () => {
    const key = { client_id: 'nightly' };
    const first = await send('once', key);
    expect(await send('once', key)).toEqual({ ...first, repeated: true });
    await expect(send('another', key)).rejects.toThrow(/client_id was used for another text/);
    expect(await send('once', { ...key, as: 'bob' })).toMatchObject({ seq: first.seq + 1, repeated: false });
    const webhook = await postJson(group.webhook, { text: 'once' }, { 'idempotency-key': 'nightly' });
    expect(webhook.body).toMatchObject({ id: `${group.id}:${first.seq + 2}` });
    await expect(send('x', { client_id: 'two words' })).rejects.toThrow(
      'client_id: must have 1 to 255 visible ASCII characters',
    );
    await expect(send('x', { client_id: 'k'.repeat(256) })).rejects.toThrow(/1 to 255/);
  });

  test('needs a membership, an account, a group, and one that is open', async () => {
    await expect(send('hello', { as: 'eve' })).rejects.toThrow(
      `eve is not a member of group ${group.id}, and only members can post: add eve to the group first`,
    );
    await expect(send('hello', { as: 'nobody' })).rejects.toThrow('There is no user with the nick nobody');
    await expect(send('hello', { conversation: 'Nowhere' })).rejects.toThrow('There is no group Nowhere');
    const { id } = await server.createGroup('Closed');
    await server.operate('groups.add-member', { group: id, user: 'alice' });
    await server.operate('groups.archive', { group: id });
    await expect(send('hello', { conversation: id })).rejects.toThrow('This group is archived');
  });

  test.each([
    ['a text at the bound', 'x'.repeat(20)],
    ['emoji at the bound', '\u{1F600}'.repeat(20)],
    ['a text over the bound', 'x'.repeat(21)],
    ['emoji over the bound', '\u{1F600}'.repeat(21)],
    ['nothing', ''],
    ['white space', ' \n\t\u00a0\ufeff'],
    ['NUL', 'a\u0000b'],
    ['half of a surrogate pair', 'a\ud800b'],
    ['line breaks around a word', '\nword\n'],
  ])('is judged like the text of a webhook: %s', async (_name, text) => {
    const webhook = await postJson(group.webhook, { text });
    const own = await send(text).then(
      ({ seq }) => ({ seq }),
      (error: Error) => ({ message: error.message }),
    );
    if (webhook.status === 200) expect(own).toEqual({ seq: Number(webhook.body.id.split(':')[1]) + 1 });
    else expect(own).toEqual({ message: webhook.body.message });
  });
});
