import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createStartingApp } from '../../../src/http/app.ts';
import type { S3Config } from '../../../src/config/services.ts';
import { silentLog } from '../../../src/log.ts';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { testConfig } from '../../support/config.ts';
import { settingsParts } from '../../../web/core/routes.ts';
import { TestServer } from '../../support/server.ts';
import { request } from '../wire.ts';

const HTML = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; " +
  "connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types klatch";

const webhookPaths = ['/c/7/integration', '/c/7/hooks', '/c/7/hooks/5', '/c/7/42/hooks/5'];
const settingsPaths = ['/settings', ...settingsParts.map((part) => `/settings/${part}`)];

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start({ projectName: '<b>"Chat" & more' });
});
afterAll(() => server.stop());

const get = (path: string, headers: Record<string, string> = HTML, port = server.port) =>
  request(port, { method: 'GET', path, headers });
/** The paths of the files to which the page links, by ending. */
async function assetPaths(): Promise<{ js: string; css: string; svg: string }> {
  const { text } = await get('/');
  const find = (ending: string): string => new RegExp(`"(/assets/[^"]+\\.${ending})"`).exec(text)![1]!;
  return { js: find('js'), css: find('css'), svg: find('svg') };
}

describe('the page of the browser client', () => {
  test.each([
    '/',
    '/join',
    '/v1/sign-in',
    '/c/7',
    '/c/7/42',
    '/c/7/about',
    '/c/7/42/about',
    ...webhookPaths,
    ...settingsPaths,
  ])('is served at %s, with headers that allow nothing from elsewhere', async (path) => {
    const { status, headers, text } = await get(path);
    expect(status).toBe(200);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': POLICY,
      'cache-control': 'no-cache',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      vary: 'Accept',
    });
    expect(headers.has('set-cookie')).toBe(false);
    expect(text).toContain('<title>&lt;b&gt;&quot;Chat&quot; &amp; more</title>');
    expect(text).toContain('data-base="http://klatch.example/"');
    // The script sets the stored appearance (such as dark) before anything is shown.
    expect(text).toMatch(/<script type="module" src="[^"]+" blocking="render">/);
    // The page has nothing inline, and no placeholder is left.
    expect(text).not.toMatch(/<script(?! type="module" src=)|<style|\sstyle=|\son\w+=|\{\{/);
  });

  test('is answered to HEAD without a body, and to nothing that changes', async () => {
    const { status, headers } = await request(server.port, { method: 'HEAD', path: '/', headers: HTML });
    expect([status, Number(headers.get('content-length')) > 300]).toEqual([200, true]);
    expect((await request(server.port, { path: '/', headers: HTML, body: '{}' })).status).toBe(404);
  });

  test.each([
    ['/', { accept: '*/*' }],
    ['/', {}],
    ['/', { accept: 'application/json' }],
    ['/', { accept: 'text/htmlx' }],
    ['/index.html', HTML],
    ['/c/7', { accept: '*/*' }],
    ['/c/', HTML],
    ['/c/0', HTML],
    ['/c/7/', HTML],
    ['/c/7/x', HTML],
    ['/c/7/42/1', HTML],
    ['/c/7/about/', HTML],
    ['/c/7/about/5', HTML],
    ['/c/7/hooks/x', HTML],
    ['/settings', { accept: '*/*' }],
    ['/settings/', HTML],
    ['/settings/other', HTML],
    ['/v1', HTML],
    ['/favicon.ico', HTML],
    ['/assets/', HTML],
    ['/assets/main.js', HTML],
    ['/assets/..%2fshell.html', HTML],
    ['/assets/shell.html', HTML],
  ])('is not served at %s for %j', async (path, headers) => {
    const response = await get(path, headers);
    expect([response.status, response.headers.get('cache-control')]).toEqual([404, 'no-store']);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  test('stands in the way of no program that posts', async () => {
    // This path is one of Gotify's interface, and a person's browser may open it.
    expect((await get('/message')).status).toBe(405);
    const group = await server.createGroup();
    const posted = await request(server.port, {
      path: '/',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ topic: group.token, message: 'by ntfy' }),
    });
    expect(posted.status).toBe(200);
  });
});

