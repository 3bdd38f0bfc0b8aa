import { request, type WireRequest, type WireResponse } from '../wire.ts';
import type { TestServer } from '../../support/server.ts';

/** The origin of the `http.base-uri` that tests configure. */
export const OWN_ORIGIN = 'http://klatch.example';

/** A browser as the server sees it. It keeps the session cookie, and its requests say which page sends them. */
export class TestBrowser {
  /** `name=value` of the session cookie; null: there is none, or it has expired. */
  cookie: string | null = null;
  /** The attributes of the last cookie that the server set. */
  attributes: readonly string[] = [];
  readonly #server: TestServer;

  constructor(server: TestServer) {
    this.#server = server;
  }

  /** Creates a browser with a session from a sign-in link of the administrator. */
  static async signedIn(server: TestServer, nick: string): Promise<TestBrowser> {
    const browser = new TestBrowser(server);
    const { link } = await server.operate<{ link: string }>('accounts.invite', { user: nick });
    const { status, text } = await browser.send({ path: '/v1/session', body: JSON.stringify({ link }) });
    if (status !== 200) throw new Error(`not signed in: ${status} ${text}`);
    return browser;
  }

  /** Sends a request as a page of the server's own origin does. The given headers replace its headers. */
  async send(asked: WireRequest): Promise<WireResponse> {
    const { method = 'POST', body } = asked;
    const headers: Record<string, string> = {
      ...(method === 'GET' || method === 'HEAD' ? {} : { origin: OWN_ORIGIN }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(this.cookie === null ? {} : { cookie: this.cookie }),
      ...asked.headers,
    };
    const response = await request(this.#server.port, { ...asked, method, headers });
    const set = response.headers.get('set-cookie');
    if (set !== undefined) {
      const [pair, ...attributes] = set.split('; ');
      this.attributes = attributes;
      this.cookie = attributes.includes('Max-Age=0') ? null : pair!;
    }
    return response;
  }

  call(operation: string, input: object = {}): Promise<WireResponse> {
    return this.send({ path: `/v1/api/${operation}`, body: JSON.stringify(input) });
  }
}
