import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { discoverServerAddress } from '../../../client/core/address.ts';
import { anything } from '../../../client/core/decode.ts';
import { LiveClient } from '../../../client/core/live-client.ts';
import type { Message } from '../../../client/core/shapes.ts';
import { connectFunctionFor } from '../../../client/node/connect-to.ts';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { createPerson, type TestPerson } from '../../support/people.ts';
import { postJson, TestServer, type TestGroup } from '../../support/server.ts';
import { CuttingProxy } from './cutting-proxy.ts';
import { changesOf, expectComplete } from './ledger.ts';
import { listen, type Listening } from './listening.ts';

const ENDPOINTS = [
  { type: 'websocket', interface: '127.0.0.1', port: 0, tls: null },
  { type: 'tcp', interface: '127.0.0.1', port: 0, tls: null },
] as const;
const POSTS = 150;

let server: TestServer;
let group: TestGroup;
let alice: TestPerson;
let bob: TestPerson;
let proxies: CuttingProxy[];
let listening: Listening[];

beforeEach(async () => {
  server = await TestServer.start({ endpoints: [...ENDPOINTS] });
  group = await server.createGroup();
  [alice, bob] = [await createPerson(server, 'alice'), await createPerson(server, 'bob')];
  for (const user of ['alice', 'bob']) await server.operate('groups.add-member', { group: group.id, user });
  proxies = [];
  listening = [];
});

afterEach(async () => {
  await Promise.all(listening.map(({ client }) => client.stop()));
  await Promise.all(proxies.map((proxy) => proxy.stop()));
  await server.stop();
});

/**
 * Starts a proxy in front of the endpoint. It cuts each connection after a different number of bytes, unless `isCut` is
 * false.
 */
async function throughCuts(kind: 'ws' | 'tcp', isCut = true): Promise<{ url: string; proxy: CuttingProxy }> {
  const { port } = server.endpoints.find(({ url }) => url.startsWith(kind))!;
  const proxy = await CuttingProxy.start(port);
  proxies.push(proxy);
  let connections = 0;
  // A greeting takes about a hundred bytes and a change three hundred. So every third connection ends within the
  // greeting.
  if (isCut) proxy.budget = () => ((connections += 1) % 3 === 0 ? 50 * connections : 2_000 + 777 * (connections % 11));
  return { url: `${kind}://127.0.0.1:${proxy.port}`, proxy };
}

async function follow(url: string, others: 'now' | 'start' = 'start'): Promise<Listening> {
  const one = await listen(url, {
    token: alice.token,
    follow: { resumeRevByConversation: new Map(), startWithoutResumeRev: others, onlyConversations: null },
  });
  listening.push(one);
  return one;
}

const history = async (): Promise<Message[]> => {
  const all: Message[] = [];
  for (let after = 0; ; after = all.at(-1)!.seq) {
    const page = await callAs(server, alice, 'messages.history', { conversation: group.id, after, limit: 200 });
    all.push(...(page.messages as Message[]));
    if (page.next === null) return all;
  }
};

/** Waits until the client has received all changes of the group. */
async function arrived({ client }: Listening): Promise<void> {
  const { last_rev: head } = await callAs(server, alice, 'conversations.show', { conversation: group.id });
  await eventually(
    () => client.handledRevByConversation.get(group.id),
    (rev) => rev === head,
  );
}

/** Lets a member post over a connection of the same kind, and edit or delete some of the messages. */
async function write(url: string): Promise<void> {
  const poster = new LiveClient({
    connect: connectFunctionFor(await discoverServerAddress(url)),
    token: bob.token,
    follow: null,
    listener: () => {},
    backoff: { unjitteredFirstDelayMs: 10, maxDelayMs: 100 },
  });
  poster.start();
  const call = (method: string, params: object): Promise<unknown> =>
    poster.call(
      method,
      { conversation: group.id, ...params },
      { decode: anything, isRepeatable: true, timeoutMs: 60_000 },
    );
  for (let i = 0; i < POSTS; i += 1) {
    const { seq } = (await call('messages.send', { text: `bob ${i}`, client_id: `bob-${i}` })) as { seq: number };
    if (i % 3 === 0) await call('messages.edit', { seq, text: `bob ${i}, mended` });
    if (i % 7 === 0) await call('messages.delete', { seq });
  }
  await poster.stop();
}

async function postByWebhook(): Promise<void> {
  for (let i = 0; i < POSTS; i += 1) {
    expect(await postJson(group.webhook, { text: `webhook ${i} ${'x'.repeat(i)}` })).toMatchObject({ status: 200 });
  }
}

describe.each(['ws', 'tcp'] as const)('a client over %s whose connection is cut again and again', (kind) => {
  test('misses nothing and repeats nothing of what webhooks and members write, edit and delete; what it writes is there once', async () => {
    const { url, proxy } = await throughCuts(kind);
    const hearer = await follow(url);
    await Promise.all([postByWebhook(), write(url)]);
    await arrived(hearer);
    expect(proxy.cuts).toBeGreaterThan(10);
    expect(hearer.client.counts.authenticatedConnections).toBeGreaterThan(5);
    const messages = await history();
    expect(messages.length).toBe(2 * POSTS);
    expectComplete(changesOf(hearer.events, group.id), messages);
  });

  test('hears of groups that it is added to and removed from, also while it is away', async () => {
    const { url, proxy } = await throughCuts(kind, false);
    const hearer = await follow(url, 'now');
    await hearer.heard('following');
    const other = await server.createGroup('Other');
    await server.operate('groups.add-member', { group: other.id, user: 'alice' });
    await hearer.heard('joined');
    await postJson(other.webhook, { text: 'one' });
    await hearer.heard('change', 2);
    // While the client is disconnected, it is removed from one group. It is added to another one, which gets a message
    // at once.
    proxy.budget = () => 0;
    proxy.cut();
    const third = await server.createGroup('Third');
    await server.operate('groups.remove-member', { group: other.id, user: 'alice' });
    await postJson(other.webhook, { text: 'not for her' });
    await server.operate('groups.add-member', { group: third.id, user: 'alice' });
    await postJson(third.webhook, { text: 'for her' });
    proxy.budget = () => Number.MAX_SAFE_INTEGER;
    await eventually(
      () => changesOf(hearer.events, third.id).at(-1)?.message?.text,
      (text) => text === 'for her',
    );
    expect(hearer.events).toContainEqual({ type: 'left', conversation: other.id });
    expect(changesOf(hearer.events, other.id).flatMap(({ message }) => message?.text ?? [])).toEqual(['one']);
  });
});

test('a session that is ended by the server ends its clients, and they do not come back', async () => {
  const hearer = await follow(server.endpoints[1]!.url);
  await hearer.heard('following');
  await callAs(server, alice, 'sessions.end', { session: alice.session });
  expect(await hearer.client.ended).toMatchObject({ name: 'SessionOverError' });
});
