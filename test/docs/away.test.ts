import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/receiver.ts';
import { freePort } from '../support/ports.ts';
import { ApnsServer } from '../push/apns-server.ts';
import { FcmServer } from '../push/fcm-server.ts';
import { createAppleKey, createServiceAccount, createTls } from '../push/keys.ts';
import { WebPushReceiver } from '../push/web-push-receiver.ts';
import { Workspace } from '../cli/program.ts';
import { alignTables, transcriptOf } from './transcript.ts';

const PAGE = 'docs/first-steps-with-push-and-files.md';
const BUNDLE = 'org.example.chat';
const FILE = 'report.txt';
const run = promisify(execFile);

let workspace: Workspace;
let database: TestDatabase;
let port: number;
let fcm: FcmServer;
let apns: ApnsServer;
let web: WebPushReceiver;
let receiver: Receiver;

/** A pair of Web Push keys, in base64url. */
function vapidKeys(): { public: string; private: string } {
  const { x, y, d } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
  const point = [Buffer.from([4]), Buffer.from(x!, 'base64url'), Buffer.from(y!, 'base64url')];
  return { public: Buffer.concat(point).toString('base64url'), private: d! };
}

beforeAll(async () => {
  workspace = await Workspace.create();
  database = await createTestDatabase();
  port = await freePort();
  const account = createServiceAccount('chat-1');
  const appleKey = createAppleKey();
  const tls = createTls();
  const vapid = vapidKeys();
  fcm = await FcmServer.start([account]);
  apns = await ApnsServer.start({ tls, keys: [appleKey], topics: [BUNDLE] });
  web = await WebPushReceiver.start(vapid.public);
  receiver = await Receiver.start();
  const keep = (name: string, text: string): Promise<void> =>
    writeFile(join(workspace.folder, name), text, { mode: 0o600 });
  await keep('service-account.json', account.json);
  await keep('apple.p8', appleKey.p8);
  await keep('authority.pem', tls.authority);
  const { keyId, teamId } = appleKey;
  await workspace.configure(database.target, [
    `http { port = ${port}, base-uri = "http://127.0.0.1:${port}" }`,
    `services.google.push {
       keys = [{ project-id = chat-1, key = "service-account.json" }]
       endpoint = "${fcm.endpoint}", token-endpoint = "${fcm.tokenEndpoint}"
     }`,
    `services.apple.push {
       keys = [{ key-id = ${keyId}, team-id = ${teamId}, path = "apple.p8", bundle-id = "${BUNDLE}" }]
       endpoint = "${apns.endpoint}", ca-file = "authority.pem"
     }`,
    `services.web-push { public = "${vapid.public}", private = "${vapid.private}", subject = "mailto:a@example.org" }`,
    'push.retry = [1h]',
  ]);
  await writeFile(join(workspace.folder, FILE), 'Disk 1: full\nDisk 2: fine\n');
});

afterAll(async () => {
  await workspace.remove();
  await Promise.all([fcm.stop(), apns.stop(), web.stop(), receiver.stop()]);
  await database.drop();
});

/** A shell line in the form of the page, and in the form for this workspace's folder. */
async function shell(line: string): Promise<string> {
  const { stdout, stderr } = await run('sh', ['-c', line], { cwd: workspace.folder });
  const printed = `${stdout}${stderr}`;
  return `$ ${line}\n${printed}${printed === '' || printed.endsWith('\n') ? '' : '\n'}`;
}

async function klatch(...args: string[]): Promise<string> {
  const { stdout, stderr } = await workspace.run(args);
  return `$ klatch ${args.join(' ')}\n${stdout}${stderr}`;
}

async function call(token: string, operation: string, input: object): Promise<string> {
  const url = `http://127.0.0.1:${port}/v1/api/${operation}`;
  return shell(
    `curl -sS -H 'Authorization: Bearer ${token}' -H Content-Type:application/json -d '${JSON.stringify(input)}' ${url}`,
  );
}

