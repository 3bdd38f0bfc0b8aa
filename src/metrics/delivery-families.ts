import { deliveryOutcomes } from '../delivery/delivery-counts.ts';
import type { LaneManager } from '../delivery/lane-manager.ts';
import type { DeliveryReportCache } from '../operations/core/delivery-report-cache.ts';
import type { DnsResolver } from '../outbound/dns-resolver.ts';
import type { LaneReport } from '../storage/hooks/lane-report.ts';
import {
  samplesByLabel,
  counter,
  gauge,
  histogram,
  singleSample,
  type MetricFamily,
  type MetricSample,
} from './family.ts';

/** Metrics on the deliveries of this process. */
export function deliveryFamilies(
  lanes: LaneManager,
  housekeepingCounts: { readonly lostEvents: number },
): MetricFamily[] {
  const { counts } = lanes;
  return [
    counter(
      {
        name: 'klatch_deliveries_total',
        help: 'Attempts to deliver by outcome; unregistered: the receiver answered 410, and its hook was removed.',
        labels: ['outcome'],
      },
      () => samplesByLabel('outcome', counts.attemptsByOutcome),
    ),
    counter(
      { name: 'klatch_delivery_failures_total', help: 'Failed attempts by category.', labels: ['category'] },
      () => samplesByLabel('category', counts.failedAttemptsByCategory),
    ),
    counter({ name: 'klatch_delivery_retries_total', help: 'Attempts that were not the first of their message.' }, () =>
      singleSample(counts.retries),
    ),
    counter(
      {
        name: 'klatch_messages_dead_lettered_total',
        help: 'Messages and events that a hook gave up: its receiver refuses them (400, 413, 422) and accepts later ones.',
      },
      () => singleSample(counts.deadLettered),
    ),
    counter(
      {
        name: 'klatch_hook_events_expired_total',
        help: 'Events that were removed after 7 days, or as too many, before a hook that asks for them got them.',
      },
      () => singleSample(housekeepingCounts.lostEvents),
    ),
    histogram(
      {
        name: 'klatch_delivery_duration_seconds',
        help: 'From the moment an attempt got its connection to its answer, connecting included.',
        labels: ['outcome'],
      },
      () => deliveryOutcomes.map((outcome) => ({ labels: { outcome }, value: counts.durationS[outcome].read() })),
    ),
    ...laneFamilies(lanes),
  ];
}

function laneFamilies(lanes: LaneManager): MetricFamily[] {
  return [
    gauge({ name: 'klatch_deliveries_in_flight', help: 'Deliveries in flight.' }, () =>
      singleSample(lanes.load.inFlight),
    ),
    gauge({ name: 'klatch_deliveries_queued', help: 'Hooks that wait until they may send.' }, () =>
      singleSample(lanes.load.waitingForSlot),
    ),
    gauge(
      {
        name: 'klatch_delivery_results_pending',
        help: 'Settlements that are not committed yet, one for each hook at most, of up to 8 attempts.',
      },
      () => singleSample(lanes.load.pendingSettlements),
    ),
    gauge({ name: 'klatch_partitions_held', help: 'Partitions, of 64, whose hooks this process delivers for.' }, () =>
      singleSample(lanes.load.partitionCountNotHandingOver),
    ),
    gauge(
      {
        name: 'klatch_hook_loops',
        help: "Hooks whose receivers seem to answer posts of the group's webhook with further ones, for five minutes.",
      },
      () => singleSample(lanes.loopingHooks.length),
    ),
  ];
}

/** Metrics on the hooks of all processes, which are read from the database. */
export function hookFamilies(report: DeliveryReportCache): MetricFamily[] {
  const collectIfKnown = (samplesOf: (latest: LaneReport) => readonly MetricSample<number>[]) => async () => {
    const latest = await report.read();
    return latest === null ? [] : samplesOf(latest.report);
  };
  return [
    gauge(
      { name: 'klatch_hooks', help: 'Reverse webhooks by state, of all processes.', labels: ['state'] },
      collectIfKnown(({ hooks }) => samplesByLabel('state', hooks)),
    ),
    gauge(
      { name: 'klatch_hooks_pending', help: 'Reverse webhooks with something to deliver, of all processes.' },
      collectIfKnown(({ pendingHooks }) => singleSample(pendingHooks)),
    ),
    gauge(
      {
        name: 'klatch_oldest_pending_age_seconds',
        help: 'Age of the oldest message or event that a hook which is not paused has to deliver; 0 when there is none.',
      },
      collectIfKnown(({ oldestPendingAt }) =>
        singleSample(oldestPendingAt === null ? 0 : Math.max(0, Date.now() - oldestPendingAt.getTime()) / 1_000),
      ),
    ),
    gauge(
      {
        name: 'klatch_hooks_report_age_seconds',
        help: 'How long ago the three above were read; they are read every 10 s at most.',
      },
      async () => {
        const latest = await report.read();
        return latest === null ? [] : singleSample(latest.ageMs / 1_000);
      },
    ),
  ];
}

/** Metrics on the DNS look-ups of receivers' names. */
export function dnsLookupFamilies({ counts }: DnsResolver): MetricFamily[] {
  return [
    counter(
      {
        name: 'klatch_dns_lookups_total',
        help: 'Look-ups that the resolver answered, with an address (found) or without (failed).',
        labels: ['result'],
      },
      () => samplesByLabel('result', { found: counts.found, failed: counts.failed }),
    ),
    counter(
      { name: 'klatch_dns_lookup_cache_hits_total', help: 'Names that were remembered, known failures too.' },
      () => singleSample(counts.cacheHits),
    ),
    counter(
      {
        name: 'klatch_dns_lookup_timeouts_total',
        help: 'Attempts that had no answer in time, or found too many waiting for one.',
      },
      () => singleSample(counts.callersTimedOutOrRejected),
    ),
    histogram({ name: 'klatch_dns_lookup_duration_seconds', help: 'How long the resolver took.' }, () =>
      singleSample(counts.durationS.read()),
    ),
  ];
}
