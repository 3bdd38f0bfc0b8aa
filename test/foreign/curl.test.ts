import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { newestText } from '../http/wire.ts';
import { within } from '../run/machine-speed.ts';
import { TestServer, type TestGroup } from '../support/server.ts';

let server: TestServer;
let group: TestGroup;
let folder: string;
beforeAll(async () => {
  server = await TestServer.start();
  group = await server.createGroup();
  folder = await mkdtemp(join(tmpdir(), 'klatch-curl-'));
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Runs the real curl. Resolves to the status and the body of the answer. */
async function curl(args: readonly string[], input = ''): Promise<{ status: number; body: string }> {
  const child = spawn('curl', ['-sS', '-w', '\n%{http_code}', ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const lines = (await readText(child.stdout)).split('\n');
  return { status: Number(lines.pop()), body: lines.join('\n') };
}

async function file(content: string | Buffer): Promise<string> {
  const path = join(folder, 'body');
  await writeFile(path, content);
  return path;
}

/** Posts with curl. Expects the answer 200, and that the message is stored as `text`. */
async function expectPosted(text: string, args: readonly string[], input = ''): Promise<void> {
  const answer = await curl([...args, group.webhook], input);
  expect(answer.status).toBe(200);
  expect(JSON.parse(answer.body)).toMatchObject({ status: 'Ok', ok: true, success: true });
  expect(await newestText(server, group)).toBe(text);
}

const JSON_HEADER = ['-H', 'Content-Type: application/json'];

describe('curl posts', () => {
  test.each(['disk full', '42', 'a+b', '90%', 'text', '100% of /var & more', 'naïve 😀'])('-d %j as it is', (text) =>
    expectPosted(text, ['-d', text]),
  );

  test('-d with a JSON object, without and with a JSON content type', async () => {
    await expectPosted('hi', ['-d', '{"text":"hi"}']);
    await expectPosted('ho', [...JSON_HEADER, '-d', '{"text":"ho"}']);
  });

  test('-d with a JSON object that holds a raw line break', () =>
    expectPosted('a\nb', [...JSON_HEADER, '-d', '{"text":"a\nb"}']));

  test('-d text=… and payload=… as a form', async () => {
    await expectPosted('hello world', ['-d', 'text=hello+world']);
    await expectPosted('hello', ['-d', 'payload={"text":"hello"}']);
    await expectPosted('two', ['-d', 'text=two', '-d', 'username=Bot']);
  });

  test('--data-urlencode', () => expectPosted('50% & more = 1+1', ['--data-urlencode', 'text=50% & more = 1+1']));

  test('--data-urlencode payload=', () =>
    expectPosted('50% & more', ['--data-urlencode', 'payload={"text":"50% & more"}']));

  test('--data-binary @file with every line break', async () => {
    await expectPosted('line 1\r\nline 2\n', ['--data-binary', `@${await file('line 1\r\nline 2\n')}`]);
  });

  test('-d @file without line breaks, as curl sends it', async () => {
    await expectPosted('line 1line 2', ['-d', `@${await file('line 1\nline 2\n')}`]);
  });

  test('-F text=… and payload=…', async () => {
    await expectPosted('a part', ['-F', 'text=a part']);
    await expectPosted('payload', ['-F', 'payload={"text":"payload"}']);
    await expectPosted('from file\n', ['-F', `text=<${await file('from file\n')}`]);
  });

  test('--json', () => expectPosted('json', ['--json', '{"text":"json"}']));

  test('-T - from standard input, in chunks', () => expectPosted('piped\n', ['-X', 'POST', '-T', '-'], 'piped\n'));

  test('-T file', async () => {
    await expectPosted('uploaded', ['-X', 'POST', '-T', await file('uploaded')]);
  });

  test('-H "Transfer-Encoding: chunked"', () =>
    expectPosted('chunks', ['-H', 'Transfer-Encoding: chunked', '-d', '{"text":"chunks"}']));

  test('a body that gzip has compressed', async () => {
    const path = await file(gzipSync('{"text":"zipped"}'));
    await expectPosted('zipped', ['--compressed', '-H', 'Content-Encoding: gzip', '--data-binary', `@${path}`]);
  });

  test('a large body that waits for 100 Continue', async () => {
    const text = 'x'.repeat(40_000);
    const body = JSON.stringify({ text, filler: 'y'.repeat(900_000) });
    const args = ['-H', 'Expect: 100-continue', '--expect100-timeout', '20', '--data-binary', `@${await file(body)}`];
    const started = performance.now();
    await expectPosted(text, args);
    expect(performance.now() - started).toBeLessThan(within(15_000));
  });

  test('with HTTP/1.0, and with an upgrade to HTTP/2 that the server does not take', async () => {
    await expectPosted('old', ['--http1.0', '-d', 'old']);
    await expectPosted('new', ['--http2', '-d', 'new']);
  });

  test('with an empty content type, and with none', async () => {
    await expectPosted('x', ['-H', 'Content-Type;', '-d', 'x']);
    await expectPosted('y', ['-H', 'Content-Type:', '-d', 'y']);
  });

  test('several times over one connection', async () => {
    const answers = await curl(['-d', 'again', group.webhook, group.webhook]);
    expect(answers.body.match(/"status":"Ok"/g)).toHaveLength(2);
    expect(await newestText(server, group)).toBe('again');
  });
});

describe('curl is refused', () => {
  test('with GET, which -G makes of -d', async () => {
    const answer = await curl(['-G', '-d', 'text=x', group.webhook]);
    expect(answer.status).toBe(405);
    expect(JSON.parse(answer.body)).toEqual({ message: 'This method is not allowed here, only POST, OPTIONS' });
  });

  test('with PUT, which -T alone makes', async () => {
    expect((await curl(['-T', '-', group.webhook], 'x')).status).toBe(405);
  });

  test('with a file in another field of a form', async () => {
    const answer = await curl(['-F', `upload=@${await file('x')}`, group.webhook]);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toEqual({
      message: 'A file is in another field than file: name the field of each file "file"',
    });
  });

  test('with plain text that claims to be JSON', async () => {
    const answer = await curl([...JSON_HEADER, '-d', 'disk full', group.webhook]);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toEqual({ message: 'The body is not valid JSON at line 1, column 1' });
  });

  test('with a body over 1 MiB, and reads why', async () => {
    const large = await file(Buffer.alloc(20 * 1024 * 1024, 'a'));
    for (const more of [[], ['-H', 'Expect:'], ['-H', 'Expect:', '-H', 'Transfer-Encoding: chunked']]) {
      const answer = await curl([...more, '--data-binary', `@${large}`, group.webhook]);
      expect(answer.status).toBe(413);
      expect(JSON.parse(answer.body)).toEqual({
        message: 'The body is larger than 1048576 bytes (http.max-body-size)',
      });
    }
  });

  test('with a wrong token before it sends a large body', async () => {
    const large = await file(Buffer.alloc(900_000, 'a'));
    const args = ['-H', 'Expect: 100-continue', '--expect100-timeout', '20', '-w', '\n%{size_upload}\n%{http_code}'];
    const answer = await curl([...args, '--data-binary', `@${large}`, `${server.url}/v1/webhooks/${'x'.repeat(43)}`]);
    const [body = '', uploaded] = answer.body.split('\n');
    expect(answer.status).toBe(404);
    expect(JSON.parse(body)).toEqual({ message: 'Wrong integration token', status: 'failure' });
    expect(uploaded).toBe('0');
  });
});
