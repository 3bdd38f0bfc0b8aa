import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start({ projectName: 'Chat of <b>Ünit</b>' });
  await server.operate('accounts.create', { nick: 'alice' });
});
afterAll(() => server.stop());

describe('a sign-in link in a browser', () => {
  test('shows what to do with it, and is good afterwards', async () => {
    const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'alice' });
    const opened = link.replace('http://klatch.example', server.url);
    for (const path of [opened, opened.replace('#', '/#'), `${server.url}/v1/sign-in?anything`]) {
      const response = await fetch(path);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(response.headers.get('referrer-policy')).toBe('no-referrer');
      expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
      const html = await response.text();
      expect(html).toContain('<h1>Sign in</h1>');
      expect(html).toContain('Chat of &lt;b&gt;Ünit&lt;/b&gt;');
      expect(html).not.toContain('kll_');
    }
    expect(await callAs(server, null, 'auth.verify', { link })).toMatchObject({ status: 'signed_in' });
  });

  test('is only looked at', async () => {
    const head = await fetch(`${server.url}/v1/sign-in`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const post = await fetch(`${server.url}/v1/sign-in`, { method: 'POST' });
    expect(post.status).toBe(405);
    expect(post.headers.get('allow')).toBe('GET, HEAD, OPTIONS');
    expect((await fetch(`${server.url}/v1/sign-in/kll_x`)).status).toBe(404);
  });
});
