import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createGroup, createPeople, type People } from '../../groups/fixture.ts';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { Receiver } from '../../support/receiver.ts';
import { postJson, TestServer } from '../../support/server.ts';

let server: TestServer;
let people: People;
let receiver: Receiver;
let group: number;
let hook: number;
let statuses: number[] = [];
beforeAll(async () => {
  const limits = { hookRegistrationsPerGroupPerMinute: 1_000, hookChangesPerGroupPerMinute: 1_000 };
  server = await TestServer.start({ limits, delivery: { retryDelaysMs: [20] } });
  people = await createPeople(server, 'alice', 'bob', 'carol');
  receiver = await Receiver.start(() => statuses.shift() ?? 200);
});
afterAll(async () => {
  await server.stop();
  await receiver.stop();
});
beforeEach(async () => {
  statuses = [];
  group = await createGroup(server, people['alice']!, { members: { bob: 'admin', carol: 'member' } });
  hook = await register(group, '/first');
});

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers freely
const as = (nick: string, name: string, input: object): Promise<any> => callAs(server, people[nick]!, name, input);

async function register(of: number, path: string, options: object = {}): Promise<number> {
  return (await as('alice', 'hooks.create', { group: of, url: receiver.url(path), ...options })).id as number;
}

/** A person writes a message; resolves to its seq. */
async function send(text: string): Promise<number> {
  return (await as('carol', 'messages.send', { conversation: group, text })).seq as number;
}

/** Posts messages and resolves when the hook has all of them. */
async function deliver(count: number): Promise<void> {
  const { webhook } = await as('alice', 'groups.show-token', { group });
  for (let n = 0; n < count; n += 1)
    await postJson(webhook.replace('http://klatch.example', server.url), { text: `message ${n}` });
  await eventually(
    () => as('alice', 'hooks.info', { hook }),
    ({ pending }) => pending === 0,
  );
}

describe('the hooks that a person manages', () => {
  test('are those of all groups of which the person is owner or admin, with what is needed to know them', async () => {
    const other = await createGroup(server, people['alice']!, { members: { carol: 'admin' } });
    const ofOther = await register(other, '/second?key=k', { description: 'On call', order: 'none' });
    const found = async (nick: string): Promise<number[]> =>
      (await as(nick, 'hooks.list-managed', { after: hook - 1 })).hooks.map(({ id }: { id: number }) => id);
    expect(await found('alice')).toEqual([hook, ofOther]);
    expect(await found('bob')).toEqual([hook]);
    expect(await found('carol')).toEqual([ofOther]);
    const { hooks, next } = await as('carol', 'hooks.list-managed', {});
    expect(hooks).toEqual([
      expect.objectContaining({
        id: ofOther,
        group: other,
        group_title: expect.any(String),
        url: receiver.url('/second?key=k'),
        description: 'On call',
        order: 'none',
      }),
    ]);
    expect(next).toBeNull();
  });

  test('come with their requests of the last 24 hours by hour, when these are asked for', async () => {
    statuses = [500, 500];
    await deliver(2);
    const [listed] = (await as('bob', 'hooks.list', { group, requests: true })).hooks;
    const sum = (key: string): number =>
      listed.last_day.reduce((total: number, hour: Record<string, number>) => total + hour[key]!, 0);
    expect([sum('delivered'), sum('failed')]).toEqual([2, 2]);
    expect(listed.last_day[0].at).toMatch(/T\d\d:00:00\.000Z$/);
    const idle = await register(group, '/idle');
    const { hooks } = await as('bob', 'hooks.list', { group, requests: true });
    expect(hooks.find(({ id }: { id: number }) => id === idle).last_day).toEqual([]);
    expect((await as('bob', 'hooks.list', { group })).hooks[0]).not.toHaveProperty('last_day');
    await expect(as('bob', 'hooks.list', { group, requests: true, limit: 101 })).rejects.toThrow(/^limit: .*100/);
  });
});

