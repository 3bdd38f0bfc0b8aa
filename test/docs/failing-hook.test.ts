import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/receiver.ts';
import { freePort } from '../support/ports.ts';
import { readJson } from '../support/server.ts';
import { Workspace } from '../cli/program.ts';
import { alignTables, normalise, record, transcriptOf } from './transcript.ts';

let database: TestDatabase;
let workspace: Workspace;
let receiver: Receiver;
let port: number;
let receiverPort: number;

beforeAll(async () => {
  database = await createTestDatabase();
  workspace = await Workspace.create();
  port = await freePort();
  receiverPort = await freePort();
  const http = `http { port = ${port}, base-uri = "http://127.0.0.1:${port}" }`;
  await workspace.configure(database.target, [http, 'delivery.retry = [1h]']);
  await workspace.serve();
  receiver = await Receiver.start(undefined, receiverPort);
});
afterAll(async () => {
  await workspace.remove();
  await database.drop();
  await receiver.stop();
});

/** The parts of the transcript that were recorded so far. */
const parts: string[] = [];

const say = (comment: string): number => parts.push(`# ${comment}\n`);

async function klatch(...commands: string[]): Promise<string> {
  const text = await record(workspace, commands);
  parts.push(text);
  return text;
}

/** Runs curl as a reader would, with the answer on a line of its own. */
async function curl(args: string): Promise<void> {
  const child = spawn('sh', ['-c', `curl -s ${args}`], { stdio: ['ignore', 'pipe', 'inherit'] });
  let answer = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    answer += text;
  });
  expect(await once(child, 'close')).toEqual([0, null]);
  parts.push(`$ curl ${args}\n${answer}\n`);
}

interface Health {
  readonly state: string;
  readonly pending: number;
}

test('the life of a failing hook in docs/reverse-webhooks.md is what the program prints', async () => {
  say('A group, a hook, and a first message.');
  const created = await klatch('group create Alerts');
  const webhook = /http:\S+/.exec(created)![0];
  const healthy = async (right: (health: Health) => boolean): Promise<unknown> =>
    eventually(async () => (await readJson(await fetch(`${webhook}/reverse/1`))).body as Health, right);
  await curl(`-d '{"url":"http://127.0.0.1:${receiverPort}/hook"}' ${webhook}/reverse`);
  await curl(`-d 'disk full' ${webhook}`);
  await receiver.received(1);
  await healthy(({ pending }) => pending === 0);
  await klatch('hook list');

  say('The receiver dies, and three more messages are posted.');
  await receiver.stop();
  for (const text of ['still full', 'help', 'anybody?']) await curl(`-d '${text}' ${webhook}`);
  await healthy(({ state, pending }) => state === 'failing' && pending === 3);
  await klatch('hook list', 'hook log 1', 'hook ping 1');

  say('The receiver is back. The backlog need not wait for the next attempt.');
  const revived = await Receiver.start(undefined, receiverPort);
  // Acts as if the administrator had taken more than 5 s: so the next ping is allowed.
  await database.query((sql) => sql`update reverse_hook set pinged_at = null`);
  try {
    await klatch('hook ping 1', 'hook resume 1');
    await healthy(({ pending }) => pending === 0);
    await klatch('hook log 1');

    say('It had forgotten what it got before it died: the last hour once more.');
    await klatch('hook redeliver 1 --from 1h');
    await revived.received(1 + 3 + 4);
    await healthy(({ pending }) => pending === 0);
    await klatch('hook list', 'hook log 1 --limit 4');
    const [ping, ...deliveries] = revived.arrivals.map(({ body }) => body);
    expect(ping.type).toBe('webhook.ping');
    expect(deliveries.map(({ data }) => data.message.seq)).toEqual([2, 3, 4, 1, 2, 3, 4]);
  } finally {
    await revived.stop();
  }

  const ports = { [port]: '9090', [receiverPort]: '8080' };
  const text = normalise(parts.join('\n'), { folder: workspace.folder, ports })
    .replaceAll(/(?<=webhooks\/|token |topic |token 100:)[A-Za-z0-9_-]{43}/g, 'TOKEN')
    .replaceAll(/^(token: +)\S+/gm, '$1TOKEN')
    .replaceAll(/whsec_[A-Za-z0-9+/=]+/g, 'whsec_…')
    .replaceAll(/\b\d+ ms\b/g, '12 ms');
  const actual = alignTables(text);
  expect(actual).toBe(transcriptOf('failing hook', actual, 'docs/reverse-webhooks.md'));
});
