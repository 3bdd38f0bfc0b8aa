import { randomBytes } from 'node:crypto';
import { Agent, request, type Dispatcher } from 'undici';
import * as z from 'zod';
import { ProviderError, type CodeProvider, type OutgoingCode } from './provider.ts';

const DEFAULT_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 3_000;
const MAX_RESPONSE_BYTES = 16 * 1024;
const MAX_CONNECTIONS = 8;
/** The gate's reference of a code becomes a part of a path: visible ASCII, but neither `.` nor `..`. */
const CODE_REFERENCE_PATTERN = /^(?!\.{1,2}$)[\x21-\x7e]{1,512}$/;
const gatewayResponseSchema = z.object({ $type: z.string().max(100), hash: z.string().optional() });

/** An answer of the activation gate. */
interface CodeGatewayResponse {
  readonly status: number;
  /** The answer's `$type`; null: the answer is not one of the gate's. */
  readonly type: string | null;
  readonly codeReference: string | null;
}

/** The activation gate, which sends codes to telephones and checks them itself. */
export class PhoneCodeGateway implements CodeProvider {
  readonly name = 'gate';
  readonly kind = 'phone';
  readonly #uri: string;
  readonly #authToken: string;
  readonly #userAgent: string;
  readonly #timeoutMs: number;
  /** Follows no redirect: the token is for this address and no other. */
  readonly #agent: Agent;

  constructor(
    { uri, authToken }: { uri: string; authToken: string },
    options: { userAgent: string; timeoutMs?: number },
  ) {
    this.#uri = uri;
    this.#authToken = authToken;
    this.#userAgent = options.userAgent;
    this.#timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#agent = new Agent({
      connections: MAX_CONNECTIONS,
      connect: { timeout: CONNECT_TIMEOUT_MS },
      maxHeaderSize: 16 * 1024,
    });
  }

  /**
   * Asks the gate about a code that does not exist. Any answer shows that the gate works, except a redirect, a refused
   * token or a proxy's failure.
   */
  async probe(): Promise<void> {
    await this.#validate(null, '000000');
  }

  async send({ address, code }: OutgoingCode): Promise<string> {
    const body = JSON.stringify({ phone: Number(address.slice(1)), code });
    const { status, type, codeReference: hash } = await this.#request('POST', '/v1/codes/send', body);
    if (type === 'CodeHash' && hash !== null && CODE_REFERENCE_PATTERN.test(hash)) return hash;
    const detail = `status ${status}, ${type ?? 'no type'}`;
    if (type === 'BadRequest') throw new ProviderError('address', detail);
    throw new ProviderError(type === null || type === 'CodeHash' ? 'answer' : 'refused', detail);
  }

  readonly verifyCode = async (reference: string | null, code: string): Promise<boolean> => {
    const { status, type } = await this.#validate(reference, code);
    if (type === null && reference !== null) throw new ProviderError('answer', `status ${status}, no type`);
    if (type === 'InternalError') throw new ProviderError('refused', `status ${status}, ${type}`);
    return reference !== null && type === 'Validated';
  };

  /** Stops the provider: requests under way fail as if the gate had closed the connection. */
  async stop(): Promise<void> {
    await this.#agent.destroy();
  }

  #validate(reference: string | null, code: string): Promise<CodeGatewayResponse> {
    const encodedReference = encodeURIComponent(reference ?? randomBytes(16).toString('hex'));
    return this.#request('GET', `/v1/codes/validate/${encodedReference}?code=${encodeURIComponent(code)}`);
  }

  async #request(
    method: Dispatcher.HttpMethod,
    path: string,
    body: string | null = null,
  ): Promise<CodeGatewayResponse> {
    const headers = {
      'x-auth-token': this.#authToken,
      accept: 'application/json',
      'user-agent': this.#userAgent,
      ...(body === null ? {} : { 'content-type': 'application/json' }),
    };
    const signal = AbortSignal.timeout(this.#timeoutMs);
    try {
      const answer = await request(this.#uri + path, { method, headers, body, signal, dispatcher: this.#agent });
      const text = await readBounded(answer.body);
      return toCodeGatewayResponse(answer.statusCode, text);
    } catch (error) {
      throw toProviderError(error);
    }
  }
}

async function readBounded(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let receivedBytes = 0;
  for await (const chunk of body) {
    receivedBytes += chunk.length;
    // The throw leaves the loop, which destroys the body and with it the connection.
    if (receivedBytes > MAX_RESPONSE_BYTES) throw new ProviderError('answer', `more than ${MAX_RESPONSE_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function toCodeGatewayResponse(status: number, text: string): CodeGatewayResponse {
  if (status >= 300 && status < 400) throw new ProviderError('answer', `status ${status}, a redirect`);
  if (status === 401 || status === 403) throw new ProviderError('login', `status ${status}`);
  const { type = null, hash = null } = parseTypeAndHash(text);
  // A failing gate answers with such a status whether a code exists or not. Both cases have to end alike, since a
  // difference would reveal who has an account.
  if (type === null && (status === 429 || status >= 500)) throw new ProviderError('refused', `status ${status}`);
  return { status, type, codeReference: hash };
}

function parseTypeAndHash(text: string): { type?: string; hash?: string | undefined } {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // An answer that is not JSON has no `$type`; the calling code decides what that means.
    return {};
  }
  const parsed = gatewayResponseSchema.safeParse(json);
  // The type goes into the log, so it must be a name, and not any text that the gate sends.
  if (!parsed.success || !/^\w{1,50}$/.test(parsed.data.$type)) return {};
  return { type: parsed.data.$type, hash: parsed.data.hash };
}

/** Errors of sockets may name hosts, so the provider's error gets only their code. */
function toProviderError(error: unknown): ProviderError {
  if (error instanceof ProviderError) return error;
  const { name = '', code = '' } = error as { name?: string; code?: unknown };
  if (name === 'TimeoutError' || /TIMEOUT|ETIMEDOUT/.test(String(code))) return new ProviderError('timeout');
  const text = typeof code === 'string' && code !== '' ? code : name;
  return new ProviderError(/CERT|TLS|SSL|SELF_SIGNED/.test(text) ? 'tls' : 'connection', text);
}
