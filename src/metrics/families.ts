import type { LaneManager } from '../delivery/lane-manager.ts';
import type { DnsResolver } from '../outbound/dns-resolver.ts';
import type { Live } from '../live/live.ts';
import type { Services } from '../operations/core/services.ts';
import { databaseFamilies, lostHistoryFamilies } from './database-families.ts';
import { deliveryFamilies, hookFamilies, dnsLookupFamilies } from './delivery-families.ts';
import type { EventLoopDelay } from './event-loop-delay.ts';
import { gauge, type MetricFamily } from './family.ts';
import { expectationFamilies } from './expectation-families.ts';
import { fileFamilies } from './file-families.ts';
import { httpFamilies, type HttpMetricSources } from './http-families.ts';
import { intakeFamilies, refusedPostFamilies } from './intake-families.ts';
import { liveFamilies } from './live-families.ts';
import { processFamilies } from './process-families.ts';
import { pushFamilies } from './push-families.ts';
import { signInFamilies } from './sign-in-families.ts';

/** The parts of the server that keep the values of the metrics. */
export interface MetricSources extends Pick<HttpMetricSources, 'requests' | 'connections' | 'limit'> {
  readonly services: Services;
  readonly live: Live;
  readonly lanes: LaneManager;
  readonly housekeeping: { readonly counts: { readonly lostEvents: number } };
  readonly expectations: { readonly overdueCount: number | null };
  readonly lookup: DnsResolver;
  readonly eventLoop: EventLoopDelay;
}

/** All metrics, in the order of the exposition. */
export function allFamilies(sources: MetricSources): MetricFamily[] {
  const { services, live, lanes, housekeeping, expectations, lookup, eventLoop, requests, connections, limit } =
    sources;
  const { version, messageLog, refusedPosts, database, tokens, sessions, activations, deliveryReport, push } = services;
  return [
    gauge({ name: 'klatch_build_info', help: 'Always 1; the version is its label.', labels: ['version'] }, () => [
      { labels: { version }, value: 1 },
    ]),
    ...intakeFamilies(messageLog),
    ...refusedPostFamilies(refusedPosts),
    ...expectationFamilies(expectations),
    ...httpFamilies({ requests, connections, limit, tokens, sessions }),
    ...signInFamilies(activations),
    ...liveFamilies(live),
    ...fileFamilies(services.uploads),
    ...hookFamilies(deliveryReport),
    ...deliveryFamilies(lanes, housekeeping.counts),
    ...dnsLookupFamilies(lookup),
    ...pushFamilies(push),
    ...databaseFamilies(database, deliveryReport),
    ...lostHistoryFamilies(database),
    ...processFamilies(eventLoop),
  ];
}
