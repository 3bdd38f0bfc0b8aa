import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { jwtVerify } from 'jose';
import type { TestAccount } from './keys.ts';
import { Count } from './count.ts';

/** A push request as it arrived, with the project in its path. */
export interface FcmPush {
  readonly project: string;
  readonly message: any; // oxlint-disable-line typescript/no-explicit-any -- tests look into it freely
  readonly bytes: number;
}

/**
 * Decides about one request. True: the function answers it, or the request gets no answer. Otherwise the server answers
 * it.
 */
export type FcmScript = (push: FcmPush, res: ServerResponse) => boolean | void | Promise<boolean | void>;

/** An error in the form of Google's services. */
export function googleError(status: number, word: string, details: object[] = []): [number, string] {
  return [status, JSON.stringify({ error: { code: status, message: 'words', status: word, details } })];
}

/** An error in FCM's own form. */
export function fcmError(status: number, general: string, errorCode: string): [number, string] {
  const type = 'type.googleapis.com/google.firebase.fcm.v1.FcmError';
  return googleError(status, general, [{ '@type': type, errorCode }]);
}

/**
 * Google's token endpoint and FCM HTTP v1 on loopback. It issues access tokens for assertions whose signature is valid.
 * It accepts pushes with a valid token, only for the project of the token.
 */
export class FcmServer {
  readonly pushes: FcmPush[] = [];
  /** The claims of the assertions that were exchanged for tokens. */
  readonly assertions: Record<string, unknown>[] = [];
  readonly arrived = new Count();
  /** Counts the requests for a token, with any result. */
  readonly asked = new Count();
  /** Answers pushes in place of the server. */
  script: FcmScript = () => false;
  tokenScript: (res: ServerResponse) => boolean | void | Promise<boolean | void> = () => false;
  expiresInS = 3600;
  readonly #accounts: readonly TestAccount[];
  readonly #server: Server;
  readonly #good = new Map<string, string>();

  private constructor(accounts: readonly TestAccount[], server: Server) {
    this.#accounts = accounts;
    this.#server = server;
  }

  static async start(accounts: readonly TestAccount[], port = 0): Promise<FcmServer> {
    const server = createServer();
    const fcm = new FcmServer(accounts, server);
    server.on('request', (req, res) => void fcm.#serve(req, res));
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    return fcm;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get tokenEndpoint(): string {
    return `${this.endpoint}/token`;
  }

  /** Refuses every issued access token from now on. */
  revokeTokens(): void {
    this.#good.clear();
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of req) chunks.push(chunk as Buffer);
    } catch {
      // The sender closed the connection during the request.
      return;
    }
    const body = Buffer.concat(chunks);
    const [status, text] = req.url === '/token' ? await this.#token(body, res) : await this.#push(req, body, res);
    if (status !== 0) res.writeHead(status, { 'content-type': 'application/json' }).end(text);
  }

  async #token(body: Buffer, res: ServerResponse): Promise<[number, string]> {
    this.asked.add();
    if ((await this.tokenScript(res)) === true) return [0, ''];
    const form = new URLSearchParams(body.toString('utf8'));
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') return [400, '{}'];
    for (const { publicKey, clientEmail, projectId } of this.#accounts) {
      try {
        const options = { algorithms: ['RS256'], issuer: clientEmail, audience: this.tokenEndpoint, maxTokenAge: 60 };
        const { payload } = await jwtVerify(form.get('assertion') ?? '', publicKey, options);
        if (payload['scope'] !== 'https://www.googleapis.com/auth/firebase.messaging') return [400, '{}'];
        this.assertions.push(payload);
        const token = `ya29.${randomBytes(24).toString('base64url')}`;
        this.#good.set(token, projectId);
        return [200, JSON.stringify({ access_token: token, expires_in: this.expiresInS, token_type: 'Bearer' })];
      } catch {
        // The signature is not of this account; another one may have signed the assertion.
      }
    }
    return [400, JSON.stringify({ error: 'invalid_grant', error_description: 'Invalid JWT Signature.' })];
  }

  async #push(req: IncomingMessage, body: Buffer, res: ServerResponse): Promise<[number, string]> {
    const [, project] = /^\/v1\/projects\/([^/]+)\/messages:send$/.exec(req.url ?? '') ?? [];
    if (project === undefined || req.method !== 'POST') return [404, '<html>not here</html>'];
    const [, token] = /^Bearer (.+)$/.exec(req.headers.authorization ?? '') ?? [];
    if (token === undefined || !this.#good.has(token)) return googleError(401, 'UNAUTHENTICATED');
    if (this.#good.get(token) !== project) return googleError(403, 'PERMISSION_DENIED');
    const { message } = JSON.parse(body.toString('utf8')) as { message: object };
    const push = { project, message, bytes: body.length };
    this.pushes.push(push);
    this.arrived.add();
    if ((await this.script(push, res)) === true) return [0, ''];
    return [200, JSON.stringify({ name: `projects/${project}/messages/${this.pushes.length}` })];
  }
}