describe('the description of a hook', () => {
  test('can be changed and removed', async () => {
    const described = async (): Promise<string | null> => (await as('bob', 'hooks.info', { hook })).description;
    await as('bob', 'hooks.update', { hook, description: 'For the people on call' });
    expect(await described()).toBe('For the people on call');
    const [row] = await server.database.query((sql) => sql`select generation from reverse_hook where id = ${hook}`);
    expect(row).toEqual({ generation: 0 });
    await as('bob', 'hooks.update', { hook, batch: 2 });
    expect(await described()).toBe('For the people on call');
    await as('bob', 'hooks.update', { hook, description: null });
    expect(await described()).toBeNull();
    await expect(as('bob', 'hooks.update', { hook, description: 'x'.repeat(201) })).rejects.toThrow(
      'description: has more than 200 characters',
    );
  });
});

describe('the filters of the delivery log', () => {
  const log = async (filter: object): Promise<unknown[]> => {
    const { attempts } = await as('bob', 'hooks.log', { hook, ...filter });
    return attempts.map(({ seq, outcome }: { seq: number; outcome: string }) => [seq, outcome]);
  };

  test('select attempts by result, time and message', async () => {
    statuses = [200, 500];
    await deliver(2);
    expect(await log({ outcome: ['failed'] })).toEqual([[2, 'failed']]);
    expect(await log({ outcome: ['delivered', 'failed'] })).toHaveLength(3);
    expect(await log({ message: `${group}:1` })).toEqual([[1, 'delivered']]);
    expect(await log({ since: new Date(Date.now() - 60_000).toISOString() })).toHaveLength(3);
    expect(await log({ since: new Date(Date.now() + 60_000).toISOString() })).toEqual([]);
    const page = await as('bob', 'hooks.log', { hook, outcome: ['delivered'], limit: 1 });
    expect(await log({ outcome: ['delivered'], limit: 1, before: page.next })).toEqual([[1, 'delivered']]);
  });

  test('find each message whose event a batch of events has', async () => {
    const [first, second] = [await send('a'), await send('b')];
    await eventually(
      () => as('bob', 'hooks.info', { hook }),
      ({ pending }) => pending === 0,
    );
    await as('bob', 'hooks.update', { hook, events: ['message.updated'], batch: 10, paused: true });
    for (const seq of [first, second]) await as('carol', 'messages.edit', { conversation: group, seq, text: 'edited' });
    await as('bob', 'hooks.update', { hook, paused: false });
    for (const seq of [first, second])
      await eventually(
        async () => (await as('bob', 'hooks.log', { hook, message: `${group}:${seq}` })).attempts,
        (attempts) =>
          attempts.some(({ rev, last_rev: lastRev }: { rev?: number; last_rev?: number }) => rev !== lastRev),
      );
  });

  test('find a message within a batch, and refuse what is no filter', async () => {
    await as('bob', 'hooks.update', { hook, batch: 10, paused: true });
    const { webhook } = await as('alice', 'groups.show-token', { group });
    for (let n = 0; n < 3; n += 1) await postJson(webhook.replace('http://klatch.example', server.url), { text: 'x' });
    await as('bob', 'hooks.update', { hook, paused: false });
    await deliver(0);
    expect(await log({ message: `${group}:2` })).toEqual([[1, 'delivered']]);
    await expect(log({ outcome: ['odd'] })).rejects.toThrow(/^outcome/);
    await expect(log({ since: 'yesterday' })).rejects.toThrow(/^since: /);
    await expect(log({ message: '1:1:1' })).rejects.toThrow(/^message: must be the id of a message of this group/);
  });
});

describe('a dry run of a redelivery', () => {
  test('says what would be sent, as the redelivery itself does afterwards, and sends nothing', async () => {
    await deliver(5);
    const arrivals = receiver.arrivals.length;
    const wanted = [{ from: `${group}:3` }, { from: '2026-01-01T00:00:00Z' }, { only: [`${group}:2`, `${group}:4`] }];
    for (const [n, request] of wanted.entries()) {
      const { from, messages, pending } = await as('bob', 'hooks.redeliver', { hook, ...request, dry_run: true });
      expect({ from, messages, pending }).toEqual({
        from: `${group}:${[3, 1, 2][n]}`,
        messages: [3, 5, 2][n],
        pending: 0,
      });
    }
    // A message after the cursor is not sent twice: the lane sends it in its order.
    await as('bob', 'hooks.update', { hook, paused: true });
    await send('waits');
    const waiting = { only: [`${group}:2`, `${group}:6`], dry_run: true };
    expect(await as('bob', 'hooks.redeliver', { hook, ...waiting })).toMatchObject({ messages: 1, pending: 1 });
    await as('bob', 'hooks.update', { hook, paused: false });
    await receiver.received(arrivals + 1);
    await deliver(0);
    const late = { from: '2999-01-01T00:00:00Z', dry_run: true };
    expect(await as('bob', 'hooks.redeliver', { hook, ...late })).toMatchObject({ from: null, messages: 0, events: 0 });
    expect(receiver.arrivals).toHaveLength(arrivals + 1);
    expect(await as('bob', 'hooks.redeliver', { hook, ...wanted[0] })).toMatchObject({
      from: `${group}:3`,
      messages: 4,
      pending: 4,
    });
    await eventually(
      () => receiver.arrivals.length,
      (count) => count === arrivals + 5,
    );
    const foreign = { only: [`${group + 1}:1`], dry_run: true };
    await expect(as('bob', 'hooks.redeliver', { hook, ...foreign })).rejects.toThrow(/^only: /);
  });
});

