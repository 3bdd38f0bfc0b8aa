import type { Config } from '../config/config.ts';
import { error, ok, warning, type CheckResult } from './finding.ts';

const ABOUT_REQUEST_TIMEOUT_MS = 4_000;
const MAX_ANSWER_BYTES = 64 * 1024;
/** A server that listens on one of these wildcards listens on every address of the machine, so also on the loopback. */
const LOOPBACK_BY_WILDCARD: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '[::1]'],
]);

/** The answer of `/v1/about`, or a short reason why there is none. */
type AboutAnswer = { readonly text: string } | { readonly problem: string };

/**
 * Asks the server for `/v1/about` where it listens and at its public address, which has to give the same answer. `port`
 * is the port that the server actually listens on.
 */
export async function checkBaseUri({ http }: Config, port: number): Promise<CheckResult> {
  const host =
    LOOPBACK_BY_WILDCARD.get(http.interface) ?? (http.interface.includes(':') ? `[${http.interface}]` : http.interface);
  const listenAddress = `${http.interface}:${port}`;
  const [here, there] = await Promise.all([readAbout(`http://${host}:${port}`), readAbout(http.baseUri)]);
  if ('problem' in here) {
    const todo = "Look into the server's log; if it hangs, restart it.";
    return error(`the server does not answer HTTP at ${listenAddress}: ${here.problem}`, todo);
  }
  if ('problem' in there) {
    const todo =
      'Look at the proxy, its certificate and the name; callers of webhooks use this address. If only this machine cannot reach it, all is well.';
    return warning(`${http.baseUri} does not lead to this server: ${there.problem}`, todo);
  }
  if (here.text !== there.text) {
    const todo = 'Lead the proxy to this server, or set http.base-uri to the address that leads to it.';
    return warning(`at ${http.baseUri} something else answers than this server`, todo);
  }
  return ok(`${http.baseUri} leads to this server`);
}

/** Sends one GET to `/v1/about`, which follows no redirect and is bounded in time and size. */
async function readAbout(base: string): Promise<AboutAnswer> {
  try {
    const signal = AbortSignal.timeout(ABOUT_REQUEST_TIMEOUT_MS);
    const response = await fetch(`${base}/v1/about`, { redirect: 'manual', signal });
    if (response.status !== 200) {
      await response.body?.cancel();
      return { problem: `it answered ${response.status}` };
    }
    return { text: await readBounded(response) };
  } catch (cause) {
    return { problem: fetchErrorReason(cause) };
  }
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error('its answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** A short reason for an error of fetch: the code of the network's error, which fetch hides in the error's cause. */
function fetchErrorReason(error: unknown): string {
  if (!(error instanceof Error)) return 'no answer';
  if (error.name === 'TimeoutError') return `no answer within ${ABOUT_REQUEST_TIMEOUT_MS / 1_000} s`;
  const { cause } = error as { cause?: { code?: unknown } };
  return typeof cause?.code === 'string' ? cause.code : error.message;
}
