import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectResponseHeaders, request } from '../http/wire.ts';
import { postJson, readJson, TestServer, type JsonAnswer, type TestGroup } from '../support/server.ts';
import { TestKeys } from '../support/server-keys.ts';

const MALFORMED = { message: 'Malformed outgoing hook uri' };
const TAKEN = { message: 'Webhooks with provided uri is already registered' };
const keys = new TestKeys(1);
const PATIENT = {
  postgresql: { lockTimeoutMs: 60_000, databaseCallTimeoutMs: 60_000 },
  http: { requestToResponseTimeoutMs: 60_000 },
};
const MANY = { limits: { hookRegistrationsPerGroupPerMinute: 100_000 }, ...PATIENT };

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start({ ...MANY, serverSigningKeys: keys.pairs });
  group = await server.createGroup();
});
afterAll(async () => {
  await server.stop();
  keys[Symbol.dispose]();
});

const register = (body: unknown, to: TestGroup = group): Promise<JsonAnswer> => postJson(`${to.webhook}/reverse`, body);

async function listed(of: TestGroup = group): Promise<{ id: number; url: string }[]> {
  return (await readJson(await fetch(`${of.webhook}/reverse`))).body;
}

async function columns(id: number, of: TestServer = server): Promise<Record<string, unknown>> {
  const [row] = await of.database.query(
    (sql) =>
      sql`select ordering, batch, signature, to_json(skip) as skip, description, secret_sealed from reverse_hook where id = ${id}`,
  );
  return { ...row };
}

describe('a registration', () => {
  test('is 201 with the id and the secret, which is kept sealed', async () => {
    const answer = await register({ url: 'https://example.com/first' });
    expect(answer.status).toBe(201);
    expectResponseHeaders(answer);
    expect(Object.keys(answer.body)).toEqual(['id', 'secret']);
    const { id, secret } = answer.body;
    expect(Number.isInteger(id) && id > 0 && id <= 2_147_483_647).toBe(true);
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]+={0,2}$/);
    const bytes = Buffer.from(secret.slice('whsec_'.length), 'base64').length;
    expect(bytes >= 24 && bytes <= 64).toBe(true);
    expect(String((await columns(id))['secret_sealed'])).not.toContain(secret.slice(6, 20));
    expect(JSON.stringify(await listed())).not.toContain('whsec_');
  });

  test('takes target_url as another name, and url before it', async () => {
    const { id } = (await register({ target_url: 'https://example.com/target' })).body;
    expect((await listed()).find((hook) => hook.id === id)?.url).toBe('https://example.com/target');
    const both = (await register({ url: 'https://example.com/u', target_url: 'https://example.com/t' })).body;
    expect((await listed()).find((hook) => hook.id === both.id)?.url).toBe('https://example.com/u');
  });

  test('has defaults for all options', async () => {
    const { id } = (await register({ url: 'https://example.com/defaults', unknown: 'ignored' })).body;
    const { secret_sealed: _, ...rest } = await columns(id);
    expect(rest).toEqual({ ordering: 'strict', batch: 1, signature: 'v1', skip: [], description: null });
  });

  test('takes every option up to its bound', async () => {
    const description = '😀'.repeat(200);
    const options = { description, order: 'none', batch: 100, signature: 'both', skip: ['webhook', 'bot'] };
    const answer = await register({ url: 'https://example.com/options', ...options });
    expect(answer.status).toBe(201);
    const { secret_sealed: _, ordering, ...rest } = await columns(answer.body.id);
    expect({ order: ordering, ...rest }).toEqual(options);
    expect((await register({ url: 'https://example.com/v1a', signature: 'v1a', skip: [] })).status).toBe(201);
  });

  test.each([
    [{ description: 'a'.repeat(201) }, 'description: has more than 200 characters'],
    [{ description: 42 }, /^description: /],
    [{ description: 'a\u0000b' }, 'description: must be valid text without NUL'],
    [{ description: '\ud800' }, 'description: must be valid text without NUL'],
    [{ order: 'fifo' }, /^order: .*strict.*none/],
    [{ batch: 0 }, /^batch: .*1/],
    [{ batch: 101 }, /^batch: .*100/],
    [{ batch: 1.5 }, /^batch: /],
    [{ batch: '2' }, /^batch: /],
    [{ signature: 'v2' }, /^signature: .*v1.*v1a.*both/],
    [{ skip: ['user'] }, /^skip\.0: .*webhook.*bot/],
    [{ skip: 'bot' }, /^skip: /],
    [{ url: 42 }, /^url: /],
    [{ url: ['https://example.com/'] }, /^url: /],
  ])('is 400 past a bound, naming the field (%#)', async (options, message) => {
    const answer = await register({ url: 'https://example.com/refused', ...options });
    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ message: typeof message === 'string' ? message : expect.stringMatching(message) });
    expectResponseHeaders(answer);
    expect((await listed()).map((hook) => hook.url)).not.toContain('https://example.com/refused');
  });

  test.each([
    ['', 'The body is not valid JSON: it ends too early; send such as {"url": "https://…"}'],
    ['url=https://example.com/', 'The body is not valid JSON at line 1, column 1; send such as {"url": "https://…"}'],
    ['{"url":}', 'The body is not valid JSON at line 1, column 8; send such as {"url": "https://…"}'],
    ['{}', 'url: is required'],
    ['[]', /^body: /],
    ['null', /^body: /],
    ['"https://example.com/"', /^body: /],
  ])('is 400 for the body %s', async (body, message) => {
    const answer = await request(server.port, { path: `/v1/webhooks/${group.token}/reverse`, body });
    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ message: typeof message === 'string' ? message : expect.stringMatching(message) });
    expectResponseHeaders(answer);
  });

  test('is 413 for a body over 1 MiB, and 400 for invalid UTF-8', async () => {
    const path = `/v1/webhooks/${group.token}/reverse`;
    expect((await request(server.port, { path, headers: { 'content-length': '1048577' } })).status).toBe(413);
    const answer = await request(server.port, { path, body: Buffer.from([0x7b, 0xff, 0x7d]) });
    expect([answer.status, answer.body]).toEqual([400, { message: 'The body is not valid utf-8: encode it so' }]);
  });

  test('needs no content type, and may begin with a byte order mark', async () => {
    const path = `/v1/webhooks/${group.token}/reverse`;
    const body = '\ufeff{"url":"https://example.com/bom"}';
    expect((await request(server.port, { path, body })).status).toBe(201);
  });
});

