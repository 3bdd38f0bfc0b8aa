import type { Lanes } from '../delivery/lanes.ts';
import type { NameLookup } from '../outbound/name-lookup.ts';
import type { Services } from '../operations/services.ts';
import { databaseFamilies } from './database-families.ts';
import { deliveryFamilies, hookFamilies, nameLookupFamilies } from './delivery-families.ts';
import type { EventLoopDelay } from './event-loop-delay.ts';
import { gauge, type Family } from './family.ts';
import { httpFamilies, type HttpSources } from './http-families.ts';
import { intakeFamilies } from './intake-families.ts';
import { processFamilies } from './process-families.ts';

/** Where the values are kept. */
export interface MetricSources extends Pick<HttpSources, 'requests' | 'connections'> {
  readonly services: Services;
  readonly lanes: Lanes;
  readonly lookup: NameLookup;
  readonly eventLoop: EventLoopDelay;
}

/** Every metric there is, in the order in which they are shown. */
export function allFamilies(sources: MetricSources): Family[] {
  const { services, lanes, lookup, eventLoop, requests, connections } = sources;
  const { version, messageLog, database, tokens, deliveryReport } = services;
  return [
    gauge({ name: 'klatch_build_info', help: 'Always 1; the version is its label.', labels: ['version'] }, () => [
      { labels: { version }, value: 1 },
    ]),
    ...intakeFamilies(messageLog),
    ...httpFamilies({ requests, connections, tokens }),
    ...hookFamilies(deliveryReport),
    ...deliveryFamilies(lanes),
    ...nameLookupFamilies(lookup),
    ...databaseFamilies(database, deliveryReport),
    ...processFamilies(eventLoop),
  ];
}
