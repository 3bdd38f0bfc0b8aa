import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { text as readText } from 'node:stream/consumers';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { Busboy } from '@fastify/busboy';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { KlatchError } from '../../src/errors.ts';
import { MAX_FORM_PARTS } from '../../src/http/form-fields.ts';
import {
  MultipartReceiver,
  type FormFile,
  type MultipartOptions,
  type ReceivedForm,
} from '../../src/http/multipart-receiver.ts';
import { requestBytes, Wire } from './wire.ts';

/** The result of the receiver for one request. */
type Outcome = { readonly form: ReceivedForm } | { readonly body: string } | { readonly error: KlatchError };

const MAX_BODY = 2_000;
const MAX_FILE = 100_000;

let server: Server;
let outcomes: Promise<Outcome>[];
let uploadsBegun: number;
let uploads: number;
let storedFiles: Map<string, string>;
let store: MultipartOptions['store'];
const wires: Wire[] = [];
let changes: Partial<MultipartOptions>;

beforeEach(async () => {
  [outcomes, uploadsBegun, uploads, storedFiles, changes] = [[], 0, 0, new Map(), {}];
  store = async ({ name, bytes }) => {
    const id = `f${(uploadsBegun += 1)}`;
    const content = await readText(bytes());
    storedFiles.set(id, content);
    return { id, name, type: 'text/plain', size: content.length };
  };
  server = createServer((req, res) => {
    const outcome = receive(req);
    outcomes.push(outcome);
    void outcome.then(() => res.end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  jest.restoreAllMocks();
  for (const wire of wires.splice(0)) wire.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function receive(req: IncomingMessage): Promise<Outcome> {
  const parser = new MultipartReceiver(
    { 'content-type': req.headers['content-type']! },
    {
      maxBodyBytes: MAX_BODY,
      maxFileBytes: MAX_FILE,
      maxFiles: 3,
      // Tests about this time-out set a shorter one.
      nonFileTimeoutMs: 240_000,
      chargeParseTime: (work) => work(),
      onFirstFile: () => (uploads += 1),
      store: (file) => store(file),
      onChunk: () => {},
      discardFile: async (id) => void storedFiles.delete(id),
      ...changes,
    },
  );
  try {
    const form = await parser.read(req);
    return Buffer.isBuffer(form) ? { body: form.toString('latin1') } : { form };
  } catch (error) {
    return { error: error as KlatchError };
  }
}

interface Part {
  readonly name: string;
  readonly file?: string;
  readonly content: string;
}

const encode = (parts: readonly Part[], end = '--B--\r\n'): string => {
  const encoded = parts.map(({ name, file, content }) => {
    const filename = file === undefined ? '' : `; filename="${file}"`;
    return `--B\r\nContent-Disposition: form-data; name="${name}"${filename}\r\n\r\n${content}\r\n`;
  });
  return `${encoded.join('')}${end}`;
};

const file = (content: string, name = 'a.txt'): Part => ({ name: 'file', file: name, content });
const text = (content: string): Part => ({ name: 'text', content });

const HEADERS = { 'content-type': 'multipart/form-data; boundary=B' };

/** Sends a body in pieces of `pieces` bytes. `cut`: closes the connection early. */
async function send(body: string, how: { pieces?: number; cut?: boolean } = {}): Promise<Outcome> {
  const wire = await Wire.open((server.address() as AddressInfo).port);
  wires.push(wire);
  const requested = once(server, 'request');
  const length = Buffer.byteLength(body) + (how.cut === true ? 1 : 0);
  wire.write(requestBytes({ path: '/', headers: { ...HEADERS, 'content-length': String(length) } }));
  const bytes = Buffer.from(body);
  for (let at = 0; at < bytes.length; at += how.pieces ?? bytes.length) {
    wire.write(bytes.subarray(at, at + (how.pieces ?? bytes.length)));
  }
  await requested;
  if (how.cut === true) wire.end();
  return outcomes[0]!;
}

/**
 * Lets the receiver read a body in exactly these chunks, each after the previous one was handled. A socket might join
 * them.
 */
function read(chunks: readonly string[]): Promise<Outcome> {
  async function* arriving(): AsyncGenerator<Buffer> {
    for (const chunk of chunks) {
      yield Buffer.from(chunk);
      for (let turns = 0; turns < 10; turns += 1) await turn();
    }
  }
  return receive(Object.assign(Readable.from(arriving()), { headers: HEADERS }) as unknown as IncomingMessage);
}

const formOf = (outcome: Outcome): ReceivedForm => {
  if ('form' in outcome) return outcome.form;
  throw new Error('no form with files', { cause: 'error' in outcome ? outcome.error : undefined });
};

const errorOf = (outcome: Outcome): KlatchError => {
  if ('error' in outcome) return outcome.error;
  throw new Error('it was taken');
};

describe('a form', () => {
  test('without files has its fields and its whole body, byte by byte', async () => {
    const body = encode([text('héllo')]);
    const form = formOf(await send(body));
    expect([...form.fields]).toEqual([['text', 'héllo']]);
    expect([form.body?.toString(), form.files, uploads]).toEqual([body, [], 0]);
  });

  test.each([
    ['text', 'no form at all'],
    ['nothing', ''],
    ['a form without its end', encode([text('cut')], '--B')],
  ])('that is %s is refused', async (_, body) => {
    expect(errorOf(await send(body)).message).toBe('The body is not a valid multipart form');
  });

  test('that begins like an object of JSON comes back as its body', async () => {
    expect(await send(' {"text":"JSON"}')).toEqual({ body: ' {"text":"JSON"}' });
  });

  test.each([1, 7, 64, 100_000])('with files is stored as it arrives, in pieces of %d bytes', async (pieces) => {
    const contents = ['first\r\n-- B\r\n--\r\nB is no boundary', randomBytes(300).toString('hex')];
    const parts = [file(contents[0]!, 'Über.txt'), text('behind'), file(contents[1]!), text('second')];
    const { fields, files } = formOf(await send(encode(parts), { pieces }));
    expect(fields.get('text')).toBe('behind');
    expect(files.map(({ attachment }) => attachment.name)).toEqual(['Über.txt', 'a.txt']);
    expect([...storedFiles.values()]).toEqual(contents);
    const hash = (content: string): string => createHash('sha256').update(content).digest('hex');
    expect(files.map(({ sha256 }) => sha256)).toEqual(contents.map(hash));
    expect(uploads).toBe(1);
  });

  test('takes a field in which no file was chosen for none, and an empty file for one', async () => {
    const { files } = formOf(await send(encode([file('', ''), file('', 'empty'), file('x', '')])));
    expect(files.map(({ attachment }) => [attachment.name, attachment.size])).toEqual([
      ['empty', 0],
      ['', 1],
    ]);
  });

  test('counts no fields in which no file was chosen, however many', async () => {
    const none = Array.from({ length: 10 }, () => file('', ''));
    const { fields, files } = formOf(await send(encode([text('hi'), file('x'), ...none, file('y'), file('z', '')])));
    expect(fields.get('text')).toBe('hi');
    expect(files).toHaveLength(3);
  });

  test('is read to its end with more delimiters behind the last one, wherever it is cut', async () => {
    const form = encode([text('x'), file('A')]);
    for (const more of ['', '--B--\r\n', '\r\n--B\r\n--B']) {
      const body = `${form}${more}`;
      const cuts = Array.from(body, (_, at) => [body.slice(0, at), body.slice(at)].filter((chunk) => chunk !== ''));
      storedFiles.clear();
      const all = await Promise.all(cuts.map(read));
      expect(all.map((outcome) => formOf(outcome).fields.get('text'))).toEqual(cuts.map(() => 'x'));
      expect([...storedFiles.values()]).toEqual(cuts.map(() => 'A'));
    }
  });

  test('whose parser says nothing at its end is given up in time, and nothing of it stays', async () => {
    changes = { nonFileTimeoutMs: 200 };
    jest.spyOn(Busboy.prototype, 'end').mockImplementation(function (this: InstanceType<typeof Busboy>) {
      return this;
    });
    expect(errorOf(await read([encode([file('x')])])).code).toBe('request_timeout');
    expect([uploadsBegun, storedFiles.size]).toEqual([1, 0]);
  });

  test.each<[string, Part[], RegExp]>([
    ['more files than a message carries', Array.from({ length: 4 }, () => file('x')), /at most 3 files/],
    ['more files than that without a name', Array.from({ length: 4 }, () => file('x', '')), /at most 3 files/],
    ['a file in another field', [file('x'), { ...file('x'), name: 'upload' }], /name the field of each file "file"/],
    ['the text as a file', [{ ...file('x'), name: 'text' }], /text: was sent as a file; with curl/],
    ['fields past the bound', [file('x'), text('x'.repeat(MAX_BODY + 1))], /without its files/],
    [
      'many fields that are past it together',
      [file('x'), ...Array.from({ length: 5 }, () => text('x'.repeat(MAX_BODY / 4)))],
      /without its files/,
    ],
    [
      'too many parts',
      [file('x'), ...Array.from({ length: MAX_FORM_PARTS + 1 }, () => text(''))],
      /more than 200 parts/,
    ],
  ])('with %s is refused, and nothing of it stays', async (_what, parts, sentence) => {
    expect(errorOf(await send(encode(parts))).message).toMatch(sentence);
    expect(storedFiles.size).toBe(0);
  });

  test('past the bound of a body without a file in it is refused as any other body', async () => {
    expect(errorOf(await send(encode([text('x'.repeat(MAX_BODY))])))).toMatchObject({
      code: 'too_large',
      message: `The body is larger than ${MAX_BODY} bytes (http.max-body-size)`,
    });
    expect(uploads).toBe(0);
  });

  test.each<[string, string, { cut?: boolean }]>([
    ['in a file', encode([file('first'), file('second')], '').slice(0, -20), {}],
    ['behind a file', encode([file('first')], ''), {}],
    ['in a file, with its connection', encode([file('first'), file('second')], '').slice(0, -20), { cut: true }],
  ])('that ends early, %s, is refused, and nothing of it stays', async (_where, body, how) => {
    expect(errorOf(await send(body, how)).code).toBe('invalid_input');
    expect(storedFiles.size).toBe(0);
  });

  test('that does not go on behind a file is given up in time, however slow the store was', async () => {
    changes = { nonFileTimeoutMs: 200 };
    const quick = store;
    // The store takes longer than the time-out of fields that are not files. The sender is not to blame for that.
    store = async (upload: FormFile) => {
      await wait(400);
      return quick(upload);
    };
    const body = encode([file('x'), text('hi')]);
    expect(formOf(await send(body)).files).toHaveLength(1);
    outcomes.length = 0;
    store = quick;
    const unfinished = encode([file('y')], '--B\r\n');
    const wire = await Wire.open((server.address() as AddressInfo).port);
    wires.push(wire);
    const requested = once(server, 'request');
    wire.write(requestBytes({ path: '/', headers: { ...HEADERS, 'content-length': '5000' } }));
    wire.write(unfinished);
    await requested;
    expect(errorOf(await outcomes[0]!).code).toBe('request_timeout');
    expect([...storedFiles.values()]).toEqual(['x']);
  });

  test('whose store fails is told so, and the files that it stored before are given up', async () => {
    const quick = store;
    const failure = new KlatchError('storage_quota_exceeded');
    store = (upload) => (uploadsBegun === 1 ? Promise.reject(failure) : quick(upload));
    expect(errorOf(await send(encode([file('first'), file('x'.repeat(90_000)), text('hi')])))).toBe(failure);
    expect(storedFiles.size).toBe(0);
    expect(uploadsBegun).toBe(1);
  });

  test('is read by the speed of the store, and no further', async () => {
    const admit = Promise.withResolvers<void>();
    const quick = store;
    store = async (upload) => {
      await admit.promise;
      return quick(upload);
    };
    const wire = await Wire.open((server.address() as AddressInfo).port);
    wires.push(wire);
    changes = { maxFileBytes: 64 * 1024 * 1024 };
    const requested = once(server, 'request');
    const size = 32 * 1024 * 1024;
    const [head, tail] = encode([file('|')]).split('|') as [string, string];
    wire.write(
      requestBytes({
        path: '/',
        headers: { ...HEADERS, 'content-length': String(head.length + size + tail.length) },
      }),
    );
    wire.write(head);
    wire.write(Buffer.alloc(size, 'x'));
    wire.write(tail);
    const [req] = (await requested) as [IncomingMessage];
    await new Promise(setImmediate);
    // The kernel buffers some megabytes for both sides; the rest has to wait at the sender.
    expect(req.socket.bytesRead).toBeLessThan(8 * 1024 * 1024);
    admit.resolve();
    expect(formOf(await outcomes[0]!).files[0]!.attachment.size).toBe(size);
    expect(wire.pending).toBe(0);
  });
});
