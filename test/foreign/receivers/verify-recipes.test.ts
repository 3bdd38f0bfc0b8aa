import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Receiver, type Arrival } from '../../support/receiver.ts';
import { readRecipe } from '../../support/recipes.ts';
import { postJson, TestServer } from '../../support/server.ts';
import { describeWith, runProgram } from '../callers/programs.ts';

const PAGE = 'reverse-webhooks.md';
const DAY_S = 86_400;

let server: TestServer;
let folder: string;
let secret: string;
let arrival: Arrival;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'klatch-verify-'));
  server = await TestServer.start();
  const receiver = await Receiver.start();
  const group = await server.createGroup('Ops');
  const { body } = await postJson(`${group.webhook}/reverse`, { url: receiver.url() });
  secret = body.secret;
  await postJson(group.webhook, { text: 'a "text" with größe, 50 % and 😀' });
  [arrival] = (await receiver.received(1)) as [Arrival];
  await receiver.stop();
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

interface Delivery {
  readonly secret: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly raw: string;
}

/** The delivery as it arrived, and forged variants of it, by name. */
function deliveries(): Readonly<Record<string, Delivery>> {
  const headers = arrival.headers as Record<string, string>;
  const real = { secret, headers, raw: arrival.raw };
  const timestamp = Number(headers['webhook-timestamp']);
  const at = (seconds: number): Delivery => ({
    ...real,
    headers: { ...headers, 'webhook-timestamp': String(seconds) },
  });
  const signature = headers['webhook-signature']!;
  return {
    real,
    rotated: { ...real, headers: { ...headers, 'webhook-signature': `v1,${'A'.repeat(43)}= ${signature}` } },
    'another secret': { ...real, secret: `whsec_${Buffer.alloc(32).toString('base64')}` },
    'another body': { ...real, raw: `${real.raw} ` },
    'another id': { ...real, headers: { ...headers, 'webhook-id': '5_7_43' } },
    'a wrong signature': { ...real, headers: { ...headers, 'webhook-signature': 'v1,AAAA' } },
    'another scheme': { ...real, headers: { ...headers, 'webhook-signature': signature.replace('v1,', 'v1a,') } },
    old: at(timestamp - DAY_S),
    'from the future': at(timestamp + DAY_S),
  };
}

/** The names of the deliveries that the recipe accepts as genuine. */
async function genuine(isGenuine: (delivery: Delivery) => Promise<boolean>): Promise<string[]> {
  const found: string[] = [];
  for (const [name, delivery] of Object.entries(deliveries())) if (await isGenuine(delivery)) found.push(name);
  return found;
}

/** Whether a program, which reads the delivery on its standard input, accepts it as genuine. */
async function says(command: string, args: readonly string[], delivery: Delivery): Promise<boolean> {
  const { output, status } = await runProgram(command, args, { input: JSON.stringify(delivery) });
  expect([output, status]).toEqual([expect.stringMatching(/^(?:yes|no)$/), 0]);
  return output === 'yes';
}

describe('a delivery is verified by the lines of the documents', () => {
  test('for Node', async () => {
    const module = join(folder, 'recipe.mjs');
    await writeFile(module, readRecipe(PAGE, 'node-v1'));
    const script = `
      import { readFileSync } from 'node:fs';
      import { isGenuine } from ${JSON.stringify(module)};
      const { secret, headers, raw } = JSON.parse(readFileSync(0, 'utf8'));
      process.stdout.write(isGenuine(secret, headers, raw) ? 'yes' : 'no');`;
    const args = ['--input-type=module', '-e', script];
    expect(await genuine((delivery) => says(process.execPath, args, delivery))).toEqual(['real', 'rotated']);
  });
});

describeWith('/usr/bin/python3', 'Python', () => {
  test('verifies a delivery by the lines of the documents', async () => {
    const script = `${readRecipe(PAGE, 'python-v1')}
import json, sys
given = json.load(sys.stdin)
print("yes" if is_genuine(given["secret"], given["headers"], given["raw"].encode()) else "no", end="")`;
    expect(await genuine((delivery) => says('/usr/bin/python3', ['-c', script], delivery))).toEqual([
      'real',
      'rotated',
    ]);
  });
});

describeWith('/usr/bin/php', 'PHP', () => {
  test('verifies a delivery by the lines of the documents', async () => {
    const file = join(folder, 'recipe.php');
    await writeFile(
      file,
      `<?php\n${readRecipe(PAGE, 'php-v1')}
$given = json_decode(file_get_contents('php://stdin'), true);
echo isGenuine($given['secret'], $given['headers'], $given['raw']) ? 'yes' : 'no';`,
    );
    expect(await genuine((delivery) => says('/usr/bin/php', [file], delivery))).toEqual(['real', 'rotated']);
  });
});

describeWith('/usr/bin/ruby', 'Ruby', () => {
  test('verifies a delivery by the lines of the documents', async () => {
    const script = `${readRecipe(PAGE, 'ruby-v1')}
require 'json'
given = JSON.parse($stdin.read)
print genuine?(given['secret'], given['headers'], given['raw']) ? 'yes' : 'no'`;
    expect(await genuine((delivery) => says('/usr/bin/ruby', ['-e', script], delivery))).toEqual(['real', 'rotated']);
  });
});

describeWith('/usr/bin/openssl', 'the shell', () => {
  test('verifies a delivery by the lines of the documents', async () => {
    const recipe = readRecipe(PAGE, 'openssl-v1');
    const isGenuine = async ({ secret: shared, headers, raw }: Delivery): Promise<boolean> => {
      await writeFile(join(folder, 'body'), raw);
      const [id, timestamp, signature] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(
        (name) => headers[name]!,
      );
      const env = { SECRET: shared, ID: id!, TIMESTAMP: timestamp!, SIGNATURE: signature! };
      const { output, status } = await runProgram('/bin/sh', ['-c', `cd ${folder}\n${recipe}`], { env });
      expect([output, status]).toEqual([expect.stringMatching(/^(?:genuine\n)?$/), 0]);
      return output !== '';
    };
    expect(await genuine(isGenuine)).toEqual(['real', 'rotated']);
  });
});
