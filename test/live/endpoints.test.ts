import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { within } from '../run/machine-speed.ts';
import { readJson, TestServer } from '../support/server.ts';
import { LiveClient } from './client.ts';
import { LiveFixture } from './fixture.ts';

let folder: string;
let certificate: string;
let key: string;

/** Makes a self-signed certificate in files of this name. */
function selfSigned(name: string): { certificate: string; key: string } {
  const files = { certificate: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) };
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const out = ['-keyout', files.key, '-out', files.certificate];
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', ...subject, ...out],
    {
      stdio: 'ignore',
    },
  );
  return files;
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'klatch-tls-'));
  ({ certificate, key } = selfSigned('one'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let live: LiveFixture | null = null;
afterEach(async () => {
  await live?.stop();
  live = null;
});

const secure = (type: 'websocket' | 'tcp', files = { certificate, key }) =>
  ({ type, interface: '127.0.0.1', port: 0, tls: files }) as const;

describe('endpoints with a certificate', () => {
  test('serve wss and tls, answer heartbeats there, and are vouched for in /v1/about', async () => {
    live = await LiveFixture.start({ endpoints: [secure('websocket'), secure('tcp')], live: { heartbeatMs: 800 } });
    const ca = readFileSync(certificate, 'utf8');
    expect(live.server.endpoints.map(({ url }) => url.split(':')[0])).toEqual(['wss', 'tls']);
    for (const { url } of live.server.endpoints) {
      const client = await live.connect(url, { ca });
      await client.call('live.authenticate', { token: live.alice.token });
      await client.call('live.subscribe');
      await live.post(`by ${url}`);
      await eventually(
        () => client.changes(live!.group.id).at(-1)?.message?.text,
        (text) => text === `by ${url}`,
      );
      // Four heartbeats later the client is still connected, since it answers them.
      const until = performance.now() + 3_200;
      let answered = 0;
      await eventually(
        () => {
          if (client.of('ping').length > answered) {
            answered += 1;
            client.send('');
          }
          return performance.now();
        },
        (now) => now > until,
      );
      await client.call('live.ping');
      if (url.startsWith('tls')) expect(answered).toBeGreaterThan(0);
    }
    const { body } = await readJson(await fetch(`${live.server.url}/v1/about`));
    const { fingerprint256 } = new X509Certificate(ca);
    expect(JSON.parse(body.statement).certificates).toEqual([fingerprint256, fingerprint256]);
    const status = await live.server.operate<{ listeners: string[] }>('server.status');
    expect(status.listeners).toEqual([live.server.url, ...live.server.endpoints.map(({ url }) => url)]);
  });

  test('a client that never finishes its handshake is let go in time', async () => {
    live = await LiveFixture.start({
      endpoints: [secure('websocket'), secure('tcp')],
      live: { authTimeoutMs: 500 },
    });
    for (const { port } of live.server.endpoints) {
      const client = await LiveClient.connect(`tcp://127.0.0.1:${port}`);
      client.socket.write(Buffer.from([0x16, 0x03, 0x01]));
      await client.ended();
    }
  });

  test('files that cannot be used keep the server from starting, with a sentence that names endpoint and file', async () => {
    const other = selfSigned('two');
    const broken = join(folder, 'broken.key');
    writeFileSync(broken, 'no key at all, and secret');
    const cases = [
      [
        { certificate: join(folder, 'none.crt'), key },
        /server\.conf: .*tcp endpoint of port 0 cannot use .*none\.crt: there is no such file/,
      ],
      [{ certificate: folder, key }, /cannot use .*: it is a folder/],
      [{ certificate: key, key }, /cannot use .*one\.key: it is no certificate in PEM/],
      [{ certificate, key: broken }, /cannot use .*broken\.key: it is no private key in PEM/],
      [{ certificate, key: other.key }, /cannot use .*two\.key: it does not belong to .*one\.crt/],
    ] as const;
    for (const [files, sentence] of cases) {
      const starting = TestServer.start({ endpoints: [secure('tcp', files)] });
      await expect(starting).rejects.toThrow(sentence);
      await expect(starting).rejects.not.toThrow('secret');
    }
  });
});

test('a port that is taken is told with the keys that name it and who has it', async () => {
  const occupied = createServer().listen(0, '127.0.0.1');
  await once(occupied, 'listening');
  const { port } = occupied.address() as AddressInfo;
  const endpoint = { type: 'tcp', interface: '127.0.0.1', port, tls: null } as const;
  try {
    await expect(TestServer.start({ endpoints: [endpoint] })).rejects.toThrow(
      new RegExp(
        `another program listens on 127\\.0\\.0\\.1:${port} \\(endpoints\\[0\\]\\): .* \\(pid ${process.pid}\\)`,
      ),
    );
  } finally {
    occupied.close();
  }
});

describe('browsers', () => {
  test('may connect from the pages of http.base-uri and of live.origins, and from no other', async () => {
    live = await LiveFixture.start({ live: { allowedLiveOrigins: ['https://pages.example'] } });
    for (const url of [live.urls[0], live.urls[1]]) {
      for (const origin of ['http://klatch.example', 'https://pages.example']) {
        await live.connect(url, { headers: { origin } });
      }
      for (const origin of ['https://klatch.example', 'https://evil.example', 'null', '']) {
        await expect(live.connect(url, { headers: { origin } })).rejects.toThrow('403');
      }
    }
  });

  test('may connect from everywhere where the configuration says so', async () => {
    live = await LiveFixture.start({ live: { allowedLiveOrigins: ['*'] } });
    await live.connect(live.urls[1], { headers: { origin: 'https://any.example' } });
  });
});

describe('requests', () => {
  test('without the wish for WebSocket are told what is spoken; other wishes are ignored', async () => {
    live = await LiveFixture.start();
    for (const url of [live.urls[0], live.urls[1]]) {
      const { status, body } = await readJson(await fetch(url.replace('ws', 'http')));
      expect([status, body.message]).toEqual([426, expect.stringMatching(/WebSocket/)]);
    }
    // Some HTTP/2 clients send this `Upgrade` with every request.
    const client = await LiveClient.connect(`tcp://127.0.0.1:${live.server.port}`);
    const texts: string[] = [];
    client.socket.removeAllListeners('data').on('data', (text: string) => texts.push(text));
    client.socket.write(
      'GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n',
    );
    await eventually(
      () => texts.join(''),
      (text) => text.startsWith('HTTP/1.1 200') && text.includes('{"status":"Ok"}'),
    );
    client.kill();
    await expect(LiveClient.connect(`ws://127.0.0.1:${live.server.port}/v1/other`)).rejects.toThrow('404');
  });

  test('come from where trusted proxies say that they do', async () => {
    live = await LiveFixture.start({
      live: { maxUnauthenticatedConnections: 8 },
      http: { trustedProxies: ['127.0.0.0/8'] },
      metrics: { metricsEnabled: true },
    });
    const from = (source: string): Promise<LiveClient> =>
      live!.connect(live!.urls[0], { headers: { 'x-forwarded-for': source } });
    // One source may have a quarter of the eight connections, which is two. Of the header, only the entries of trusted
    // proxies count: the client itself can write those before them.
    await from('203.0.113.7');
    await from('198.51.100.1, 203.0.113.7');
    await expect(from('198.51.100.2, 203.0.113.7')).rejects.toThrow('503');
    await from('203.0.113.8, 127.0.0.2');
    expect(await live.metric('klatch_live_rejections_total{reason="too_many_from_source"}')).toBe(1);
  });

  test('count for the whole network of one IPv6 customer', async () => {
    live = await LiveFixture.start({
      live: { maxUnauthenticatedConnections: 8 },
      http: { trustedProxies: ['127.0.0.0/8'] },
    });
    const from = (address: string): Promise<LiveClient> =>
      live!.connect(live!.urls[0], { headers: { 'x-forwarded-for': address } });
    await from('2001:db8:1:2::1');
    await from('2001:db8:1:2:ffff::2');
    await expect(from('2001:db8:1:2:3:4:5:6')).rejects.toThrow('503');
    await from('2001:db8:1:3::1');
  });

  test('are not believed about where they come from without a trusted proxy', async () => {
    live = await LiveFixture.start({ live: { maxUnauthenticatedConnections: 4 } });
    await live.connect(live.urls[0], { headers: { 'x-forwarded-for': '203.0.113.7' } });
    await expect(live.connect(live.urls[0], { headers: { 'x-forwarded-for': '203.0.113.8' } })).rejects.toThrow('503');
  });
});

describe('the end', () => {
  test('of the server is told to everybody with 1001, and it waits for nobody longer than it may', async () => {
    live = await LiveFixture.start({ http: { stopDrainTimeoutMs: 3_000 } });
    const clients = await Promise.all(live.urls.map((url) => live!.follow(url)));
    const hanging = await live.follow(live.urls[0]);
    hanging.pause();
    const { server } = live;
    live = null;
    const startedAt = performance.now();
    await server.stop();
    expect(performance.now() - startedAt).toBeLessThan(within(9_000));
    for (const client of clients) {
      expect(await client.ended()).toBe(1001);
      expect(client.of('session.ended')).toHaveLength(1);
    }
    hanging.resume();
    await hanging.ended();
  });
});
