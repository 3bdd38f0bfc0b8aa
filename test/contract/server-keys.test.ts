import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readVersion } from '../../src/version.ts';
import { expectResponseHeaders } from '../http/wire.ts';
import { Receiver, type Arrival } from '../support/receiver.ts';
import { readRecipe } from '../support/recipes.ts';
import { postJson, readJson, TestServer, type JsonAnswer } from '../support/server.ts';
import { TestKeys } from '../support/server-keys.ts';

const run = promisify(execFile);
const VERIFIED = 'Signature Verified Successfully\n';
const keys = new TestKeys(4);
let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start({ serverSigningKeys: keys.pairs });
});
afterAll(async () => {
  await server.stop();
  keys[Symbol.dispose]();
});

const get = async (path: string, of = server): Promise<JsonAnswer> => readJson(await fetch(`${of.url}${path}`));

interface Shown {
  readonly id: string;
  readonly public: string;
}

/** Runs a shell script that uses openssl, in a folder of the test. Resolves with its output. */
async function shell(script: string, env: Record<string, string> = {}): Promise<string> {
  return (await shellOutput(script, env)).stdout;
}

async function shellOutput(script: string, env: Record<string, string>): Promise<{ stdout: string; stderr: string }> {
  const folder = join(keys.folder, 'shell');
  await mkdir(folder, { recursive: true });
  const path = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`;
  return run('/bin/sh', ['-euc', script], { cwd: folder, env: { ...env, PATH: path } });
}

describe('GET /v1/keys', () => {
  test('shows every configured key in order, with the fingerprint and the bytes that openssl finds', async () => {
    const answer = await get('/v1/keys');
    expect(answer.status).toBe(200);
    expectResponseHeaders(answer);
    const expected = await Promise.all(
      keys.pairs.map(async (pair) => {
        const der = `openssl pkey -pubin -in '${pair.public}' -outform DER`;
        const id = await shell(`${der} | sha256sum | cut -c 1-32`);
        return { id: id.trim(), public: `whpk_${(await shell(`${der} | tail -c 32 | base64`)).trim()}` };
      }),
    );
    expect(answer.body).toEqual(expected);
  });

  test('is an empty list without server keys, and takes no other method', async () => {
    const bare = await TestServer.start();
    try {
      expect((await get('/v1/keys', bare)).body).toEqual([]);
      const { status, body } = await get('/v1/about', bare);
      expect([status, body.signatures]).toEqual([200, []]);
      expect(JSON.parse(body.statement).type).toBe('klatch.about');
    } finally {
      await bare.stop();
    }
    for (const path of ['/v1/keys', '/v1/about']) {
      const refused = await fetch(`${server.url}${path}`, { method: 'POST' });
      expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
    }
  });
});

describe('GET /v1/about', () => {
  test('names the server, and carries its statement signed by the first three keys', async () => {
    const before = Date.now();
    const answer = await get('/v1/about');
    expect(answer.status).toBe(200);
    expectResponseHeaders(answer);
    const { statement, signatures, ...rest } = answer.body;
    const about = { projectName: 'Klatch under test', endpoints: ['ws://klatch.example:9080'] };
    expect(rest).toEqual({
      ...about,
      registration: 'invite',
      version: readVersion(),
      push: { google: [], apple: [], webPush: null },
      files: { maxBytes: 100 * 1024 * 1024 },
      sign_in: { link: true, email: false, phone: false },
      limits: { text: 40_000, attachments: 10 },
      base_uri: 'http://klatch.example',
      build: expect.stringMatching(/^[0-9a-f]{16}$/),
    });
    const { date, ...stated } = JSON.parse(statement);
    expect(stated).toEqual({ type: 'klatch.about', ...about, certificates: [] });
    expect(Math.abs(Date.parse(date) - before)).toBeLessThan(60_000);
    const shown: Shown[] = (await get('/v1/keys')).body;
    expect(signatures.map((each: { key: string }) => each.key)).toEqual(shown.slice(0, 3).map(({ id }) => id));
    for (const [place, { signature }] of signatures.entries()) {
      expect(keys.verifies(place, statement, signature)).toBe(true);
      expect(keys.verifies(place, statement.replace('Klatch', 'Clutch'), signature)).toBe(false);
      expect(keys.verifies(3, statement, signature)).toBe(false);
    }
  });

  test('is verified by the lines of the documents, and by no other key', async () => {
    const recipe = readRecipe('keys.md', 'openssl-about');
    const shown: Shown[] = (await get('/v1/keys')).body;
    const env = { SERVER: server.url, PUBLIC: shown[1]!.public };
    expect(await shell(recipe, env)).toBe(VERIFIED);
    const forged = recipe.replace(/\nopenssl /, '\nprintf x >> statement\nopenssl ');
    await expect(shell(forged, env)).rejects.toMatchObject({ stdout: expect.stringContaining('Verification Failure') });
    await expect(shell(recipe, { ...env, PUBLIC: shown[3]!.public })).rejects.toThrow();
  });
});

describe('a delivery signed with v1a', () => {
  let arrival: Arrival;
  let publics: string[];
  beforeAll(async () => {
    const receiver = await Receiver.start();
    try {
      const group = await server.createGroup();
      await postJson(`${group.webhook}/reverse`, { url: receiver.url(), signature: 'both' });
      await postJson(group.webhook, { text: 'a "text" with größe, 50 % and 😀' });
      [arrival] = (await receiver.received(1)) as [Arrival];
      publics = (await get('/v1/keys')).body.map((key: Shown) => key.public);
    } finally {
      await receiver.stop();
    }
  });

  test('is verified by the lines for openssl of the documents, each key by its own entry', async () => {
    const recipe = readRecipe('reverse-webhooks.md', 'openssl-v1a');
    const header = (name: string): string => String(arrival.headers[name]);
    const entries = header('webhook-signature').split(' ');
    expect(entries.map((entry) => entry.replace(/,.*/, ''))).toEqual(['v1', 'v1a', 'v1a', 'v1a']);
    const said = async (key: string, body: string, signature = entries.join(' ')): ReturnType<typeof shellOutput> => {
      await mkdir(join(keys.folder, 'shell'), { recursive: true });
      await writeFile(join(keys.folder, 'shell/body'), body);
      const headers = { ID: header('webhook-id'), TIMESTAMP: header('webhook-timestamp') };
      const env = { ...headers, SIGNATURE: signature, PUBLIC: key };
      // Signature entries of other keys do not verify, and openssl exits 1 for them.
      return shellOutput(`set +e\n${recipe}\ntrue`, env);
    };
    for (const key of publics.slice(0, 3)) expect((await said(key, arrival.raw)).stdout).toContain(VERIFIED);
    // The recipe silently skips the `v1` entry, which precedes the `v1a` entry that it verifies.
    const one = await said(publics[0]!, arrival.raw, entries.slice(0, 2).join(' '));
    expect(one).toMatchObject({ stdout: VERIFIED, stderr: '' });
    expect((await said(publics[3]!, arrival.raw)).stdout).not.toContain(VERIFIED);
    expect((await said(publics[0]!, `${arrival.raw} `)).stdout).not.toContain(VERIFIED);
  });

  test('is verified by the lines for Node of the documents', async () => {
    const module = join(keys.folder, 'recipe.mjs');
    await writeFile(module, readRecipe('reverse-webhooks.md', 'node-v1a'));
    const script = `
      import { readFileSync } from 'node:fs';
      import { isGenuine } from ${JSON.stringify(module)};
      const { publics, headers, raw } = JSON.parse(readFileSync(0, 'utf8'));
      const stale = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 301) };
      const onlyV1 = { ...headers, 'webhook-signature': headers['webhook-signature'].split(' ')[0] };
      console.log(JSON.stringify([
        isGenuine(publics, headers, raw),
        isGenuine(publics.slice(2), headers, raw),
        isGenuine(publics.slice(3), headers, raw),
        isGenuine(publics, headers, raw + ' '),
        isGenuine(publics, stale, raw),
        isGenuine(publics, onlyV1, raw),
      ]));`;
    const running = run(process.execPath, ['--input-type=module', '-e', script]);
    running.child.stdin!.end(JSON.stringify({ publics, headers: arrival.headers, raw: arrival.raw }));
    expect(JSON.parse((await running).stdout)).toEqual([true, true, false, false, false, false]);
  });
});
