import { deviceKinds, type DeviceKind } from '../model/device.ts';
import { pushOutcomes, type PushCounts } from '../push/push-counts.ts';
import type { PushQueue } from '../push/queue.ts';
import type { PendingPushCount } from '../storage/push/push-devices.ts';
import { counter, gauge, histogram, type MetricFamily, type MetricSample } from './family.ts';

/** Metrics on pushes by vendor. Waiting pushes are those of all processes; all other values are of this process. */
export function pushFamilies(push: PushQueue): MetricFamily[] {
  const countsOfVendor = (kind: DeviceKind): PushCounts => push.counts.get(kind)!;
  const labels = ['vendor'];
  return [
    gauge(
      {
        name: 'klatch_pushes_pending',
        help: 'Pushes that wait, one for a device and conversation, of all processes.',
        labels,
      },
      () => pendingByVendor(push, (row) => row?.pending ?? 0),
    ),
    gauge(
      {
        name: 'klatch_push_oldest_pending_age_seconds',
        help: 'Age of what has waited longest to be pushed, of all processes; 0 when nothing waits.',
        labels,
      },
      () => pendingByVendor(push, (row) => (row?.oldestAgeMs ?? 0) / 1_000),
    ),
    gauge({ name: 'klatch_pushes_in_flight', help: 'Pushes that have no answer yet.', labels }, () =>
      byVendor((kind) => push.inFlightOf(kind)),
    ),
    counter(
      {
        name: 'klatch_pushes_total',
        help: 'Attempts to push by outcome; unregistered: the vendor does not know the device any more.',
        labels: ['vendor', 'outcome'],
      },
      () =>
        deviceKinds.flatMap((vendor) =>
          pushOutcomes.map((outcome) => ({
            labels: { vendor, outcome },
            value: countsOfVendor(vendor).outcomes[outcome],
          })),
        ),
    ),
    histogram(
      {
        name: 'klatch_push_duration_seconds',
        help: 'From the moment a push was to be sent to its answer, connecting included.',
        labels,
      },
      () => byVendor((kind) => countsOfVendor(kind).durationS.read()),
    ),
    counter(
      { name: 'klatch_pushes_expired_total', help: 'Pushes that were given up because their time was over.', labels },
      () => byVendor((kind) => countsOfVendor(kind).expiredPushes),
    ),
    counter(
      { name: 'klatch_push_devices_removed_total', help: 'Devices that their vendor did not know any more.', labels },
      () => byVendor((kind) => countsOfVendor(kind).removedDevices),
    ),
  ];
}

function byVendor<Value>(valueOf: (kind: DeviceKind) => Value): readonly MetricSample<Value>[] {
  return deviceKinds.map((vendor) => ({ labels: { vendor }, value: valueOf(vendor) }));
}

/** A sample of the waiting pushes for each vendor; no samples while the database does not answer. */
async function pendingByVendor(
  { pendingCounts: pending }: PushQueue,
  valueOf: (row: PendingPushCount | undefined) => number,
): Promise<readonly MetricSample<number>[]> {
  const rows = await pending.read();
  return rows === null ? [] : byVendor((vendor) => valueOf(rows.find(({ kind }) => kind === vendor)));
}
