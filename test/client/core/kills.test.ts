import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { discoverServerAddress } from '../../../client/core/address.ts';
import { anything, arrayOf, integer, nullable, objectWithAtLeast } from '../../../client/core/decode.ts';
import { LiveClient } from '../../../client/core/live-client.ts';
import { decodeMessage, type Message } from '../../../client/core/shapes.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/ports.ts';
import { ServerProcess } from '../../support/server-process.ts';
import { postJson } from '../../support/server.ts';
import { changesOf, expectComplete } from './ledger.ts';
import { listen, type Listening } from './listening.ts';
import { signUpByLink } from './process-people.ts';

const KILLS = 3;
const decodeHistory = objectWithAtLeast({ messages: arrayOf(decodeMessage), next: nullable(integer) });

let server: ServerProcess;
let ports: { ws: number; tcp: number };

beforeAll(async () => {
  ports = { ws: await freePort(), tcp: await freePort() };
  server = await ServerProcess.create(
    `endpoints = [{ type = websocket, port = ${ports.ws} }, { type = tcp, port = ${ports.tcp} }]`,
  );
  await server.start();
});

afterAll(() => server.discard());

async function history(client: LiveClient, conversation: number): Promise<Message[]> {
  const all: Message[] = [];
  for (let after = 0; ; after = all.at(-1)!.seq) {
    const params = { conversation, after, limit: 200 };
    const page = await client.call('messages.history', params, { decode: decodeHistory, isRepeatable: true });
    all.push(...page.messages);
    if (page.next === null) return all;
  }
}

/** Posts until `isOver`, each text once. Resolves with the number of messages. */
async function write(client: LiveClient, conversation: number, isOver: () => boolean): Promise<number> {
  const options = { decode: anything, isRepeatable: true, timeoutMs: 60_000 };
  const name = client.account!.nick;
  let count = 0;
  for (; !isOver(); count += 1) {
    const params = { conversation, text: `${name} ${count}`, client_id: `${name}-${count}` };
    await client.call('messages.send', params, options);
  }
  return count;
}

async function post(webhook: string, isOver: () => boolean): Promise<number> {
  let count = 0;
  for (; !isOver(); count += 1) {
    const headers = { 'idempotency-key': `post-${count}` };
    await eventually(
      () => postJson(webhook, { text: `webhook ${count}` }, headers).catch(() => null),
      (answer) => answer?.status === 200,
    );
  }
  return count;
}

test('a server that is killed again and again costs the clients nothing: what was written is there once, for each of them, in order', async () => {
  const urls = { ws: `ws://127.0.0.1:${ports.ws}`, tcp: `tcp://127.0.0.1:${ports.tcp}` };
  const group = await server.createGroup('Lobby');
  const clients: Listening[] = [];
  for (const [nick, url] of [
    ['alice', urls.ws],
    ['bob', urls.tcp],
    ['carol', `${server.url.replace('http', 'ws')}/v1/live`],
  ] as const) {
    const token = await signUpByLink(server, nick, await discoverServerAddress(url));
    await server.operate('groups.add-member', { group: group.id, user: nick });
    clients.push(
      await listen(url, {
        token,
        follow: { resumeRevByConversation: new Map(), startWithoutResumeRev: 'start', onlyConversations: null },
      }),
    );
  }
  try {
    await Promise.all(clients.map((each) => each.heard('following')));
    let isOver = false;
    const written = clients.map(({ client }) => write(client, group.id, () => isOver));
    const posted = post(group.webhook, () => isOver);
    for (let kills = 0; kills < KILLS; kills += 1) {
      // Waits until each writer has written since the last start of the server.
      const before = clients.map(({ client }) => client.handledRevByConversation.get(group.id)!);
      await eventually(
        () =>
          clients.every(({ client }, index) => client.handledRevByConversation.get(group.id)! > before[index]! + 20),
        (all) => all,
      );
      await wait(kills * 7);
      await server.end('SIGKILL');
      await server.start();
    }
    isOver = true;
    const counts = await Promise.all([...written, posted]);
    const messages = await history(clients[0]!.client, group.id);
    const texts = ['alice', 'bob', 'carol', 'webhook'].flatMap((name, index) =>
      Array.from({ length: counts[index]! }, (_, count) => `${name} ${count}`),
    );
    expect(messages.map(({ text }) => text).sort()).toEqual(texts.sort());
    const head = messages.at(-1)!.rev;
    for (const { client } of clients) {
      await eventually(
        () => client.handledRevByConversation.get(group.id),
        (rev) => rev! >= head,
      );
    }
    for (const { events, client } of clients) {
      expect(client.counts.authenticatedConnections).toBeGreaterThan(KILLS);
      expectComplete(changesOf(events, group.id), messages);
    }
  } finally {
    await Promise.all(clients.map(({ client }) => client.stop()));
  }
});
