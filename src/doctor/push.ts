import type { Config } from '../config/config.ts';
import { configuredAppIds, configuredDeviceKinds, PUSH_SETTING_KEYS } from '../config/push-apps.ts';
import type { DeviceKind } from '../model/device.ts';
import { AddressPolicy } from '../outbound/address-policy.ts';
import { DnsResolver } from '../outbound/dns-resolver.ts';
import { createVendors } from '../push/vendors/vendors.ts';
import type { DeviceCount, DevicesAndLongPendingReport } from '../storage/push/device-report.ts';
import { countWithNoun, error, ok, skipped, warning, type CheckResult } from './finding.ts';

/** Pushes that have waited for longer than this are reported. A vendor's outage of less than an hour is not. */
export const PUSH_OVERDUE_MS = 3_600_000;

const STATUS = '"klatch push status" tells how each vendor is doing.';

/** A push vendor that is configured but cannot work. */
interface PushProblem {
  readonly kind: DeviceKind;
  readonly problem: string;
}

/** Creates the configured vendors as the server would, and finds those that could not send. Nothing is sent. */
export async function findPushProblems(config: Config): Promise<readonly PushProblem[]> {
  const { dnsTimeoutMs: timeoutMs, dnsConcurrency: maxConcurrentLookups, allow } = config.delivery;
  const lookup = new DnsResolver({ timeoutMs, successCacheMs: 0, failureCacheMs: 0, maxConcurrentLookups });
  const deps = { policy: new AddressPolicy(allow), lookup, userAgent: 'Klatch', log: null };
  const vendors = [...createVendors(config, deps).values()];
  await Promise.all(vendors.map((vendor) => vendor.stop()));
  return vendors.flatMap(({ kind, problem }) => (problem === null ? [] : [{ kind, problem }]));
}

/**
 * Results about vendors that are configured but cannot work, devices that get no pushes, and pushes that have waited
 * for long.
 */
export function evaluatePush(
  config: Config,
  problems: readonly PushProblem[],
  report: DevicesAndLongPendingReport | null,
): CheckResult[] {
  const kinds = configuredDeviceKinds(config);
  const problemResults = problems.map(({ kind, problem }) =>
    error(
      `nothing can be pushed to devices of ${kind}: ${problem}`,
      `Put ${PUSH_SETTING_KEYS[kind]} right in server.conf and restart the server; docs/push.md says what it takes.`,
    ),
  );
  if (report === null) {
    const configuredText = kinds.length === 0 ? 'nothing is configured' : `configured for ${kinds.join(', ')}`;
    return problemResults.length > 0
      ? problemResults
      : [skipped(`${configuredText}; whether there are devices could not be read`)];
  }
  const results = [
    ...problemResults,
    ...report.devices.flatMap((each) => evaluateUnconfiguredDevices(config, each)),
    ...evaluateOverduePushes(report),
  ];
  if (results.length > 0) return results;
  const deviceCount = report.devices.reduce((sum, each) => sum + each.devices, 0);
  if (kinds.length === 0) return [ok('nothing is configured, and there are no devices')];
  return [ok(`configured for ${kinds.join(', ')}; ${countWithNoun(deviceCount, 'device')} registered`)];
}

/** Warns of devices whose vendor or app was taken out of the configuration. */
function evaluateUnconfiguredDevices(config: Config, { kind, app, devices }: DeviceCount): CheckResult[] {
  const todo = 'Configure it again, or leave it: such devices go with their sessions.';
  const devicesText = `${countWithNoun(devices, 'device')} of ${kind} ${devices === 1 ? 'is' : 'are'} told nothing`;
  if (!configuredDeviceKinds(config).includes(kind))
    return [warning(`${devicesText}: ${PUSH_SETTING_KEYS[kind]} is not configured any more`, todo)];
  if (app === null || kind === 'web' || configuredAppIds(config, kind).includes(app)) return [];
  return [warning(`${devicesText}: ${PUSH_SETTING_KEYS[kind]} has no ${app} any more`, todo)];
}

function evaluateOverduePushes({ longPending }: DevicesAndLongPendingReport): CheckResult[] {
  return longPending.map(({ kind, pushes, since }) => {
    const waitingText = pushes === 1 ? '1 push waits' : `${pushes} pushes wait`;
    return warning(`${waitingText} for devices of ${kind}, the first since ${since.toISOString()}`, STATUS);
  });
}
