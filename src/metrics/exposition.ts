import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { KlatchError } from '../errors.ts';
import { jsonResponseHeaders } from '../http/responses.ts';
import type { Log } from '../log.ts';
import { createRegistry, type MetricFamily } from './family.ts';

const PATH = '/metrics';

/**
 * Answers `GET /metrics` and nothing else. Concurrent scrapes share one fetch of the values. `familiesOnceStarted` is
 * null while the server is starting.
 */
export function metricsListener(familiesOnceStarted: readonly MetricFamily[] | null, log: Log): RequestListener {
  if (familiesOnceStarted === null) return (req, res) => refuse(req, res, new KlatchError('starting'));
  const registry = createRegistry(familiesOnceStarted);
  let rendering: Promise<string> | null = null;
  return (req, res) => {
    if (!isScrape(req)) {
      refuse(req, res, new KlatchError('not_found'));
      return;
    }
    rendering ??= registry.metrics().finally(() => {
      rendering = null;
    });
    rendering.then(
      (text) => send(req, res, { status: 200, text, headers: { 'content-type': registry.contentType } }),
      (error: unknown) => {
        log.error('the metrics cannot be shown', { error });
        refuse(req, res, new KlatchError('internal', { cause: error }));
      },
    );
  };
}

function isScrape({ method, url = '' }: IncomingMessage): boolean {
  return (method === 'GET' || method === 'HEAD') && url.split('?')[0] === PATH;
}

function refuse(req: IncomingMessage, res: ServerResponse, error: KlatchError): void {
  const { status, retryAfterS, code } = error;
  const message = code === 'not_found' ? `There is nothing here but GET ${PATH}` : error.message;
  const headers = retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) };
  send(req, res, { status, text: JSON.stringify({ message }), headers });
}

function send(
  req: IncomingMessage,
  res: ServerResponse,
  answer: { status: number; text: string; headers: Readonly<Record<string, string>> },
): void {
  const { status, text, headers } = answer;
  res.writeHead(status, { ...jsonResponseHeaders, 'content-length': Buffer.byteLength(text), ...headers });
  res.end(req.method === 'HEAD' ? undefined : text);
}
