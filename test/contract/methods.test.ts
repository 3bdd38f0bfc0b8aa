import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectResponseHeaders, request } from '../http/wire.ts';
import { TestServer, type TestGroup } from '../support/server.ts';

describe('a method that a route does not have', () => {
  let server: TestServer;
  let group: TestGroup;
  beforeAll(async () => {
    server = await TestServer.start();
    group = await server.createGroup();
  });
  afterAll(() => server.stop());

  test.each([
    ['/v1/webhooks/TOKEN', 'POST, OPTIONS', ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND']],
    ['/v1/webhooks/TOKEN/', 'POST, OPTIONS', ['GET']],
    ['/v1/webhooks/TOKEN/reverse', 'GET, HEAD, POST, OPTIONS', ['PUT', 'PATCH', 'DELETE']],
    ['/v1/webhooks/TOKEN/reverse/', 'GET, HEAD, POST, OPTIONS', ['PUT']],
    ['/v1/webhooks/TOKEN/reverse/1', 'GET, HEAD, PATCH, DELETE, OPTIONS', ['PUT', 'POST', 'TRACE']],
    ['/v1/webhooks/TOKEN/reverse/1/', 'GET, HEAD, PATCH, DELETE, OPTIONS', ['PUT']],
    ['/v1/webhooks/TOKEN/reverse/1/ping', 'POST, OPTIONS', ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']],
    ['/v1/webhooks/TOKEN/reverse/1/deliveries', 'GET, HEAD, OPTIONS', ['POST', 'PUT', 'PATCH', 'DELETE']],
    ['/v1/webhooks/TOKEN/reverse/1/redeliver/', 'POST, OPTIONS', ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']],
    ['/v1/status', 'GET, HEAD, OPTIONS', ['POST', 'DELETE']],
    ['/v1/ready', 'GET, HEAD, OPTIONS', ['POST', 'PUT']],
    ['/v1/about', 'GET, HEAD, OPTIONS', ['POST', 'PATCH']],
  ])('is 405 with Allow: %s', async (path, allow, methods) => {
    for (const method of methods) {
      const answer = await request(server.port, { method, path: path.replace('TOKEN', group.token) });
      expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, allow]);
      expectResponseHeaders(answer);
      const message = `This method is not allowed here, only ${answer.headers.get('allow')}`;
      expect(answer.body).toEqual(method === 'HEAD' ? null : { message });
    }
  });

  test.each(['', '/reverse', '/reverse/1', '/reverse/1/ping', '/reverse/1/deliveries', '/reverse/1/redeliver'])(
    'OPTIONS tells what is allowed on %j',
    async (rest) => {
      const path = `/v1/webhooks/${group.token}${rest}`;
      const headers = { origin: 'https://app.example', 'access-control-request-method': 'POST' };
      const answer = await request(server.port, { method: 'OPTIONS', path, headers });
      expect([answer.status, answer.text]).toEqual([204, '']);
      expect(answer.headers.get('allow')).toContain('OPTIONS');
      expect(answer.headers.has('access-control-allow-origin')).toBe(false);
    },
  );

  test('HEAD answers as GET, with the length of its body and without it', async () => {
    for (const path of [`/v1/webhooks/${group.token}/reverse`, '/v1/status', '/v1/about', '/v1/ready']) {
      const get = await request(server.port, { method: 'GET', path });
      const head = await request(server.port, { method: 'HEAD', path });
      expect([head.status, head.text]).toEqual([200, '']);
      expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'));
      expectResponseHeaders(head);
    }
  });

  test('says nothing of the software', async () => {
    const answer = await request(server.port, { method: 'GET', path: '/v1/status' });
    expect(answer.headers.has('x-powered-by')).toBe(false);
    expect(answer.headers.has('server')).toBe(false);
    expect(answer.headers.has('etag')).toBe(false);
  });
});

describe('http.cors', () => {
  const preflight = { origin: 'https://app.example', 'access-control-request-method': 'POST' };

  test('lets the listed origins in, and no others', async () => {
    const server = await TestServer.start({ http: { cors: ['https://app.example', 'https://b.example'] } });
    const group = await server.createGroup();
    try {
      const path = `/v1/webhooks/${group.token}`;
      const headers = { ...preflight, 'access-control-request-headers': 'content-type,idempotency-key' };
      const answer = await request(server.port, { method: 'OPTIONS', path, headers });
      expect(answer.status).toBe(204);
      expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.example');
      expect(answer.headers.get('access-control-allow-methods')).toBe('GET,HEAD,POST,PATCH,DELETE');
      expect(answer.headers.get('access-control-allow-headers')).toBe('content-type,idempotency-key');

      const origin = { origin: 'https://b.example', 'content-type': 'application/json' };
      const posted = await request(server.port, { path, headers: origin, body: '{"text":"x"}' });
      expect([posted.status, posted.headers.get('access-control-allow-origin')]).toEqual([200, 'https://b.example']);

      const other = await request(server.port, { path, headers: { origin: 'https://evil.example' }, body: 'x' });
      expect(other.headers.has('access-control-allow-origin')).toBe(false);
    } finally {
      await server.stop();
    }
  });

  test('lets everybody in with "*", and lets them read errors', async () => {
    const server = await TestServer.start({ http: { cors: ['*'] } });
    try {
      const path = `/v1/webhooks/${'x'.repeat(43)}`;
      const answer = await request(server.port, { path, headers: preflight, body: 'x' });
      expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([404, '*']);
      const options = await request(server.port, { method: 'OPTIONS', path, headers: preflight });
      expect([options.status, options.headers.get('access-control-allow-origin')]).toEqual([204, '*']);
    } finally {
      await server.stop();
    }
  });
});
