import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, test } from '@jest/globals';
import { formats } from '../../../src/callers/formats.ts';
import { isIgnored } from '../../../src/callers/core/message-form.ts';
import { LargePostReader, type LargePostReaderOptions } from '../../../src/http/large-posts/large-post-reader.ts';
import type { PostContext } from '../../../src/http/callers/caller-input.ts';
import { readFormFields, readPost } from '../../../src/http/post-reading.ts';
import { silentLog } from '../../../src/log.ts';
import { KlatchError } from '../../../src/errors.ts';
import type { AlertChange } from '../../../src/model/alert.ts';
import { WEBHOOK_POST_LIMITS } from '../../../src/operations/core/input-limits.ts';
import { fixtureNames, readFixture } from '../../callers/fixtures.ts';

const readers: LargePostReader[] = [];
afterEach(async () => {
  for (const reader of readers.splice(0)) await reader.stop();
});

function makeReader(options: Partial<LargePostReaderOptions> = {}): LargePostReader {
  const reader = new LargePostReader({ log: silentLog(), ...options });
  readers.push(reader);
  return reader;
}

const context = (headers: PostContext['headers'] = {}): PostContext => ({
  headers,
  url: '/v1/webhooks/token',
  format: null,
  maxTextCodePoints: 40_000,
  attachmentsPerMessage: 10,
  fileBytes: 1_000_000,
  jsonLimits: WEBHOOK_POST_LIMITS,
  hasAttachments: false,
  alertUpdateMode: 'both',
  isUnsigned: false,
  onFormat: () => {},
  hopLimit: 3,
});
const free = { requireBudget: () => {}, charge: () => {} };
const bodyOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

/** Makes a function that starts a thread, which runs this code for each call. */
const threadOf = (code: string) => (): Worker =>
  new Worker(
    `const { parentPort } = require('node:worker_threads');
    parentPort.on('message', () => { ${code} });
    parentPort.postMessage('ready');`,
    { eval: true, resourceLimits: { maxOldGenerationSizeMb: 16 } },
  );

function outcomeOf<Result>(read: () => Result): Result | KlatchError {
  try {
    return read();
  } catch (error) {
    if (error instanceof KlatchError) return error;
    throw error;
  }
}

describe('the thread for large posts', () => {
  test('reads the fixtures of all formats as the event loop does, and writes the same texts of alerts', async () => {
    const reader = makeReader();
    const since = new Date('2026-11-20T10:00:00Z');
    for (const format of formats) {
      for (const name of fixtureNames(format)) {
        const { body: value, headers } = readFixture(format, name);
        const [body, request] = [bodyOf(value), { ...context(headers), format }];
        const fields = await readFormFields(body, request.headers);
        const here = outcomeOf(() => readPost({ body, fields }, request, (work) => work()));
        if (here instanceof KlatchError) {
          const { code, message } = here;
          await expect(reader.read(body, request, free)).rejects.toMatchObject({ code, message });
          continue;
        }
        const there = await reader.read(body, request, free);
        if ('alertPost' in here && 'alertPost' in there) {
          const { writeTexts, update, ...rest } = here.alertPost;
          const { writeTexts: writeThere, update: updateThere, ...restThere } = there.alertPost;
          expect([name, there.text, restThere]).toEqual([name, here.text, rest]);
          expect(updateThere.senderAlerts).toEqual(update.senderAlerts);
          const after = { state: update.state, since, senderAlerts: update.senderAlerts };
          const change: AlertChange = { before: null, after, isNewIncident: true };
          expect(await writeThere(change, null)).toEqual(await writeTexts(change, null));
          expect(there.release()).toBeUndefined();
        } else expect([name, there]).toEqual([name, here]);
        if (isIgnored(here)) expect(there).toEqual(here);
      }
    }
  });

  test('refuses what the event loop refuses, with the same sentence', async () => {
    const reader = makeReader();
    for (const body of [bodyOf({ text: 7 }), bodyOf({ attachments: [{}] }), Buffer.from('{"text":'), Buffer.from('')]) {
      const request = context({ 'content-type': 'application/json' });
      const here = (): unknown => readPost({ body, fields: null }, request, (work) => work());
      let sentence = 'none';
      try {
        here();
      } catch (error) {
        sentence = (error as Error).message;
      }
      await expect(reader.read(body, request, free)).rejects.toMatchObject({
        code: 'invalid_input',
        message: sentence,
      });
    }
  });

  test('charges the time of the thread, and reads nothing for a sender without time left', async () => {
    const reader = makeReader();
    let charged = 0;
    await reader.read(bodyOf({ text: 'x'.repeat(30_000) }), context(), { ...free, charge: (ms) => (charged += ms) });
    expect(charged).toBeGreaterThan(0);
    const refusal = new Error('no time left');
    const admit = (): void => {
      throw refusal;
    };
    await expect(reader.read(bodyOf({ text: 'x' }), context(), { ...free, requireBudget: admit })).rejects.toBe(
      refusal,
    );
  });

  test('is replaced when it does not answer, and what waits is read by the next one', async () => {
    let started = 0;
    const silent = threadOf('');
    const { startThread } = await import('../../../src/assets.ts');
    const start: typeof startThread = (...options) => ((started += 1) === 1 ? silent() : startThread(...options));
    // The time-out is long enough for a busy machine to answer the second call.
    const reader = makeReader({ start, callTimeoutMs: 3_000 });
    const [first, second] = [1, 2].map((n) => reader.read(bodyOf({ text: `text ${n}` }), context(), free));
    await expect(first).rejects.toMatchObject({ code: 'overloaded', status: 503 });
    expect(await second).toMatchObject({ message: { text: 'text 2' } });
    expect(started).toBe(2);
  });

  test('that fails or ends refuses the post as one to be repeated, and one without memory as too large', async () => {
    for (const [code, expected] of [
      ["throw new Error('broken')", 'overloaded'],
      ['process.exit(3)', 'overloaded'],
      ['const all = []; for (;;) all.push(new Array(1e5).fill({}).map(() => ({})));', 'too_large'],
    ] as const) {
      const reader = makeReader({ start: threadOf(code), callTimeoutMs: 60_000 });
      await expect(reader.read(bodyOf({ text: 'x' }), context(), free)).rejects.toMatchObject({ code: expected });
    }
  });

  test('lets sixteen wait, and refuses more', async () => {
    const reader = makeReader({ start: threadOf(''), callTimeoutMs: 60_000 });
    const outcomes = Array.from({ length: 17 }, () =>
      reader.read(bodyOf({ text: 'x' }), context(), free).then(
        () => 'read',
        (error: Error & { code: string }) => error.code,
      ),
    );
    expect(await outcomes[16]).toBe('overloaded');
    await reader.stop();
    expect(await Promise.all(outcomes)).toEqual([...Array.from({ length: 16 }, () => 'stopping'), 'overloaded']);
  });
});
