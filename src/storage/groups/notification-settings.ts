import type { ConversationNotificationLevel } from '../../model/device.ts';
import type { AccountId, ConversationId } from '../../model/ids.ts';
import type { Transaction } from '../db/connection.ts';

/** The notifications that a member wants from a conversation. */
interface NotificationSetting {
  readonly level: ConversationNotificationLevel;
  /** The member gets no pushes before this moment; it may be in the past. */
  readonly mutedUntil: Date | null;
}

interface NotificationSettingPatch {
  readonly level?: ConversationNotificationLevel | undefined;
  readonly mutedUntil?: Date | null | undefined;
}

/**
 * Changes a member's notification setting; fields that are left out keep their value. If the new setting suppresses
 * pushes, the pending pushes of the account's devices are deleted with it. Null for an account that is no member.
 */
export async function updateNotificationSetting(
  tx: Transaction,
  key: { conversationId: ConversationId; accountId: AccountId },
  { level, mutedUntil }: NotificationSettingPatch,
): Promise<NotificationSetting | null> {
  const { conversationId, accountId } = key;
  // The lock makes a concurrent removal of the member wait until the commit: then the removal also deletes this
  // setting.
  const membershipRows = await tx`
    select from membership where conversation_id = ${conversationId} and account_id = ${accountId} for key share`;
  if (membershipRows.length === 0) return null;
  const until = mutedUntil ?? null;
  const [row] = await tx<(NotificationSetting & { suppressesPushes: boolean })[]>`
    insert into notification_setting as n (conversation_id, account_id, level, muted_until)
    values (${conversationId}, ${accountId}, ${level ?? 'all'}, ${until}::timestamptz)
    on conflict (conversation_id, account_id) do update
      set level = coalesce(${level ?? null}::text, n.level),
        muted_until = ${mutedUntil === undefined ? tx`n.muted_until` : tx`${until}::timestamptz`}
    returning level, muted_until as "mutedUntil",
      level = 'nothing' or coalesce(muted_until > now(), false) as "suppressesPushes"`;
  const { suppressesPushes, ...setting } = row!;
  if (suppressesPushes) {
    await tx`
      delete from push_pending
      where conversation_id = ${conversationId} and device_id in (select id from device where account_id = ${accountId})`;
  }
  return setting;
}