describe('files of the browser client', () => {
  test('are there for a year, under names that change with their content', async () => {
    const paths = await assetPaths();
    const types = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8', svg: 'image/svg+xml' };
    for (const ending of ['js', 'css', 'svg'] as const) {
      expect(paths[ending]).toMatch(/^\/assets\/[a-z]+-[0-9A-Za-z]{8}\.\w+$/);
      const { status, headers } = await get(paths[ending], {});
      expect([status, headers.get('content-type')]).toEqual([200, types[ending]]);
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
  });

  test.each([
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip;q=1.0, br;q=0', 'gzip'],
    ['gzip', 'gzip'],
    ['br;q=0.1', 'br'],
    ['identity', null],
    ['brotli, gzipped', null],
  ])('come compressed for Accept-Encoding: %s', async (accepted, encoding) => {
    const { css } = await assetPaths();
    const plain = await (await fetch(`${server.url}${css}`, { headers: { 'accept-encoding': 'identity' } })).text();
    const { headers, bytes } = await bytesOf(css, accepted);
    expect([headers.get('content-encoding'), headers.get('vary')]).toEqual([encoding, 'Accept-Encoding']);
    const text = encoding === 'br' ? brotliDecompressSync(bytes) : encoding === 'gzip' ? gunzipSync(bytes) : bytes;
    expect(text.toString()).toBe(plain);
  });

  test('need little: what is loaded first has at most 40 KB', async () => {
    const { js, css, svg } = await assetPaths();
    const sizes = await Promise.all([js, css, svg].map(async (path) => (await bytesOf(path, 'br')).bytes.length));
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(40 * 1024);
  });
});

describe('another address', () => {
  let loopback: TestServer;
  beforeAll(async () => {
    loopback = await TestServer.start({ http: { baseUri: 'http://127.0.0.1:9090' } });
  });
  afterAll(() => loopback.stop());
  const open = (host: string, path = '/') => get(path, { ...HTML, host }, loopback.port);

  test('of this machine is one that browsers trust: no other page has a hand on its window', async () => {
    const { headers } = await open('127.0.0.1:9090');
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
    // This page comes over plain http from another machine. A browser would complain about the header there, so the
    // server omits it.
    expect((await get('/')).headers.has('cross-origin-opener-policy')).toBe(false);
  });

  test.each(['localhost:9090', '[::1]:9090', 'LOCALHOST:9090'])(
    'of this machine, %s, leads to base-uri',
    async (host) => {
      const { status, headers } = await open(host);
      expect([status, headers.get('location')]).toEqual([307, 'http://127.0.0.1:9090/']);
      expect(headers.get('cache-control')).toBe('no-store');
      expect((await open(host, '/v1/sign-in')).headers.get('location')).toBe('http://127.0.0.1:9090/v1/sign-in');
    },
  );

  // These hosts are not redirected to the base-uri. Another port, for example, may be that of a tunnel from another
  // machine, where the base-uri does not lead to this server.
  test.each(['127.0.0.1:9090', 'localhost:8080', 'chat.example:9090', 'localhost.evil.example:9090', ' '])(
    'such as %s gets the page, which says where to go',
    async (host) => {
      expect((await open(host)).status).toBe(200);
    },
  );
});

test('a base-uri with a path is in front of every address of the page', async () => {
  const below = await TestServer.start({ http: { baseUri: 'https://example.org/chat' } });
  try {
    const { text } = await get('/', HTML, below.port);
    expect(text).toContain('data-base="https://example.org/chat/"');
    const paths = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path!);
    // The page links at least its icon, its styles and its script.
    expect(paths.length).toBeGreaterThanOrEqual(3);
    expect(paths.filter((path) => !path.startsWith('/chat/assets/'))).toEqual(['/chat/v1/session']);
  } finally {
    await below.stop();
  }
});

test('web.enabled = false serves none of it', async () => {
  const { js } = await assetPaths();
  const without = await TestServer.start({ web: { webClientEnabled: false } });
  try {
    expect((await get('/', HTML, without.port)).status).toBe(404);
    expect((await get(js, HTML, without.port)).status).toBe(404);
    // If the web client is missing, a sign-in link leads to this page.
    expect((await get('/v1/sign-in', HTML, without.port)).text).toContain('klatch chat sign-in');
  } finally {
    await without.stop();
  }
});

test('a server that starts has the page already, which tells so', async () => {
  const config = testConfig(server.database.target, '/nowhere');
  const starting: Server = createServer(createStartingApp(config, silentLog())).listen(0, '127.0.0.1');
  await once(starting, 'listening');
  const { port } = starting.address() as AddressInfo;
  try {
    expect((await get('/', HTML, port)).text).toContain('<div id="app">');
    expect((await get('/v1/session', HTML, port)).body).toMatchObject({ code: 'starting' });
  } finally {
    starting.close();
    starting.closeAllConnections();
  }
});

test('pictures of the bucket are allowed where downloads are redirected to it, and of no other host', async () => {
  const s3 = { bucket: 'chat', accessKey: 'a', secretKey: 's', region: 'r', s3Endpoint: 'https://s3.example:9000/x' };
  const policyWith = async (changes: Pick<S3Config, 'downloads' | 'pathStyle'>): Promise<string | undefined> => {
    const files = { s3: { ...s3, ...changes } };
    const config = testConfig(server.database.target, '/nowhere', { files });
    const starting: Server = createServer(createStartingApp(config, silentLog())).listen(0, '127.0.0.1');
    await once(starting, 'listening');
    try {
      return (await get('/', HTML, (starting.address() as AddressInfo).port)).headers.get('content-security-policy');
    } finally {
      starting.close();
      starting.closeAllConnections();
    }
  };
  const withPictures = (host: string): string => POLICY.replace('blob:;', `blob: ${host};`);
  expect(await policyWith({ downloads: 'proxy', pathStyle: true })).toBe(POLICY);
  expect(await policyWith({ downloads: 'redirect', pathStyle: true })).toBe(withPictures('https://s3.example:9000'));
  expect(await policyWith({ downloads: 'redirect', pathStyle: false })).toBe(
    withPictures('https://chat.s3.example:9000'),
  );
});

/** The body of a file as the server sends it, in the accepted encoding. */
async function bytesOf(path: string, accepted: string): Promise<{ headers: Headers; bytes: Buffer }> {
  const { get: httpGet } = await import('node:http');
  return new Promise((resolve, reject) => {
    httpGet(`${server.url}${path}`, { headers: { 'accept-encoding': accepted } }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        resolve({ headers: new Headers(response.headers as Record<string, string>), bytes: Buffer.concat(chunks) });
      });
    }).on('error', reject);
  });
}
