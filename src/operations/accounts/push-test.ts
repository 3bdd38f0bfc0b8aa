import * as z from 'zod';
import { deviceKinds } from '../../model/device.ts';
import type { TestedDevice } from '../../push/vendor-report.ts';
import { requireActiveAccount, userReference } from '../core/account-reference.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { defineOperation } from '../core/operation.ts';
import { vendorStatusSchema } from './push-status.ts';
import { accountField, nickField } from '../core/schemas.ts';

const testedDeviceSchema = z.object({
  device: z.int().describe("The device's number."),
  kind: z.enum(deviceKinds).describe('The kind of the device.'),
  label: z.string().nullable().describe('Name that its owner gave it; null: none.'),
  outcome: z
    .enum(['delivered', 'unregistered', 'refused', 'failed'])
    .describe(
      'delivered: its vendor took it. unregistered: its vendor does not know it any more, and it was removed. refused: no repeat helps. failed: a message would be sent again.',
    ),
  category: z.string().nullable().describe('Why; docs/push.md has them all.'),
  code: vendorStatusSchema,
});

export const testPushToUser = defineOperation({
  name: 'push.test',
  summary: 'Send a push to each device of an account now, and return the outcome of each.',
  input: z.strictObject({ user: userReference }),
  output: z.object({
    user: nickField,
    id: accountField,
    devices: z.array(testedDeviceSchema).describe("The account's devices, by number."),
  }),
  who: 'administrator',
  scope: null,
  errors: ['not_found'],
  run: async ({ database, push }, { user }) => {
    const { id, nick } = await translateLostRead(database.general.run((sql) => requireActiveAccount(sql, user)));
    return { user: nick, id, devices: (await push.sendTestPushes(id)).map(serializeTestedDevice) };
  },
});

function serializeTestedDevice({ deviceId, kind, label, outcome }: TestedDevice): z.infer<typeof testedDeviceSchema> {
  const failureDetails = outcome.outcome === 'delivered' ? { category: null, code: null } : outcome;
  return {
    device: deviceId,
    kind,
    label,
    outcome: outcome.outcome,
    category: failureDetails.category,
    code: failureDetails.code,
  };
}
