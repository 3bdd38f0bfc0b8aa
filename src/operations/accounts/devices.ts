import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { DEVICE_TOKEN_SEAL_PURPOSE, deviceKinds } from '../../model/device.ts';
import { lockActiveAccount } from '../../storage/accounts/accounts.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import { CommitUnknownError } from '../../storage/db/database-error.ts';
import {
  deleteDevice,
  deleteLeastRecentlyRegisteredDevices,
  upsertDeviceUnlessRaced,
  listDevices,
  type Device,
  type NewDevice,
} from '../../storage/accounts/devices.ts';
import { lockSession } from '../../storage/accounts/sessions.ts';
import { translateLostRead, translateCommitUnknown } from '../core/database-errors.ts';
import { parseDeviceToken, requirePushConfigured } from './device-token.ts';
import { requireAccount } from '../core/caller.ts';
import { defineOperation } from '../core/operation.ts';
import { limitSchema, pageOf, afterNumberSchema, nextNumberSchema } from '../core/page.ts';
import { sessionOrDeviceLabelSchema } from '../auth/sign-in.ts';
import { createdAtField } from '../core/schemas.ts';

/** The most characters of a token or endpoint of any kind of device. Each kind also has a lower bound of its own. */
const MAX_TOKEN_OR_ENDPOINT_LENGTH = 8_192;
const MAX_SUBSCRIPTION_KEY_LENGTH = 200;
const MAX_APP_ID_LENGTH = 200;
/**
 * The most attempts to store one device. An attempt fails if another account registers the same device at that moment.
 */
const MAX_INSERT_ATTEMPTS = 3;

const deviceKindSchema = z
  .enum(deviceKinds)
  .describe('Vendor that sends its pushes; `web`: the vendor of the browser.');
const deviceSchema = z.object({
  id: z.int().describe("The device's number."),
  kind: deviceKindSchema,
  app: z.string().nullable().describe("Google's project or Apple's bundle; null: the first one that is configured."),
  label: z.string().nullable().describe('Name that its owner gave it; null: none.'),
  created_at: createdAtField,
  seen_at: z.string().describe('Time of its last registration.'),
});

function serializeDevice({ id, kind, app, label, createdAt, lastSeenAt }: Device): z.infer<typeof deviceSchema> {
  return { id, kind, app, label, created_at: createdAt.toISOString(), seen_at: lastSeenAt.toISOString() };
}

export const registerDevice = defineOperation({
  name: 'devices.register',
  summary:
    'Register a telephone or browser for pushes while you are away, until this session ends. A repeat is an update: clients send it at each start.',
  input: z.strictObject({
    kind: deviceKindSchema,
    token: z
      .string()
      .max(MAX_TOKEN_OR_ENDPOINT_LENGTH)
      .optional()
      .describe('Of google its registration token, of apple its device token in hexadecimal.'),
    subscription: z
      .object({
        endpoint: z.string().max(MAX_TOKEN_OR_ENDPOINT_LENGTH).describe('The address to which pushes are sent.'),
        keys: z
          .object({
            p256dh: z.string().max(MAX_SUBSCRIPTION_KEY_LENGTH).describe("The browser's public key, as base64url."),
            auth: z.string().max(MAX_SUBSCRIPTION_KEY_LENGTH).describe('The secret of the subscription, as base64url.'),
          })
          .describe('Keys that encrypt pushes.'),
      })
      .optional()
      .describe(
        "Of web, as the browser's own `PushSubscription.toJSON()` has it; what else that holds is passed over.",
      ),
    app: z
      .string()
      .min(1)
      .max(MAX_APP_ID_LENGTH)
      .optional()
      .describe(
        "Google's project or Apple's bundle that the token is of, one of those in `/v1/about`; the first one if left out.",
      ),
    label: sessionOrDeviceLabelSchema.optional().describe('A name of your choice.'),
  }),
  output: deviceSchema,
  who: 'person',
  scope: null,
  errors: ['hook_address_forbidden', 'rate_limited'],
  run: async (
    { config, database, policy, sealer, push },
    { kind, token, subscription, app = null, label = null },
    caller,
  ) => {
    const { accountId, sessionId } = requireAccount(caller);
    requirePushConfigured(config, kind, app);
    const parsed = parseDeviceToken({ kind, token, subscription }, policy);
    const tokenSealed = sealer.seal(DEVICE_TOKEN_SEAL_PURPOSE, parsed.token);
    const device = { accountId, sessionId, kind, tokenHash: parsed.hash, tokenSealed, app, label };
    const maxDevices = config.limits.devicesPerUser;
    try {
      const registered = await database.general.transaction((tx) => register(tx, device, maxDevices));
      push.onDeviceRegistered();
      return serializeDevice(registered);
    } catch (error) {
      // The commit's answer was lost, but the device may have been registered: so this node takes it for registered.
      if (error instanceof CommitUnknownError) push.onDeviceRegistered();
      throw translateCommitUnknown(error, 'This device may have been registered; registering it again is safe');
    }
  },
});

/**
 * Registers a device under the account's lock: so concurrent registrations cannot exceed the account's number of
 * devices.
 */
async function register(tx: Transaction, device: NewDevice, maxDevices: number): Promise<Device> {
  const { accountId, sessionId } = device;
  // The database checks the session, since the cached one may be a minute old. If it ends later, its devices are
  // removed.
  const isActive = (await lockActiveAccount(tx, accountId)) !== null && (await lockSession(tx, sessionId));
  if (!isActive) throw new KlatchError('unauthenticated');
  for (let n = 0; n < MAX_INSERT_ATTEMPTS; n += 1) {
    const registered = await upsertDeviceUnlessRaced(tx, device);
    if (registered === null) continue;
    await deleteLeastRecentlyRegisteredDevices(tx, accountId, maxDevices);
    return registered;
  }
  throw new KlatchError('rate_limited', {
    sentence: 'Somebody else registers this device at the same time; please repeat it later',
  });
}

export const listOwnDevices = defineOperation({
  name: 'devices.list',
  summary: "List the caller's registered devices by number, a page at a time.",
  input: z.strictObject({ after: afterNumberSchema, limit: limitSchema }),
  output: z.object({
    devices: z
      .array(deviceSchema.extend({ current: z.boolean().describe('Registered by the session that asks.') }))
      .describe("The caller's devices, by number."),
    next: nextNumberSchema,
  }),
  who: 'person',
  scope: null,
  errors: [],
  run: async ({ database }, { after, limit }, caller) => {
    const { accountId, sessionId } = requireAccount(caller);
    const rows = await translateLostRead(
      database.general.run((sql) => listDevices(sql, { accountId, after, limit: limit + 1 })),
    );
    const { page, next } = pageOf(rows, limit, ({ id }) => id);
    return { devices: page.map((each) => ({ ...serializeDevice(each), current: each.sessionId === sessionId })), next };
  },
});

export const removeDevice = defineOperation({
  name: 'devices.remove',
  summary: 'Remove a device: it gets no more pushes, and the server withdraws the pending ones.',
  input: z.strictObject({ device: z.int().positive().describe("The device's number.") }),
  output: z.object({ device: z.int().describe("The device's number.") }),
  who: 'person',
  scope: null,
  errors: ['not_found'],
  run: async ({ database }, { device }, caller) => {
    const { accountId } = requireAccount(caller);
    if (!(await database.general.run((sql) => deleteDevice(sql, accountId, device)))) {
      throw new KlatchError('not_found', { sentence: `You have no device ${device}: devices.list shows yours` });
    }
    return { device };
  },
});
