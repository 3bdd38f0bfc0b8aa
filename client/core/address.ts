import { ConnectionError, ProtocolError } from './chat-error.ts';
import { arrayOf, DecodeError, objectWithAtLeast, string, type Decoder } from './decode.ts';

const ABOUT_REQUEST_TIMEOUT_MS = 10_000;
const MAX_ABOUT_RESPONSE_BYTES = 256 * 1024;
const MAX_ENDPOINTS = 100;
const MAX_ENDPOINT_LENGTH = 2_048;
const LIVE_PATH = '/v1/live';
const LOOPBACK_HOST_PATTERN = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** The address at which a server accepts clients. */
export interface ServerAddress {
  /** The URL to connect to: ws://, wss://, tcp:// or tls://. */
  readonly url: string;
  /** `frames`: WebSocket; `lines`: one JSON text per line. */
  readonly transport: 'frames' | 'lines';
  readonly usesTls: boolean;
  /** Whether the connection stays on this machine, so that no network carries its bytes. */
  readonly isLoopback: boolean;
}

const decodeEndpoints: Decoder<string[]> = (value) => {
  const endpoints = arrayOf(string)(value);
  const isBounded = endpoints.length <= MAX_ENDPOINTS && endpoints.every(({ length }) => length <= MAX_ENDPOINT_LENGTH);
  if (isBounded) return endpoints;
  throw new DecodeError(`at most ${MAX_ENDPOINTS} texts of at most ${MAX_ENDPOINT_LENGTH} characters`);
};
const decodeAbout = objectWithAtLeast({ endpoints: decodeEndpoints });

/** Reads ws://, wss://, tcp:// and tls:// addresses; null for anything else. */
function parseLiveEndpoint(text: string): ServerAddress | null {
  const url = parseUrlRefusingCredentialsAndQuery(text);
  if (url === null || !['ws:', 'wss:', 'tcp:', 'tls:'].includes(url.protocol)) return null;
  const transport = url.protocol.startsWith('ws') ? 'frames' : 'lines';
  if (transport === 'lines' && (url.port === '' || !['', '/'].includes(url.pathname))) return null;
  const usesTls = url.protocol === 'wss:' || url.protocol === 'tls:';
  return { url: url.href, transport, usesTls, isLoopback: LOOPBACK_HOST_PATTERN.test(url.hostname) };
}

/**
 * What is wrong with an address that a person typed, as the rest of a sentence; null: the client can try the address.
 */
export function addressProblem(text: string): string | null {
  const url = parseUrlRefusingCredentialsAndQuery(text);
  if (url !== null && (url.protocol === 'http:' || url.protocol === 'https:')) return null;
  if (parseLiveEndpoint(text) !== null) return null;
  return 'give the server as ws://, wss://, tcp:// or tls:// with its host and port, or as http:// or https://';
}

/**
 * Finds the address at which a server accepts clients, from the address that a person typed.
 * - ws://, wss://, tcp:// and tls://: the typed address itself.
 * - http:// and https://: asks the server (/v1/about). With https:// it uses only encrypted endpoints.
 * - If the server announces no usable endpoint: its /v1/live.
 * Throws ConnectionError and ProtocolError.
 */
export async function discoverServerAddress(text: string): Promise<ServerAddress> {
  const problem = addressProblem(text);
  if (problem !== null) throw new ProtocolError(problem);
  const endpoint = parseLiveEndpoint(text);
  if (endpoint !== null) return endpoint;
  const baseUrl = text.replace(/\/+$/, '');
  const announced = (await fetchAnnouncedEndpoints(baseUrl)).flatMap((each) => parseLiveEndpoint(each) ?? []);
  const usable = baseUrl.startsWith('https:') ? announced.filter(({ usesTls }) => usesTls) : announced;
  const chosen = usable.find(({ transport }) => transport === 'frames') ?? usable[0];
  return chosen ?? parseLiveEndpoint(`${baseUrl.replace(/^http/, 'ws')}${LIVE_PATH}`)!;
}

/**
 * The base URL for uploads and downloads, which use HTTP:
 * - of an http or https address: the address itself
 * - of a WebSocket on the HTTP port: its address without the path
 * - of other endpoints: null, because they do not show the HTTP port
 */
export function deriveHttpBaseUrl(httpOrWsLiveUrl: string): string | null {
  const url = parseUrlRefusingCredentialsAndQuery(httpOrWsLiveUrl);
  if (url === null) return null;
  if (url.protocol === 'http:' || url.protocol === 'https:') return httpOrWsLiveUrl.replace(/\/+$/, '');
  if (!url.protocol.startsWith('ws') || !url.pathname.endsWith(LIVE_PATH)) return null;
  return url.href.slice(0, -LIVE_PATH.length).replace(/^ws/, 'http');
}

async function fetchAnnouncedEndpoints(baseUrl: string): Promise<readonly string[]> {
  const signal = AbortSignal.timeout(ABOUT_REQUEST_TIMEOUT_MS);
  let responseText: string;
  try {
    const response = await fetch(`${baseUrl}/v1/about`, { signal, redirect: 'error' });
    responseText = await readBoundedText(response);
    if (!response.ok) {
      throw new ProtocolError(`${baseUrl} is not a Klatch server: it answers ${response.status}; check the address`);
    }
  } catch (cause) {
    if (cause instanceof ProtocolError) throw cause;
    throw new ConnectionError(`${baseUrl} cannot be reached: check the address, and whether the server runs`, {
      cause,
    });
  }
  try {
    return decodeAbout(JSON.parse(responseText)).endpoints;
  } catch (cause) {
    const sentence = `${baseUrl} is not a Klatch server: it does not say where clients connect to; check the address`;
    throw new ProtocolError(sentence, { cause });
  }
}

async function readBoundedText(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return '';
  const decoder = new TextDecoder();
  let textSoFar = '';
  let receivedBytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return textSoFar + decoder.decode();
      receivedBytes += value.length;
      if (receivedBytes > MAX_ABOUT_RESPONSE_BYTES) {
        throw new ProtocolError('what the server says about itself is too long: check its address');
      }
      textSoFar += decoder.decode(value, { stream: true });
    }
  } finally {
    // `cancel` rejects if the body broke off; `read` has already thrown that error.
    await reader.cancel().catch(() => {});
  }
}

/** Parses an absolute address; null if it has a user, a password, a query or a fragment. */
function parseUrlRefusingCredentialsAndQuery(text: string): URL | null {
  const url = URL.parse(text);
  if (url === null || url.hostname === '' || url.search !== '' || url.hash !== '') return null;
  return url.username === '' && url.password === '' ? url : null;
}
