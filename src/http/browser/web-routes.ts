import type { IncomingMessage } from 'node:http';
import { Router, type Request, type RequestHandler, type Response } from 'express';
import type { Config } from '../../config/config.ts';
import { bucketOriginOf } from '../../files/s3/s3-signing.ts';
import type { Log } from '../../log.ts';
import { escapeHtml } from '../invite-page.ts';
import { sendMethodNotAllowed } from '../responses.ts';
import { buildIdOf, readWebFiles, webFileEncodings, type WebFiles } from './web-files.ts';

/**
 * The paths that the browser client has screens for. On every other path a browser gets the same answer as a program.
 */
const PAGE_PATHS = [
  '/',
  '/join',
  '/v1/sign-in',
  /^\/c\/[1-9]\d{0,14}(?:\/[1-9]\d{0,14})?(?:\/(?:about|integration|hooks(?:\/[1-9]\d{0,9})?))?$/,
  /^\/settings(?:\/(?:profile|sessions|app-passwords|devices|bots|webhooks|blocked|appearance|shortcuts|server|people))?$/,
];
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);
const HTML_PATTERN = /(?:^|[,\s])text\/html\s*(?:$|[,;])/i;

/** Headers of every answer of the browser client's routes. */
const COMMON_HEADERS = {
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

/**
 * The policy of the page. It allows no content of other origins, no inline code, and no frame around the page. No text
 * becomes code: the only policy of Trusted Types is for the address of a service worker. If downloads are redirected to
 * the S3 bucket, pictures may come from it.
 */
function contentSecurityPolicy({ s3 }: Config['files']): string {
  const bucket = s3?.downloads === 'redirect' ? ` ${bucketOriginOf(s3)}` : '';
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self' blob:${bucket}`,
    "media-src 'self' blob:",
    "connect-src 'self'",
    "manifest-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types klatch',
  ].join('; ');
}

const SHELL_HEADERS = {
  ...COMMON_HEADERS,
  'content-type': 'text/html; charset=utf-8',
  // The browser revalidates the page each time, since the page names the files of this version.
  'cache-control': 'no-cache',
  vary: 'Accept',
  'x-frame-options': 'DENY',
  'x-robots-tag': 'noindex',
} as const;

/** Sent only on addresses with https or on loopback: on any other address, browsers report this header as an error. */
const OPENER_POLICY = { 'cross-origin-opener-policy': 'same-origin' } as const;

/** The page of the browser client, ready to be sent. */
interface RenderedPage {
  readonly html: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly base: URL;
}

type WebConfig = Pick<Config, 'projectName' | 'http' | 'web' | 'files'>;

/**
 * The browser client: its page at the paths that it has screens for, where `Accept` names text/html, and its files
 * below `/assets`. Serves nothing where `web.enabled` is false, or where a source tree was not built, which is logged.
 */
export function webRoutes(config: WebConfig, log: Log): Router {
  const router = Router({ caseSensitive: true });
  if (!config.web.webClientEnabled) return router;
  const files = readWebFiles();
  if (files === null) {
    log.warn('the browser client is not served: it was not built. Run "npm run web"');
    return router;
  }
  const base = new URL(config.http.baseUri);
  const html = Buffer.from(fillShellHtml(files.shellHtml, config));
  const headers = {
    ...SHELL_HEADERS,
    'content-security-policy': contentSecurityPolicy(config.files),
    ...(isTrustworthy(base) ? OPENER_POLICY : {}),
  };
  for (const path of PAGE_PATHS) router.all(path, pageHandler({ html, headers, base }));
  router.all('/assets/:name', assetHandler(files));
  return router;
}

/** Fills the shell's placeholders. Addresses contain the path of base-uri, since the page may not have `<base>`. */
function fillShellHtml(shellHtml: string, { projectName, http }: WebConfig): string {
  const base = `${http.baseUri}/`;
  const placeholderValues = new Map([
    ['base', base],
    ['path', new URL(base).pathname],
    ['project', projectName],
    ['build', buildIdOf(shellHtml)],
  ]);
  return shellHtml.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => escapeHtml(placeholderValues.get(name)!));
}

function pageHandler({ html, headers, base }: RenderedPage): RequestHandler {
  return (req, res, next) => {
    if (!isGetOrHead(req) || !HTML_PATTERN.test(req.headers.accept ?? '')) {
      next();
      return;
    }
    if (isOtherLoopbackName(req.headers.host, base)) {
      // Redirects to the page at base-uri: another loopback name is another origin, whose requests would be refused.
      const location = `${base.origin}${base.pathname.replace(/\/$/, '')}${req.path}`;
      res.writeHead(307, { ...COMMON_HEADERS, 'cache-control': 'no-store', location }).end();
      return;
    }
    sendBytes(req, res, html, headers);
  };
}

function isTrustworthy({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || LOOPBACK_NAMES.has(hostname);
}

/**
 * Whether the request's Host is another loopback name than that of base-uri, with the same port: both lead to this
 * server.
 */
function isOtherLoopbackName(host: string | undefined, base: URL): boolean {
  const requestedUrl = URL.parse(`${base.protocol}//${host ?? ''}`);
  if (requestedUrl === null || requestedUrl.hostname === base.hostname || requestedUrl.port !== base.port) return false;
  return LOOPBACK_NAMES.has(requestedUrl.hostname) && LOOPBACK_NAMES.has(base.hostname);
}

function assetHandler({ assets }: WebFiles): RequestHandler {
  return (req, res, next) => {
    const file = assets.get(req.params['name'] as string);
    if (file === undefined) {
      next();
      return;
    }
    if (!isGetOrHead(req)) {
      sendMethodNotAllowed(req, res, ['GET', 'HEAD']);
      return;
    }
    const encoding = webFileEncodings.find((each) => accepts(req, each));
    sendBytes(req, res, encoding === undefined ? file.plain : file[encoding], {
      ...COMMON_HEADERS,
      'content-type': file.mediaType,
      // The file's name changes with its content, so a browser never has to ask for the file again.
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'Accept-Encoding',
      ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
    });
  };
}

/** Whether Accept-Encoding lists the encoding without `q=0`, which means that the client refuses it. */
function accepts({ headers }: IncomingMessage, encoding: string): boolean {
  const listedEncodings = (headers['accept-encoding'] ?? '').split(',');
  return listedEncodings.some((each) => {
    const [name, ...parameters] = each.split(';').map((part) => part.trim().toLowerCase());
    return name === encoding && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
  });
}

function isGetOrHead({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD';
}

function sendBytes(req: Request, res: Response, bytes: Buffer, headers: Readonly<Record<string, string>>): void {
  res.writeHead(200, { ...headers, 'content-length': bytes.length });
  res.end(req.method === 'HEAD' ? undefined : bytes);
}
