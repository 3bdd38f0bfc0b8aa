import type { z } from 'zod';
import type { pushStatus } from '../../operations/accounts/push-status.ts';
import type { testPushToUser } from '../../operations/accounts/push-test.ts';
import { replaceControlCharacters } from '../../../client/core/safe-text.ts';
import { formatDuration, formatTable } from '../../../client/terminal/table.ts';

export type PushStatus = z.infer<typeof pushStatus.output>;
type PushTest = z.infer<typeof testPushToUser.output>;
type PushVendorStatus = PushStatus['vendors'][number];

const CONTENT_PHRASES = {
  full: 'who wrote what',
  sender: 'who wrote, not what',
  none: 'that there is something',
} as const;

/** The lines that show the state of pushes: a table of the vendors, the vendors' problems, and the last events. */
export function pushStatusLines({ content, vendors, events }: PushStatus): string[] {
  const heading = ['VENDOR', 'STATE', 'DEVICES', 'PENDING', 'OLDEST', 'IN FLIGHT', 'SENT', 'FAILED', 'GIVEN UP'];
  const rows = vendors.map((vendor) => [
    vendor.kind,
    vendorState(vendor),
    vendor.devices ?? '-',
    vendor.pending ?? '-',
    vendor.oldest_pending_ms === null ? '-' : formatDuration(vendor.oldest_pending_ms),
    vendor.in_flight,
    vendor.sent,
    vendor.failed,
    vendor.removed + vendor.refused + vendor.expired,
  ]);
  const lines = [
    `A push says ${CONTENT_PHRASES[content]} (push.content = ${content}).`,
    '',
    ...formatTable(heading, rows),
    ...vendors.flatMap(vendorWarningLines),
  ];
  if (events === null) return [...lines, '', 'The database is away: what waits and what went wrong is not known.'];
  if (events.length === 0) return lines;
  const eventRows = events.map(({ at, user, kind, event, category, code }) => [
    at,
    user,
    kind,
    event,
    categoryWithCode(category, code),
  ]);
  return [...lines, '', ...formatTable(['AT', 'USER', 'VENDOR', 'EVENT', 'WHY'], eventRows)];
}

function vendorState({ configured, problem, rests_until: restsUntil }: PushVendorStatus): string {
  if (!configured) return 'not configured';
  if (problem !== null) return 'cannot send';
  return restsUntil === null ? 'sends' : 'rests';
}

function vendorWarningLines({
  kind,
  configured,
  problem,
  devices,
  rests_until: until,
  last_error: last,
}: PushVendorStatus): string[] {
  const warnings: string[] = [];
  if (!configured && devices !== null && devices > 0)
    warnings.push('devices are registered, and nothing is configured for them');
  if (problem !== null) warnings.push(problem);
  if (until !== null) warnings.push(`nothing is sent until ${until}`);
  if (last !== null) warnings.push(`the last error, at ${last.at}: ${categoryWithCode(last.category, last.code)}`);
  return warnings.map((words) => replaceControlCharacters(`  ${kind}: ${words}`));
}

/** The category of an error, with the status code if there is one: `status 503`, `timeout`. */
function categoryWithCode(category: string, code: number | null): string {
  return code === null ? category : `${category} ${code}`;
}

/** The lines of a table with the outcome of a test push for each device. */
export function pushTestLines({ user, devices }: PushTest): string[] {
  if (devices.length === 0) return [];
  const rows = devices.map(({ device, kind, outcome, category, code, label }) => [
    device,
    kind,
    outcome,
    category === null ? '-' : categoryWithCode(category, code),
    label ?? '-',
  ]);
  const hasUnregistered = devices.some(({ outcome }) => outcome === 'unregistered');
  return [
    ...formatTable(['DEVICE', 'VENDOR', 'OUTCOME', 'WHY', 'LABEL'], rows),
    ...(hasUnregistered ? ['', `What is gone was removed: the app registers it again when ${user} opens it.`] : []),
  ];
}
