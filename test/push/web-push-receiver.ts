import { createPublicKey, webcrypto } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { jwtVerify } from 'jose';
import type { WebSubscription } from '../../src/model/device.ts';
import { openAes128gcm, type Browser } from './aes128gcm.ts';
import { Count } from './count.ts';

const { subtle } = webcrypto;

/** A push request, with the message as the browser decrypts it. */
export interface WebPush {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly plain: Buffer;
  readonly body: any; // oxlint-disable-line typescript/no-explicit-any -- tests look into it freely
}

/**
 * Decides about one push: returns a status, or true if it answers the push itself. Otherwise the server answers 201.
 */
export type WebScript = (push: WebPush, res: ServerResponse) => number | true | void;

/**
 * A Web Push service on loopback with browsers of its own. It verifies VAPID, and decrypts messages with the keys of
 * the browsers.
 */
export class WebPushReceiver {
  readonly pushes: WebPush[] = [];
  readonly arrived = new Count();
  /** The reasons for which malformed pushes were refused. */
  readonly faults: string[] = [];
  /** The different `Authorization` headers that arrived. */
  readonly authorizations = new Set<string>();
  script: WebScript = () => {};
  readonly #server: Server;
  readonly #publicKey: string;
  readonly #browsers = new Map<string, Browser>();

  private constructor(publicKey: string, server: Server) {
    this.#publicKey = publicKey;
    this.#server = server;
  }

  /** Starts the service. `publicKey` is the VAPID key to which subscriptions are bound. */
  static async start(publicKey: string): Promise<WebPushReceiver> {
    const server = createServer();
    const receiver = new WebPushReceiver(publicKey, server);
    server.on('request', (req, res) => {
      const chunks: Buffer[] = [];
      req.on('data', (chunk: Buffer) => chunks.push(chunk));
      req.on('error', () => {});
      req.on('end', () => void receiver.#serve(req.url!, req.headers, Buffer.concat(chunks), res));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** A new browser subscribes; its path is `/push/<name>`. */
  async subscribe(name = 'browser-1'): Promise<WebSubscription> {
    const keys = await subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, true, ['deriveBits']);
    const auth = Buffer.from(webcrypto.getRandomValues(new Uint8Array(16)));
    const point = Buffer.from(await subtle.exportKey('raw', keys.publicKey));
    this.#browsers.set(`/push/${name}`, { keys, auth });
    const encoded = { p256dh: point.toString('base64url'), auth: auth.toString('base64url') };
    return { endpoint: `${this.origin}/push/${name}`, keys: encoded };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(path: string, headers: IncomingHttpHeaders, body: Buffer, res: ServerResponse): Promise<void> {
    const browser = this.#browsers.get(path);
    if (browser === undefined) return void res.writeHead(404).end();
    let plain: Buffer;
    try {
      this.#checkHeaders(headers, body);
      await this.#verify(headers.authorization ?? '');
      plain = await openAes128gcm(body, browser);
    } catch (error) {
      this.faults.push((error as Error).message);
      return void res.writeHead(400).end();
    }
    const push = { path, headers, plain, body: JSON.parse(plain.toString('utf8')) as unknown };
    this.pushes.push(push);
    this.arrived.add();
    const verdict = this.script(push, res);
    if (verdict !== true) res.writeHead(verdict ?? 201).end();
  }

  #checkHeaders(headers: IncomingHttpHeaders, body: Buffer): void {
    if (headers['content-encoding'] !== 'aes128gcm') throw new Error('content-encoding');
    if (!/^\d+$/.test(String(headers['ttl']))) throw new Error('TTL');
    if (!['very-low', 'low', 'normal', 'high'].includes(String(headers['urgency']))) throw new Error('Urgency');
    if (!/^[A-Za-z0-9_-]{1,32}$/.test(String(headers['topic']))) throw new Error('Topic');
    if (body.length > 4_096) throw new Error('more than 4,096 bytes');
  }

  /** Verifies `vapid t=<JWT>, k=<key>` (RFC 8292), which must be signed with the key of the subscription. */
  async #verify(authorization: string): Promise<void> {
    const [, token, key] = /^vapid t=([^,]+), k=([^,]+)$/.exec(authorization) ?? [];
    if (key !== this.#publicKey) throw new Error('another VAPID key');
    this.authorizations.add(authorization);
    const point = Buffer.from(key, 'base64url');
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'));
    const publicKey = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x: x!, y: y! }, format: 'jwk' });
    const { payload } = await jwtVerify(token!, publicKey, { algorithms: ['ES256'], audience: this.origin });
    if (payload.exp! > Date.now() / 1000 + 24 * 3600) throw new Error('VAPID for more than a day');
    if (!/^(?:mailto:|https:)/.test(String(payload.sub))) throw new Error('sub');
  }
}
