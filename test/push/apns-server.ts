import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { jwtVerify } from 'jose';
import type { TestAppleKey, TestTls } from './keys.ts';
import { Count } from './count.ts';

/** A push request as it arrived. */
export interface ApnsPush {
  readonly token: string;
  readonly headers: IncomingHttpHeaders;
  readonly raw: Buffer;
  readonly body: any; // oxlint-disable-line typescript/no-explicit-any -- tests look into it freely
  readonly session: ServerHttp2Session;
}

/**
 * Decides about one push. It returns a status with Apple's reason, or true if it answers the push itself. Undefined:
 * the server accepts the push.
 */
export type ApnsScript = (push: ApnsPush, stream: ServerHttp2Stream) => [number, string] | true | undefined;

/** The server's port and keys, and the number of concurrent requests on a connection. */
export interface ApnsOptions {
  readonly tls: TestTls;
  readonly keys: readonly TestAppleKey[];
  readonly topics: readonly string[];
  readonly maxStreams?: number;
  readonly port?: number;
}

/**
 * Apple's push service on loopback: HTTP/2 with TLS. It verifies provider tokens, and accepts payloads of at most 4,096
 * bytes.
 */
export class ApnsServer {
  readonly pushes: ApnsPush[] = [];
  readonly arrived = new Count();
  readonly sessions = new Set<ServerHttp2Session>();
  /** The number of connections that were opened so far. */
  connections = 0;
  /** The largest number of concurrent requests so far. */
  mostAtOnce = 0;
  script: ApnsScript = () => undefined;
  /** The different provider tokens that arrived. */
  readonly tokens = new Set<string>();
  readonly #options: ApnsOptions;
  readonly #server: Http2SecureServer;
  #open = 0;

  private constructor(options: ApnsOptions) {
    this.#options = options;
    const { tls, maxStreams = 1_000 } = options;
    const settings = { maxConcurrentStreams: maxStreams };
    this.#server = createSecureServer({ cert: tls.cert, key: tls.key, settings });
    this.#server.on('session', (session) => {
      this.connections += 1;
      this.sessions.add(session);
      session.once('close', () => this.sessions.delete(session));
      session.on('error', () => {});
    });
    this.#server.on('stream', (stream, headers) => void this.#serve(stream, headers));
    this.#server.on('sessionError', () => {});
  }

  static async start(options: ApnsOptions): Promise<ApnsServer> {
    const server = new ApnsServer(options);
    await new Promise<void>((resolve) => server.#server.listen(options.port ?? 0, '127.0.0.1', resolve));
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get endpoint(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  /** Sends GOAWAY on all connections, as Apple does; `code` other than 0 ends them at once. */
  goAway(code: number = constants.NGHTTP2_NO_ERROR, lastStreamId?: number): void {
    const words = Buffer.from('{"reason":"Shutdown"}');
    for (const session of this.sessions) session.goaway(code, lastStreamId, words);
  }

  /** Cuts all connections without GOAWAY. */
  drop(): void {
    for (const session of this.sessions) session.socket.destroy();
  }

  async stop(): Promise<void> {
    for (const session of this.sessions) session.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    this.#open += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#open);
    stream.once('close', () => (this.#open -= 1));
    stream.on('error', () => {});
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of stream) chunks.push(chunk as Buffer);
    } catch {
      // The sender closed the connection during the request.
      return;
    }
    const raw = Buffer.concat(chunks);
    const verdict = (await this.#judge(headers, raw)) ?? this.#take(stream, headers, raw);
    if (verdict === true || stream.destroyed) return;
    const [status, reason] = verdict ?? [200, ''];
    stream.respond({ ':status': status, 'apns-id': '00000000-0000-0000-0000-000000000000' });
    stream.end(reason === '' ? '' : JSON.stringify({ reason }));
  }

  #take(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, raw: Buffer): [number, string] | true | undefined {
    const token = headers[':path']!.slice('/3/device/'.length);
    const body: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(raw));
    const push = { token, headers, raw, body, session: stream.session as ServerHttp2Session };
    this.pushes.push(push);
    this.arrived.add();
    return this.script(push, stream);
  }

  /** Returns a refusal of Apple that does not depend on the device; null: there is no reason for one. */
  async #judge(headers: IncomingHttpHeaders, raw: Buffer): Promise<[number, string] | null> {
    if (!/^\/3\/device\/[0-9a-f]+$/i.test(headers[':path'] ?? '')) return [404, 'BadPath'];
    if (headers[':method'] !== 'POST') return [405, 'MethodNotAllowed'];
    const [, token] = /^bearer (.+)$/.exec(headers.authorization ?? '') ?? [];
    if (token === undefined) return [403, 'MissingProviderToken'];
    if (!(await this.#isGood(token))) return [403, 'InvalidProviderToken'];
    this.tokens.add(token);
    if (!this.#options.topics.includes(String(headers['apns-topic']))) return [400, 'TopicDisallowed'];
    if (String(headers['apns-collapse-id'] ?? '').length > 64) return [400, 'BadCollapseId'];
    if (!['5', '10'].includes(String(headers['apns-priority']))) return [400, 'BadPriority'];
    if (headers['apns-push-type'] !== 'alert') return [400, 'InvalidPushType'];
    return raw.length > 4_096 ? [413, 'PayloadTooLarge'] : null;
  }

  async #isGood(token: string): Promise<boolean> {
    for (const { publicKey, teamId, keyId } of this.#options.keys) {
      try {
        const options = { algorithms: ['ES256'], issuer: teamId, maxTokenAge: 3600 };
        const { protectedHeader } = await jwtVerify(token, publicKey, options);
        if (protectedHeader.kid === keyId) return true;
      } catch {
        // The signature is not of this key; another key may have signed the token.
      }
    }
    return false;
  }
}
