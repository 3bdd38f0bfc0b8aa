import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { signFileLink } from '../../files/signed-link.ts';
import { messageId, type LogEpoch } from '../../model/ids.ts';
import { readUsage } from '../../storage/files/file-usage.ts';
import { findReadableFile, listFilesOfAccount, type FileRow } from '../../storage/files/files.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { requireAccount } from '../core/caller.ts';
import { defineOperation } from '../core/operation.ts';
import { limitSchema, pageOf } from '../core/page.ts';
import { createdAtField } from '../core/schemas.ts';

/** The time for which an address of `files.link` is valid. */
const LINK_TTL_MS = 60 * 60_000;

/** A place in the list of files: the creation time (µs) and id of a file. */
const CREATED_US_AND_ID_PATTERN = /^(\d{1,16})\.([A-Za-z0-9_-]{22})$/;

/** The id of a file. Any text is accepted, since one that is no id names no file. */
const fileId = z.string().max(100).describe("The file's id.");

const ownFileSchema = z.object({
  id: z.string().describe("The file's id."),
  name: z.string().describe("The file's name."),
  type: z
    .string()
    .describe('Of its content; `application/octet-stream` where that shows nothing, and until it is complete.'),
  size: z.int().describe('Bytes; of an upload those announced.'),
  received: z.int().describe('Bytes that are there; fewer than `size` of an upload that is not complete.'),
  complete: z.boolean().describe('Whether the upload is complete.'),
  message: z.string().nullable().describe('The message that it is attached to, by its id; null: none.'),
  created_at: createdAtField,
});

function serializeOwnFile(file: FileRow & { readonly logEpoch: LogEpoch }): z.infer<typeof ownFileSchema> {
  const { id, name, type, size, received, state, conversationId, seq, createdAt, logEpoch } = file;
  return {
    id,
    name,
    type,
    size,
    received,
    complete: state === 'stored',
    message: conversationId === null || seq === null ? null : messageId(conversationId, seq, logEpoch),
    created_at: createdAt.toISOString(),
  };
}

export const createTemporaryFileLink = defineOperation({
  name: 'files.link',
  summary: 'Make a URL that downloads a file without a session, for an hour, while the caller may read the file.',
  input: z.strictObject({ file: fileId }),
  output: z.object({
    url: z.string().describe('Whoever has it may read the file.'),
    expires_at: z.string().describe('End of its validity.'),
  }),
  who: 'account',
  scope: 'messages:read',
  errors: ['file_not_found'],
  run: async ({ database, config, fileLinkKey }, { file: id }, caller) => {
    const { accountId } = requireAccount(caller);
    const file = await translateLostRead(database.general.run((sql) => findReadableFile(sql, id, accountId)));
    if (file === null) throw new KlatchError('file_not_found');
    // The end is in whole seconds, since the address contains it in seconds.
    const expiresAt = new Date(Math.floor((Date.now() + LINK_TTL_MS) / 1_000) * 1_000);
    const reader = { kind: 'account', id: accountId } as const;
    const url = signFileLink(fileLinkKey, config.http.baseUri, { file, reader, expiresAt });
    return { url, expires_at: expiresAt.toISOString() };
  },
});

export const listOwnFiles = defineOperation({
  name: 'files.list',
  summary: "List the caller's own files, newest first, a page at a time, with their total size and its limit.",
  input: z.strictObject({
    before: z.string().regex(CREATED_US_AND_ID_PATTERN).optional().describe('`next` of the page before.'),
    limit: limitSchema,
  }),
  output: z.object({
    files: z.array(ownFileSchema).describe('The files, newest first.'),
    next: z
      .string()
      .nullable()
      .describe(
        'Pass it as `before` to get the next page, even if that file is removed meanwhile; null: this is the last page.',
      ),
    usage: z
      .object({
        bytes: z.int().describe('Bytes of all of them.'),
        files: z.int().describe('How many there are.'),
        max_bytes: z.int().describe('The most bytes of all of them (`limits`).'),
      })
      .describe('Of all files of the caller.'),
  }),
  who: 'account',
  scope: 'messages:read',
  errors: [],
  run: async ({ database, config }, { before, limit }, caller) => {
    const { accountId } = requireAccount(caller);
    const [, createdAtUs = '', id = ''] = CREATED_US_AND_ID_PATTERN.exec(before ?? '') ?? [];
    const position = before === undefined ? null : { createdAtUs, id };
    const { rows, usage } = await translateLostRead(
      database.general.run(async (sql) => ({
        rows: await listFilesOfAccount(sql, { ownerId: accountId, before: position, limit: limit + 1 }),
        usage: await readUsage(sql, accountId),
      })),
    );
    const { page, next } = pageOf(rows, limit, (row) => `${row.createdAtUs}.${row.id}`);
    return {
      files: page.map(serializeOwnFile),
      next,
      usage: { ...usage, max_bytes: config.limits.storagePerUserBytes },
    };
  },
});

export const removeUnattachedFile = defineOperation({
  name: 'files.remove',
  summary:
    "Remove an own file that belongs to no message, or end its upload. A message's file is removed with its message.",
  input: z.strictObject({ file: fileId }),
  output: z.object({ file: z.string().describe("The file's id.") }),
  who: 'account',
  scope: 'messages:write',
  errors: ['file_not_found', 'upload_expired'],
  run: async ({ resumableUploads }, { file }, caller) => {
    await resumableUploads.remove(file, requireAccount(caller).accountId);
    return { file };
  },
});