describe('a URL', () => {
  test.each([
    '',
    ' ',
    'example.com',
    '/relative',
    '//example.com/',
    'ftp://example.com/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'mailto:a@example.com',
    'ws://example.com/',
    'http://',
    'http://:80/',
    'http://example.com:99999/',
    'http://exa mple.com/',
    'http://[::1',
    'http://1.2.3.4.5/',
    'http://user@example.com/',
    'http://user:secret@example.com/',
    'http://:secret@example.com/',
    'https://example.com/#fragment',
    'https://example.com/#',
    `https://example.com/${'a'.repeat(2_029)}`,
    `https://example.com/${'ü'.repeat(400)}`,
  ])('is malformed: %s', async (url) => {
    const answer = await register({ url });
    expect([answer.status, answer.body]).toEqual([400, MALFORMED]);
    expectResponseHeaders(answer);
  });

  test('may have 2,048 characters after normalising', async () => {
    const url = `https://example.com/${'a'.repeat(2_028)}`;
    expect(url).toHaveLength(2_048);
    const { id } = (await register({ url })).body;
    expect((await listed()).find((hook) => hook.id === id)?.url).toBe(url);
  });

  test.each([
    ['https://EXAMPLE.com/n1', 'https://example.com/n1'],
    ['https://example.com:443/n2', 'https://example.com/n2'],
    ['http://example.com:80/n3', 'http://example.com/n3'],
    ['https://example.com/x/../n4/./', 'https://example.com/n4/'],
    ['https://example.com/x/%2e%2E/n5', 'https://example.com/n5'],
    ['  https://example.com/n6\n', 'https://example.com/n6'],
    ['HTTPS:\\\\example.com\\n7', 'https://example.com/n7'],
    ['https://bücher.example/n8', 'https://xn--bcher-kva.example/n8'],
    ['https://example.com/n9 ü', 'https://example.com/n9%20%C3%BC'],
    ['https://example.com', 'https://example.com/'],
  ])('is kept normalised, and one with the same form is 409: %j', async (url, normalised) => {
    expect((await register({ url })).status).toBe(201);
    expect((await listed()).at(-1)?.url).toBe(normalised);
    for (const same of [url, normalised]) {
      const answer = await register({ url: same });
      expect([answer.status, answer.body]).toEqual([409, TAKEN]);
      expectResponseHeaders(answer);
    }
  });

  test('is another one when its path’s case, its query or its scheme differs', async () => {
    const urls = ['https://d.example/a', 'https://d.example/A', 'https://d.example/a?', 'http://d.example/a'];
    for (const url of urls) expect((await register({ url })).status).toBe(201);
  });

  test('can be registered in several groups', async () => {
    const other = await server.createGroup('Other');
    expect((await register({ url: 'https://example.com/shared' })).status).toBe(201);
    expect((await register({ url: 'https://example.com/shared' }, other)).status).toBe(201);
  });

  test('that twenty register at once is registered once: one 201 and nineteen 409', async () => {
    const crowded = await server.createGroup('Crowded');
    const all = Array.from({ length: 20 }, () => register({ url: 'https://example.com/race' }, crowded));
    const statuses = (await Promise.all(all)).map((answer) => answer.status).sort((a, b) => a - b);
    expect(statuses).toEqual([201, ...Array<number>(19).fill(409)]);
    expect(await listed(crowded)).toHaveLength(1);
  });

  test('gets a new id when it is registered again after its removal', async () => {
    const url = 'https://example.com/again';
    const first = (await register({ url })).body;
    expect((await fetch(`${group.webhook}/reverse/${first.id}`, { method: 'DELETE' })).status).toBe(202);
    const second = (await register({ url })).body;
    expect(second.id).toBeGreaterThan(first.id);
    expect(second.secret).not.toBe(first.secret);
    expect((await fetch(`${group.webhook}/reverse/${first.id}`)).status).toBe(410);
  });
});

