import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as the activation gate received it. */
export interface GateRequest {
  readonly method: string;
  readonly url: string;
  readonly token: string | undefined;
  readonly body: any; // oxlint-disable-line typescript/no-explicit-any -- tests compare it whole
}

type Handler = (request: GateRequest, res: ServerResponse) => void;

/**
 * An activation gate (the service that sends codes) for tests. It stores the codes of its requests, and checks them.
 */
export class TestGate {
  readonly requests: GateRequest[] = [];
  /** The codes that telephones got, by number. */
  readonly codes = new Map<number, string>();
  /** Replaces the gate's own answer, if it is set. */
  handle: Handler | null = null;
  readonly #byHash = new Map<string, string>();
  readonly #server: Server;
  readonly #waiting = new Set<() => void>();

  private constructor() {
    this.#server = createServer((req, res) => void this.#serve(req, res));
  }

  static async start(): Promise<TestGate> {
    const gate = new TestGate();
    gate.#server.listen(0, '127.0.0.1');
    await once(gate.#server, 'listening');
    return gate;
  }

  get config(): { uri: string; authToken: string } {
    return { uri: `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/gate`, authToken: 'gate-token' };
  }

  /** Resolves with the code of a telephone, as soon as it has one. */
  async codeOf(phone: number): Promise<string> {
    for (;;) {
      const code = this.codes.get(phone);
      if (code !== undefined) return code;
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  /** The requests that asked the gate to send a code. */
  get sent(): readonly GateRequest[] {
    return this.requests.filter(({ url }) => url.endsWith('/send'));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of req.setEncoding('utf8')) text += chunk;
    const token = req.headers['x-auth-token'] as string | undefined;
    const request = { method: req.method!, url: req.url!, token, body: text === '' ? null : JSON.parse(text) };
    this.requests.push(request);
    (this.handle ?? this.answer)(request, res);
  }

  /** The gate's own answer. */
  readonly answer: Handler = ({ method, url, token, body }, res) => {
    if (token !== 'gate-token') return send(res, 403, { $type: 'Forbidden' });
    if (method === 'POST' && url === '/gate/v1/codes/send') {
      const hash = `hash/of ${body.phone}+${this.#byHash.size}`.replaceAll(' ', '_');
      this.#byHash.set(hash, body.code);
      send(res, 200, { $type: 'CodeHash', hash });
      // A telephone gets its code after the gate has answered.
      res.once('close', () => {
        this.codes.set(body.phone, body.code);
        for (const wake of this.#waiting) wake();
        this.#waiting.clear();
      });
      return;
    }
    const { pathname, searchParams } = new URL(url, 'http://gate');
    const hash = decodeURIComponent(pathname.split('/').at(-1)!);
    const code = this.#byHash.get(hash);
    if (code === undefined) return send(res, 200, { $type: 'InvalidHash' });
    send(res, 200, { $type: code === searchParams.get('code') ? 'Validated' : 'InvalidCode' });
  };
}

export function send(res: ServerResponse, status: number, json: object): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
}
