import { Readable } from 'node:stream';
import type { EncodedFile } from '../../callers/core/message-form.ts';
import { clipped } from '../../callers/core/plain-text.ts';
import type { LimitsConfig } from '../../config/config.ts';
import { KlatchError, type ErrorCode } from '../../errors.ts';
import type { Services } from '../../operations/core/services.ts';
import type { WebhookMessage } from '../../operations/messages/post-webhook.ts';
import type { Integration } from '../../storage/groups/integrations.ts';

/** A file that a body held in base64. */
export interface DecodedFile {
  readonly name: string;
  readonly content: Buffer;
}

/** A message whose files are stored by now. */
export interface PostWithStoredFiles {
  readonly message: WebhookMessage;
  /** Further files that the body held, which are not stored yet. */
  readonly files?: readonly DecodedFile[];
  /** Discards the stored files. Does not reject. */
  readonly discardFiles: () => Promise<void>;
}

const MAX_LISTED_UNSTORED_NAMES = 10;
const MAX_FILE_NAME_LENGTH = 100;
/**
 * Text that may be base64. The pattern is one character class. With a check of the end, it would take quadratic time on
 * much white space that is not at the end.
 */
const BASE64_PATTERN = /^[A-Za-z0-9+/=\s]+$/;
/** A file that is refused with one of these errors is left out of its message, and the message says so. */
const REFUSALS_OF_FILES: ReadonlySet<ErrorCode> = new Set([
  'too_large',
  'quota_exceeded',
  'storage_quota_exceeded',
  'storage_full',
  'storage_unavailable',
  'too_many_uploads',
]);

/** The files that a message may carry, decoded, and the names of those that it does not carry. */
export function decodeBodyFiles(
  encoded: readonly EncodedFile[],
  { attachmentsPerMessage, fileBytes }: Pick<LimitsConfig, 'attachmentsPerMessage' | 'fileBytes'>,
): { readonly files: readonly DecodedFile[]; readonly unstoredNames: readonly string[] } {
  const files: DecodedFile[] = [];
  const unstoredNames: string[] = [];
  for (const { name, base64 } of encoded) {
    const isWanted = files.length < attachmentsPerMessage && BASE64_PATTERN.test(base64);
    const content = isWanted ? Buffer.from(base64, 'base64') : null;
    if (content === null || content.length === 0 || content.length > fileBytes) unstoredNames.push(name);
    else files.push({ name, content });
  }
  return { files, unstoredNames };
}

/** Lines with the names of files that the message does not carry; empty without any. */
export function unstoredText(names: readonly string[]): string {
  return names
    .slice(0, MAX_LISTED_UNSTORED_NAMES)
    .map((name) => `${clipped(name, MAX_FILE_NAME_LENGTH)} (not stored)`)
    .join('\n');
}

/**
 * Stores the files, one after the other, and resolves to the message that carries them. The message only names a file
 * that is refused with one of REFUSALS_OF_FILES. Any other error discards the stored files and rejects.
 */
export async function storeBodyFiles(
  { uploads, config: { limits } }: Services,
  { accountId, conversationId }: Integration,
  message: WebhookMessage,
  files: readonly DecodedFile[],
): Promise<PostWithStoredFiles> {
  const attachmentIds: string[] = [];
  const unstoredNames: string[] = [];
  const discardFiles = async (): Promise<void> => {
    await Promise.all(attachmentIds.map((id) => uploads.discardIfUnattached(id)));
  };
  for (const { name, content } of files) {
    const file = { name, announcedBytes: content.length, bytes: () => Readable.from([content]) };
    try {
      attachmentIds.push((await uploads.storeFile({ ...file, accountId, conversationId })).id);
    } catch (error) {
      if (!(error instanceof KlatchError && REFUSALS_OF_FILES.has(error.code))) {
        await discardFiles();
        throw error;
      }
      unstoredNames.push(name);
    }
  }
  const parts = [message.text, unstoredText(unstoredNames)].filter((part) => part !== '');
  return {
    message: { ...message, text: clipped(parts.join('\n\n'), limits.textCodePoints), attachments: attachmentIds },
    discardFiles,
  };
}