describe('the bounds of registering', () => {
  test('are the hooks of a group: 403 past them, exactly, even when many come at once', async () => {
    const small = await TestServer.start({
      limits: { hooksPerGroup: 3, hookRegistrationsPerGroupPerMinute: 1_000 },
      ...PATIENT,
    });
    try {
      const full = await small.createGroup();
      const urls = Array.from({ length: 12 }, (_, i) => `https://example.com/${i}`);
      const answers = await Promise.all(urls.map((url) => register({ url }, full)));
      expect(answers.map((answer) => answer.status).sort((a, b) => a - b)).toEqual([
        201,
        201,
        201,
        ...Array<number>(9).fill(403),
      ]);
      const refused = answers.find((answer) => answer.status === 403)!;
      const message = 'A group has at most 3 reverse webhooks (limits.hooks-per-group): remove one first';
      expect(refused.body).toEqual({ message });
      expectResponseHeaders(refused);
      const [first] = await listed(full);
      await fetch(`${full.webhook}/reverse/${first!.id}`, { method: 'DELETE' });
      expect((await register({ url: 'https://example.com/room' }, full)).status).toBe(201);
      expect((await register({ url: 'https://example.com/more' }, await small.createGroup('B'))).status).toBe(201);
    } finally {
      await small.stop();
    }
  });

  test('are ten a minute for a token: then 503 with Retry-After, while other tokens go on', async () => {
    const normal = await TestServer.start();
    try {
      const busy = await normal.createGroup();
      for (let i = 0; i < 10; i += 1) {
        expect((await register({ url: `https://example.com/${i}` }, busy)).status).toBe(201);
      }
      const answer = await register({ url: 'https://example.com/eleventh' }, busy);
      expect(answer.status).toBe(503);
      const message = 'A group takes 10 registrations a minute, refused ones too; please repeat it later';
      expect(answer.body).toEqual({ message });
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
      expectResponseHeaders(answer);
      expect(await listed(busy)).toHaveLength(10);
      expect((await register({ url: 'https://example.com/' }, await normal.createGroup('B'))).status).toBe(201);
    } finally {
      await normal.stop();
    }
  });
});

