import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { conversationNotificationLevels } from '../../model/device.ts';
import { updateNotificationSetting } from '../../storage/groups/notification-settings.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { notAMember } from '../core/conversation-access.ts';
import { parseTimestamp } from '../core/timestamp.ts';
import { requireAccount } from '../core/caller.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { conversationField, conversationNumber } from '../core/schemas.ts';

const notificationLevelSchema = z
  .enum(conversationNotificationLevels)
  .describe("New messages for which the server notifies the caller's devices.");

export const updateNotifications = defineTargetedOperation({
  name: 'notifications.update',
  summary:
    "Set for which messages of a conversation the caller's devices get pushes. The server withdraws pending pushes that the new setting excludes.",
  input: z
    .strictObject({
      conversation: conversationNumber,
      level: notificationLevelSchema.optional(),
      muted_until: z
        .string()
        .max(100)
        .nullable()
        .optional()
        .describe(
          'The server sends no notification before this time (RFC 3339, with its zone); null: it notifies again.',
        ),
    })
    .refine(({ level, muted_until }) => level !== undefined || muted_until !== undefined, 'give level or muted_until'),
  output: z.object({
    conversation: conversationField,
    level: notificationLevelSchema,
    muted_until: z
      .string()
      .nullable()
      .describe('The server sends no notification before this time; null: the conversation is not muted.'),
  }),
  who: 'member',
  on: 'conversation',
  scope: null,
  errors: [],
  run: async ({ database, bus }, { conversation, level, muted_until }, caller, { conversationId }) => {
    const { accountId } = requireAccount(caller);
    const membership = { conversationId, accountId };
    const change = { level, mutedUntil: typeof muted_until === 'string' ? requireTimestamp(muted_until) : muted_until };
    // A lost answer of the database is reported as if nothing had been written, since a repeat does no harm.
    const setting = await translateLostRead(
      database.general.transaction((tx) => updateNotificationSetting(tx, membership, change)),
    );
    if (setting === null) throw notAMember(conversationId);
    bus.publish('ephemeral', { kind: 'settings', ...membership });
    return { conversation, level: setting.level, muted_until: setting.mutedUntil?.toISOString() ?? null };
  },
});

function requireTimestamp(text: string): Date {
  const timestamp = parseTimestamp(text);
  if (timestamp !== null) return timestamp;
  const sentence = 'muted_until: give a moment with its zone, such as 2030-01-31T08:00:00Z, or null';
  throw new KlatchError('invalid_input', { sentence });
}
