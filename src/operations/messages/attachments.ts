import { KlatchError } from '../../errors.ts';
import type { AccountId } from '../../model/ids.ts';
import { listAttachmentStatuses, type AttachmentStatus } from '../../storage/messages/attachments.ts';
import { translateLostRead } from '../core/database-errors.ts';
import type { Services } from '../core/services.ts';

/** Throws `invalid_input` if there are more than `max` files, or if one is given twice. */
export function checkAttachments(ids: readonly string[], max: number): readonly string[] {
  if (ids.length > max)
    throw invalid(
      `files: a message carries at most ${max} (limits.attachments-per-message), not ${ids.length}; ` +
        'send the others in another message',
    );
  const duplicateIndex = ids.findIndex((id, index) => ids.indexOf(id) !== index);
  if (duplicateIndex !== -1) throw invalid(`files: number ${duplicateIndex + 1} is named twice; name it once`);
  return ids;
}

/**
 * Throws `file_not_attachable` if the account cannot attach one of the files. The error gives the position of the file
 * in the list. It does not give the name, since the file may be another account's.
 */
export async function assertAttachable(
  { database }: Pick<Services, 'database'>,
  accountId: AccountId,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  const statuses = await translateLostRead(database.general.run((sql) => listAttachmentStatuses(sql, accountId, ids)));
  const index = statuses.findIndex((status) => status !== 'free');
  if (index === -1) return;
  const sentence = `files: number ${index + 1} cannot be attached: ${NOT_ATTACHABLE_REASONS[statuses[index]!]}`;
  throw new KlatchError('file_not_attachable', { sentence });
}

const NOT_ATTACHABLE_REASONS: Readonly<Record<AttachmentStatus, string>> = {
  free: 'somebody else is using it right now; please repeat it',
  unknown: 'the sender has no such file (files.list shows those of the sender)',
  incomplete: 'it is not complete yet; finish its upload first',
  attached: 'another message carries it already; upload it again',
};

function invalid(sentence: string): KlatchError {
  return new KlatchError('invalid_input', { sentence });
}