/** Replaces values that differ from run to run by the examples of the page. */
function normalise(text: string): string {
  const examples: readonly (readonly [RegExp, string])[] = [
    [new RegExp(`:${port}\\b`, 'g'), ':9090'],
    [new RegExp(`:${receiver.port}\\b`, 'g'), ':8998'],
    [new RegExp(`http://127.0.0.1:${web.port}/push/`, 'g'), 'https://push.example.org/'],
    [/kll_[A-Za-z0-9_-]{43}/g, 'kll_TOKEN'],
    [/(?<="signed_in","token":")[\w-]+/g, 'SESSION_TOKEN'],
    [/(?<=Bearer )[\w-]+/g, 'SESSION_TOKEN'],
    [/whsec_[\w+/=]+/g, 'whsec_SECRET'],
    [/webhooks\/[A-Za-z0-9_-]{20,}/g, 'webhooks/TOKEN'],
    [/(?<="(?:p256dh|auth)":")[\w-]+/g, 'BASE64URL'],
    [/\b[a-f0-9]{64}\b/g, 'HEX'],
    [/(?<=[/"])[A-Za-z0-9_-]{22}(?=[/"])/g, 'FILE'],
    [/expires=\d+/g, 'expires=1795852800'],
    [/signature=[\w-]+/g, 'signature=SIGNATURE'],
    [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2026-11-21T08:00:00.000Z'],
    [/(?<![\d.])\b\d+ (?:ms|s|min|h)\b/g, '1 s'],
  ];
  // The webhook URLs of a group contain its token, which the page shows alone too.
  const token = /webhooks\/([A-Za-z0-9_-]{20,})/.exec(text)?.[1] ?? 'TOKEN';
  const masked = text.replaceAll(token, 'TOKEN');
  return alignTables(examples.reduce((result, [found, example]) => result.replaceAll(found, example), masked));
}

function expectTranscript(name: string, parts: readonly string[]): void {
  const actual = normalise(parts.join('\n'));
  expect(actual).toBe(transcriptOf(name, actual, PAGE));
}

/** The newest push of each vendor, as its device sees it. */
function told(): string {
  const [google, apple, browser] = [fcm.pushes.at(-1)!, apns.pushes.at(-1)!, web.pushes.at(-1)!];
  const shown = [
    ['google', google.message.notification],
    ['apple', apple.body.aps.alert],
    ['web', { title: browser.body.title, body: browser.body.text ?? browser.body.body }],
  ] as const;
  return shown.map(([kind, note]) => `${kind}: ${JSON.stringify(note)}\n`).join('');
}

const counts = (): number[] => [fcm.pushes.length, apns.pushes.length, web.pushes.length];
const waiting = async (): Promise<number[]> => {
  const { stdout } = await workspace.run(['push', 'status', '--json']);
  const { vendors } = JSON.parse(stdout) as { vendors: { pending: number }[] };
  return vendors.map(({ pending }) => pending);
};

test('three devices of somebody who is away, a post with a file, and what was read on one of them', async () => {
  await workspace.serve();
  const people = [await klatch('user', 'create', 'anna', '--name', 'Anna')];
  people.push(await klatch('group', 'create', 'Alerts', '--owner', 'anna'));
  people.push(await klatch('user', 'invite', 'anna'));
  expectTranscript('people', people);
  const [webhook] = /http:\S+\/v1\/webhooks\/\S+/.exec(people[1]!)!;
  const [link] = /http:\S+#kll_\S+/.exec(people[2]!)!;

  const signIn = await shell(
    `curl -sS -H Content-Type:application/json -d '{"link":"${link}"}' http://127.0.0.1:${port}/v1/api/auth.verify`,
  );
  const [token] = /(?<="token":")[^"]+/.exec(signIn)!;
  const devices = [signIn];
  const phone = { kind: 'google', token: 'f'.repeat(22) + ':APA91b-token', label: 'Phone' };
  devices.push(await call(token, 'devices.register', phone));
  devices.push(await call(token, 'devices.register', { kind: 'apple', token: 'ab'.repeat(32), label: 'Tablet' }));
  const subscription = await web.subscribe();
  devices.push(await call(token, 'devices.register', { kind: 'web', subscription, label: 'Browser' }));
  expectTranscript('devices', devices);

  const posts = [
    await shell(`curl -sS -H Content-Type:application/json -d '{"url":"${receiver.url('/')}"}' ${webhook}/reverse`),
  ];
  posts.push(await shell(`curl -sS -F text='The nightly report' -F file=@${FILE} ${webhook}`));
  expectTranscript('a post with a file', posts);
  await Promise.all([fcm.arrived.reached(1), apns.arrived.reached(1), web.arrived.reached(1)]);
  expectTranscript('what the devices are told', [told()]);
  const [delivery] = await receiver.received(1);
  expectTranscript('the delivery', [`${JSON.stringify(delivery!.body, null, 2)}\n`]);
  const { url } = delivery!.body.data.message.attachments[0] as { url: string };
  expectTranscript('the file', [await shell(`curl -sS '${url}'`)]);
  expect(await shell(`curl -sS '${url}' | cmp - ${FILE} && echo same`)).toMatch(/\nsame\n$/);

  // From here on every push fails, so that the pushes for the next message wait.
  fcm.script = (_, res) => {
    res.writeHead(500).end();
    return true;
  };
  apns.script = () => [500, 'InternalServerError'];
  web.script = () => 500;
  await shell(`curl -sS -d 'Disk 1 is full' ${webhook}`);
  await eventually(waiting, (all) => all.join() === '1,1,1');
  await Promise.all([fcm.arrived.reached(2), apns.arrived.reached(2), web.arrived.reached(2)]);
  await eventually(
    async () => {
      const { vendors } = JSON.parse((await workspace.run(['push', 'status', '--json'])).stdout) as {
        vendors: { in_flight: number; last_error: object | null }[];
      };
      return vendors.filter((each) => each.in_flight === 0 && each.last_error !== null).length;
    },
    (failed) => failed === 3,
  );
  const reading = [await klatch('push', 'status')];
  reading.push(await call(token, 'messages.mark-read', { conversation: 1, seq: 2 }));
  await eventually(waiting, (all) => all.join() === '0,0,0');
  reading.push(await klatch('push', 'status'));
  expectTranscript('reading', reading);

  // All pushes that could be sent have been sent by now, so the next push of each vendor is the expected one.
  fcm.script = () => false;
  apns.script = () => undefined;
  web.script = () => {};
  const before = counts();
  const trial = await klatch('push', 'test', 'anna');
  expect(counts()).toEqual(before.map((count) => count + 1));
  expect(before).toEqual([2, 2, 2]);
  expectTranscript('trying it', [trial]);
  expect(await readFile(join(workspace.folder, FILE), 'utf8')).toContain('Disk 1: full');
});
