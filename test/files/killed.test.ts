import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { asSuperuser } from '../../bench/seed-data.ts';
import { STORE_ID_KEY } from '../../src/files/store.ts';
import { ServerProcess } from '../support/server-process.ts';
import { download, tokenOf } from './over-http.ts';

const UPLOADS = 200;
const CHUNK = randomBytes(64 * 1024);
const CHUNKS = 12;
/** The server is killed when this many uploads have succeeded, while the others are in progress. */
const THROUGH = 60;

let server: ServerProcess;
let token: string;

beforeAll(async () => {
  server = await ServerProcess.create('limits { concurrent-uploads = 300, concurrent-uploads-per-user = 300 }');
  await server.start();
  token = await tokenOf(server, 'anna');
});

afterAll(() => server.discard());

/** The answer to an upload; null: the server died before it answered. */
interface Outcome {
  readonly status: number;
  readonly body: string;
}

/** Uploads a file chunk by chunk; without the last chunk unless `isWhole`. */
async function uploadSlowly(isWhole: boolean): Promise<Outcome | null> {
  const outgoing = request(`${server.url}/v1/files?name=a.bin`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-length': CHUNK.length * CHUNKS },
    agent: false,
  });
  const answered = new Promise<Outcome | null>((resolve) => {
    outgoing.on('error', () => resolve(null));
    outgoing.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', () => resolve(null));
      response.on('end', () => resolve({ status: response.statusCode!, body: Buffer.concat(chunks).toString() }));
    });
  });
  const chunks = isWhole ? CHUNKS : CHUNKS - 1;
  for (let n = 0; n < chunks && !outgoing.destroyed; n += 1) {
    if (!outgoing.write(CHUNK)) await Promise.race([once(outgoing, 'drain'), answered]);
    // Lets the other uploads run in between, so that the kill interrupts all of them.
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (isWhole) outgoing.end();
  return answered;
}

/**
 * Uploads until the file is stored, and resolves with its id; null: the server died. A slow machine refuses some
 * uploads with 503 or 408, which are repeated.
 */
async function uploadUntilStored(isWhole: boolean): Promise<string | null> {
  for (;;) {
    const outcome = await uploadSlowly(isWhole);
    if (outcome === null) return null;
    if (outcome.status === 201) return (JSON.parse(outcome.body) as { id: string }).id;
    if (outcome.status !== 503 && outcome.status !== 408)
      throw new Error(`an upload was refused with ${outcome.status}: ${outcome.body}`);
  }
}

test('kill -9 during 200 uploads leaves no file without a row and no row without a file, once it is repaired', async () => {
  let through = 0;
  const enough = Promise.withResolvers<void>();
  // Half of the uploads never become complete, so the kill interrupts them however late it comes.
  const uploads = Array.from({ length: UPLOADS }, async (_, n) => {
    const id = await uploadUntilStored(n % 2 === 0);
    if (id !== null && (through += 1) === THROUGH) enough.resolve();
    return id;
  });
  // If only `enough` was awaited, the test would wait for ever after an upload was rejected.
  await Promise.race([enough.promise, Promise.all(uploads)]);
  await server.end('SIGKILL');
  const ids = (await Promise.all(uploads)).filter((id) => id !== null);
  expect(ids.length).toBeGreaterThanOrEqual(THROUGH);
  expect(ids.length).toBeLessThanOrEqual(UPLOADS / 2);

  await server.start();
  // Every file that was acknowledged exists and is complete.
  const whole = Buffer.concat(Array.from({ length: CHUNKS }, () => CHUNK));
  for (const id of ids.slice(0, 20)) {
    const bytes = await download(server, { token, id });
    expect(Buffer.isBuffer(bytes) && bytes.equals(whole)).toBe(true);
  }
  await checkAll(true);
  const after = await checkAll(false);
  expect(after.filter(({ repaired }) => !repaired)).toEqual([]);

  const rows = await asSuperuser(server, (sql) => sql<{ id: string; state: string }[]>`select id, state from file`);
  const stored = new Set(rows.filter(({ state }) => state === 'stored').map(({ id }) => id));
  const location = join(server.dataDir, 'files');
  const onDisk = (await readdir(location, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const inPlace = onDisk
    .filter(({ parentPath, name }) => !parentPath.endsWith('/uploads') && name !== STORE_ID_KEY)
    .map(({ name }) => name);
  const underWay = onDisk.filter(({ parentPath }) => parentPath.endsWith('/uploads')).map(({ name }) => name);
  for (const id of [...ids, ...stored]) expect(inPlace).toContain(id);
  const known = new Set(rows.map(({ id }) => id));
  expect([...inPlace, ...underWay].filter((id) => !known.has(id))).toEqual([]);
});

/** Runs the whole check of the store, page by page. */
async function checkAll(repair: boolean): Promise<{ repaired: boolean }[]> {
  const found: { repaired: boolean }[] = [];
  for (let after: string | null = null; ;) {
    type Page = { found: { repaired: boolean }[]; next: string | null };
    const page: Page = await server.operate<Page>('files.check', { repair, after });
    found.push(...page.found);
    if (page.next === null) return found;
    after = page.next;
  }
}