describe('the address policy', () => {
  let strict: TestServer;
  let guarded: TestGroup;
  beforeAll(async () => {
    strict = await TestServer.start({ ...MANY, delivery: { allow: [] } });
    guarded = await strict.createGroup();
  });
  afterAll(() => strict.stop());

  test.each([
    ['127.0.0.1', '127.0.0.1', 'loopback'],
    ['127.1', '127.0.0.1', 'loopback'],
    ['2130706433', '127.0.0.1', 'loopback'],
    ['0x7f.1', '127.0.0.1', 'loopback'],
    ['0177.0.0.1', '127.0.0.1', 'loopback'],
    ['127.0.0.1.', '127.0.0.1', 'loopback'],
    ['１２７.0.0.1', '127.0.0.1', 'loopback'],
    ['[::1]', '[::1]', 'loopback'],
    ['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', expect.any(String)],
    ['[::ffff:10.0.0.1]', '[::ffff:a00:1]', expect.any(String)],
    ['[::127.0.0.1]', '[::7f00:1]', expect.any(String)],
    ['10.0.0.1', '10.0.0.1', 'private'],
    ['172.16.0.1', '172.16.0.1', 'private'],
    ['192.168.1.1', '192.168.1.1', 'private'],
    ['169.254.169.254', '169.254.169.254', 'link-local'],
    ['100.64.0.1', '100.64.0.1', expect.any(String)],
    ['0.0.0.0', '0.0.0.0', expect.any(String)],
    ['224.0.0.1', '224.0.0.1', 'multicast'],
    ['255.255.255.255', '255.255.255.255', expect.any(String)],
    ['192.0.2.1', '192.0.2.1', expect.any(String)],
    ['198.18.0.1', '198.18.0.1', expect.any(String)],
    ['[fe80::1]', '[fe80::1]', 'link-local'],
    ['[fd00::1]', '[fd00::1]', expect.any(String)],
    ['[ff02::1]', '[ff02::1]', 'multicast'],
    ['[2002:7f00:1::]', '[2002:7f00:1::]', expect.any(String)],
    ['[64:ff9b::7f00:1]', '[64:ff9b::7f00:1]', expect.any(String)],
    ['[2001:db8::1]', '[2001:db8::1]', expect.any(String)],
  ])('refuses http://%s/ and names the rule and the key', async (host, shown, rule) => {
    const answer = await register({ url: `http://${host}:8080/secret-path?q=1` }, guarded);
    expect(answer.status).toBe(400);
    const parts = /^The address policy refuses (\S+) \(([^)]+)\): (.*)$/.exec(answer.body.message);
    expect(parts?.slice(1)).toEqual([shown, rule, 'the administrator can allow it with delivery.allow in server.conf']);
    expect(answer.body.message).not.toContain('secret-path');
    expectResponseHeaders(answer);
    expect(await listed(guarded)).toEqual([]);
  });

  test('takes public addresses, and host names without looking them up', async () => {
    const other = await strict.createGroup('Names');
    const hosts = [
      '8.8.8.8',
      '[2606:4700::1111]',
      'localhost',
      'no-such-host.invalid',
      'internal',
      '127.0.0.1.example',
    ];
    for (const host of hosts) expect((await register({ url: `http://${host}/` }, other)).status).toBe(201);
    expect(await listed(other)).toHaveLength(hosts.length);
  });

  test('takes literal addresses that delivery.allow lists, and connects to them', async () => {
    const receiver = createServer((req, res) => {
      req.resume();
      res.end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const allowing = await TestServer.start({ delivery: { allow: ['127.0.0.0/8'] } });
    try {
      const allowed = await allowing.createGroup();
      const { port } = receiver.address() as AddressInfo;
      expect((await register({ url: `http://127.1:${port}/` }, allowed)).status).toBe(201);
      const arrived = new Promise((resolve) => receiver.once('request', resolve));
      await postJson(allowed.webhook, { text: 'x' });
      await arrived;
    } finally {
      await allowing.stop();
      receiver.closeAllConnections();
      await new Promise((resolve) => receiver.close(resolve));
    }
  });
});
