import type { ConnectionLimit } from '../connection-limit.ts';
import { routeKinds, statusClasses, type RequestCounts } from '../http/request-counts.ts';
import type { IntegrationTokenCache } from '../operations/core/access.ts';
import type { SessionCache } from '../operations/core/session-cache.ts';
import { samplesByLabel, counter, gauge, histogram, singleSample, type MetricFamily } from './family.ts';

export interface HttpMetricSources {
  readonly requests: RequestCounts;
  readonly connections: () => number;
  readonly limit: ConnectionLimit;
  readonly tokens: IntegrationTokenCache;
  readonly sessions: SessionCache;
}

/** Metrics on the HTTP interface: requests, answers and refusals. */
export function httpFamilies({ requests, connections, limit, tokens, sessions }: HttpMetricSources): MetricFamily[] {
  const { byRoute, errors } = requests;
  return [
    counter(
      {
        name: 'klatch_http_requests_total',
        help: 'Requests by kind of route and class of status; none: the client left before its answer.',
        labels: ['route', 'status'],
      },
      () =>
        routeKinds.flatMap((route) =>
          statusClasses.map((status) => ({ labels: { route, status }, value: byRoute[route].statuses[status] })),
        ),
    ),
    histogram(
      {
        name: 'klatch_http_request_duration_seconds',
        help: "From a request's headers to the end of its answer.",
        labels: ['route'],
      },
      () => routeKinds.map((route) => ({ labels: { route }, value: byRoute[route].durationS.read() })),
    ),
    gauge({ name: 'klatch_http_connections', help: 'Open connections of the HTTP interface.' }, () =>
      singleSample(connections()),
    ),
    counter(
      {
        name: 'klatch_connections_dropped_total',
        help: 'Connections that were closed at once, since clients hold three quarters of the files that the process may open.',
      },
      () => singleSample(limit.droppedConnectionCount),
    ),
    counter(
      {
        name: 'klatch_http_errors_total',
        help: 'Requests that were answered with an error, by its code (src/errors.ts).',
        labels: ['code'],
      },
      () => samplesByLabel('code', errors),
    ),
    counter({ name: 'klatch_unknown_tokens_total', help: 'Requests with a token that does not exist.' }, () =>
      singleSample(tokens.counts.unknown),
    ),
    counter(
      { name: 'klatch_unknown_session_tokens_total', help: 'Session tokens of clients and bots that do not exist.' },
      () => singleSample(sessions.counts.unknown),
    ),
  ];
}
