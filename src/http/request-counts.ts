import type { RequestListener, ServerResponse } from 'node:http';
import { errorKinds, type ErrorCode } from '../errors.ts';
import { DURATION_BOUNDS_S, Histogram } from '../histogram.ts';
import { isAliasPath, isSuffixName } from './callers/caller-paths.ts';
import type { TaggedResponse } from './responses.ts';

/** Kinds of routes, as labels of metrics. A path itself never becomes a label: it holds a token. */
export const routeKinds = ['send', 'reverse', 'token_status', 'health', 'api', 'files', 'other'] as const;
type RouteKind = (typeof routeKinds)[number];

/** The classes of the statuses that requests were answered with; `none`: the client left before the answer. */
export const statusClasses = ['2xx', '3xx', '4xx', '5xx', 'none'] as const;
type StatusClass = (typeof statusClasses)[number];

/** The requests of one kind of route. */
interface RouteStatusesAndDurations {
  readonly statuses: Record<StatusClass, number>;
  /** The time from the arrival of a request's headers to the end of its answer. */
  readonly durationS: Histogram;
}

const FILES_PATH = '/v1/files';
const TOKEN_PATH_PREFIX = '/v1/webhooks/';
const HEALTH_PATHS = new Set(['/v1/status', '/v1/ready', '/v1/about']);

/** Counts the requests of a listener and its answers; for metrics. */
export class RequestCounts {
  readonly byRoute: Readonly<Record<RouteKind, RouteStatusesAndDurations>>;
  /** The number of answers with each error code. */
  readonly errors: Record<ErrorCode, number>;

  constructor() {
    const empty = (): RouteStatusesAndDurations => ({
      statuses: { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0, none: 0 },
      durationS: new Histogram(DURATION_BOUNDS_S),
    });
    this.byRoute = {
      send: empty(),
      reverse: empty(),
      token_status: empty(),
      health: empty(),
      api: empty(),
      files: empty(),
      other: empty(),
    };
    const codes = Object.keys(errorKinds) as ErrorCode[];
    this.errors = Object.fromEntries(codes.map((code) => [code, 0])) as Record<ErrorCode, number>;
  }

  /** Returns a listener that calls `listener`, and counts its requests and answers. */
  counting(listener: RequestListener): RequestListener {
    return (req, res) => {
      const startedAt = performance.now();
      const counts = this.byRoute[routeKindOf(req.url ?? '')];
      // Every response closes exactly once.
      res.on('close', () => {
        counts.durationS.observe((performance.now() - startedAt) / 1_000);
        counts.statuses[statusClassOf(res)] += 1;
        const { errorCode } = res as TaggedResponse;
        if (errorCode !== undefined) this.errors[errorCode] += 1;
      });
      listener(req, res);
    };
  }
}

function statusClassOf(res: ServerResponse): StatusClass {
  if (!res.headersSent) return 'none';
  if (res.statusCode < 300) return '2xx';
  if (res.statusCode < 400) return '3xx';
  return res.statusCode < 500 ? '4xx' : '5xx';
}

/** The kind of a request by its path as it was sent; `/v1/webhooks/<token>` may end with a slash. */
function routeKindOf(url: string): RouteKind {
  const queryStart = url.indexOf('?');
  const path = queryStart === -1 ? url : url.slice(0, queryStart);
  if (path.startsWith('/v1/api/')) return 'api';
  if (path === FILES_PATH || path.startsWith(`${FILES_PATH}/`)) return 'files';
  if (!path.startsWith(TOKEN_PATH_PREFIX)) {
    if (HEALTH_PATHS.has(path)) return 'health';
    return isAliasPath(path) ? 'send' : 'other';
  }
  const slash = path.indexOf('/', TOKEN_PATH_PREFIX.length);
  if (slash === -1 || slash === path.length - 1) return 'send';
  if (path.startsWith('/reverse', slash)) return 'reverse';
  if (path.startsWith('/status', slash)) return 'token_status';
  return isSuffixName(path.slice(slash + 1)) ? 'send' : 'other';
}