test('a dry run counts the events that are sent without a message', async () => {
  await as('bob', 'hooks.update', { hook, events: ['message.updated'] });
  const seq = await send('first text');
  const sentAt = new Date();
  await as('carol', 'messages.edit', { conversation: group, seq, text: 'second text' });
  await eventually(
    () => as('bob', 'hooks.info', { hook }),
    ({ pending }) => pending === 0,
  );
  await server.database.query(
    (sql) => sql`update message set sent_at = sent_at - interval '1 minute' where conversation_id = ${group}`,
  );
  const preview = await as('bob', 'hooks.redeliver', { hook, from: sentAt.toISOString(), dry_run: true });
  expect(preview).toMatchObject({ from: null, messages: 0, events: 1 });
  expect(await as('bob', 'hooks.redeliver', { hook, from: sentAt.toISOString() })).toMatchObject({ pending: 1 });
});

describe('the example of a request', () => {
  test('is signed with the secret of the hook, has the form of its format, and is not sent', async () => {
    const { id, secret } = await as('alice', 'hooks.create', { group, url: receiver.url('/example?key=k'), batch: 2 });
    const arrivals = receiver.arrivals.length;
    const { method, url, headers, body } = await as('bob', 'hooks.example', { hook: id });
    expect({ method, url }).toEqual({ method: 'POST', url: receiver.url('/example?key=k') });
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
    expect(JSON.parse(body)).toEqual([
      {
        type: 'message.created',
        timestamp: expect.any(String),
        data: {
          group: { id: group, title: expect.any(String) },
          message: expect.objectContaining({ id: `${group}:0`, seq: 0, text: expect.stringContaining('example') }),
          sender: expect.objectContaining({ name: 'Klatch' }),
        },
      },
    ]);
    const slack = await register(group, '/slack', { format: 'slack' });
    expect(JSON.parse((await as('bob', 'hooks.example', { hook: slack })).body).text).toContain('example');
    const chat = await as('alice', 'hooks.create', { group, url: receiver.url('/chat'), format: 'mattermost' });
    const example = await as('bob', 'hooks.example', { hook: chat.id });
    expect(example.body).toContain('token');
    expect(JSON.stringify(example)).not.toContain(chat.token);
    expect(receiver.arrivals).toHaveLength(arrivals);
  });

  test('is refused where the server has no key to sign it with', async () => {
    await server.database.query((sql) => sql`update reverse_hook set signature = 'v1a' where id = ${hook}`);
    await expect(as('bob', 'hooks.example', { hook })).rejects.toMatchObject({ code: 'no_server_key' });
  });
});

describe('the use of the integration token', () => {
  test('is the time of the newest post, and their number in the last 24 hours', async () => {
    const use = async () => {
      const { last_post_at: at, posts_last_day: posts } = await as('bob', 'groups.show-token', { group });
      return { at, posts };
    };
    expect(await use()).toEqual({ at: null, posts: 0 });
    await as('carol', 'messages.send', { conversation: group, text: 'a person, not a program' });
    expect(await use()).toEqual({ at: null, posts: 0 });
    await deliver(3);
    await as('bob', 'groups.rotate-token', { group });
    expect(await use()).toEqual({ at: expect.stringMatching(/Z$/), posts: 3 });
    await server.database.query(
      (sql) =>
        sql`update message set sent_at = sent_at - interval '25 hours' where conversation_id = ${group} and seq < 4`,
    );
    expect((await use()).posts).toBe(1);
  });
});
