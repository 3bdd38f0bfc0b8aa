import type { AccountId, ConversationId, Seq } from '../model/ids.ts';
import type { Pool } from '../storage/db/pool.ts';
import { listSignedInDevices, removeUnregisteredDevice, type SignedInDevice } from '../storage/push/push-devices.ts';
import { failedOutcome } from './outcomes.ts';
import type { TestedDevice } from './vendor-report.ts';
import { sendPush, type SendDeps } from './send-push.ts';
import type { PushNotification, PushOutcome, PushVendors } from './vendors/vendor.ts';

/** The most devices that one test notifies: the highest allowed value of `limits.devices-per-user`. */
const MAX_TESTED_DEVICES = 1_000;
const TEST_TEXT = 'This is a test. It was sent because an administrator asked for it.';

interface TestPushDeps extends SendDeps {
  readonly pool: Pool;
  readonly vendors: PushVendors;
  readonly projectName: string;
  readonly pushExpiresAfterMs: number;
}

/** Sends a test push to all devices of an account at the same time. Resolves to the outcome for each device. */
export async function sendTestPushes(accountId: AccountId, deps: TestPushDeps): Promise<readonly TestedDevice[]> {
  const devices = await deps.pool.run((sql) => listSignedInDevices(sql, accountId, MAX_TESTED_DEVICES));
  return Promise.all(
    devices.map(async (device) => {
      const outcome = await sendTestPush(device, deps);
      if (outcome.outcome === 'unregistered') await removeDeviceAndLog(device, outcome, deps);
      return { deviceId: device.id, kind: device.kind, label: device.label, outcome };
    }),
  );
}

function sendTestPush(device: SignedInDevice, deps: TestPushDeps): Promise<PushOutcome> {
  const vendor = deps.vendors.get(device.kind);
  if (vendor === undefined) return Promise.resolve(failedOutcome('not_configured', { vendorWide: true }));
  if (vendor.problem !== null) return Promise.resolve(failedOutcome('unusable', { vendorWide: true }));
  return sendPush(vendor, { target: device, notification: buildTestNotification(deps) }, deps);
}

/** The notification of a test. It is about no conversation, since none has the id 0. */
function buildTestNotification({ projectName, pushExpiresAfterMs }: TestPushDeps): PushNotification {
  return {
    conversationId: 0 as ConversationId,
    firstSeq: 0 as Seq,
    lastSeq: 0 as Seq,
    title: projectName,
    text: TEST_TEXT,
    accountUnreadCount: null,
    urgent: true,
    expiresAt: new Date(Date.now() + pushExpiresAfterMs),
  };
}

async function removeDeviceAndLog(
  device: SignedInDevice,
  reason: { category: string; code: number | null },
  { pool, log }: TestPushDeps,
): Promise<void> {
  if (!(await pool.run((sql) => removeUnregisteredDevice(sql, device, reason)))) return;
  log.info('removed devices that their push service does not know', { vendor: device.kind, devices: 1 });
}
