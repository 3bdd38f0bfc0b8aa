import type { Request } from 'express';
import { KlatchError } from '../../errors.ts';
import { readerOfValidFileLink, type FileLinkReader } from '../../files/signed-link.ts';
import { isFileKey } from '../../files/store.ts';
import type { Scope } from '../../model/scopes.ts';
import { requireAccount, type Caller } from '../../operations/core/caller.ts';
import { translateLostRead } from '../../operations/core/database-errors.ts';
import { authorizeCaller } from '../../operations/core/call-operation.ts';
import type { Services } from '../../operations/core/services.ts';
import { findConversationFile, findReadableFile, type FileRow } from '../../storage/files/files.ts';
import type { Authenticator } from '../authenticator.ts';

/** A file that the request may read, and the reader whose limit of downloads this download counts against. */
export interface AuthorizedFile {
  readonly file: FileRow;
  /** The key of the reader in the limit of downloads: `a<account>` or `g<conversation>`. */
  readonly readerKey: string;
}

/**
 * Authenticates the caller of a request about files. A bot needs this scope. Throws `unauthenticated`, `missing_scope`
 * and `rate_limited`.
 */
export async function authenticateForFiles(authenticator: Authenticator, req: Request, scope: Scope): Promise<Caller> {
  const caller = await authenticator.authenticate(req);
  authorizeCaller({ who: 'account', scope }, caller);
  return caller;
}

/** The file that a session asks for. Throws `file_not_found`, also if the session's account may not read the file. */
export async function authorizeFileBySession(
  services: Services,
  authenticator: Authenticator,
  req: Request,
): Promise<AuthorizedFile> {
  const { accountId } = requireAccount(await authenticateForFiles(authenticator, req, 'messages:read'));
  return {
    file: await findFile(services, fileIdOf(req), { kind: 'account', id: accountId }),
    readerKey: `a${accountId}`,
  };
}

/**
 * The file of a signed address. An address for an account is refused if the request also has a session's token of
 * another account. Throws `invalid_link` and `file_not_found`.
 */
export async function authorizeFileByLink(
  services: Services,
  authenticator: Authenticator,
  req: Request,
): Promise<AuthorizedFile> {
  const id = fileIdOf(req);
  const query = new URLSearchParams(req.url.split('?', 2)[1] ?? '');
  const name = req.params['name'] as string;
  const reader = readerOfValidFileLink(services.fileLinkKey, { id, name }, { query, nowMs: Date.now() });
  if (reader === null) throw new KlatchError('invalid_link');
  if (reader.kind === 'account' && req.headers.authorization !== undefined) {
    const caller = requireAccount(await authenticateForFiles(authenticator, req, 'messages:read'));
    if (caller.accountId !== reader.id) throw new KlatchError('invalid_link');
  }
  const readerKey = `${reader.kind === 'account' ? 'a' : 'g'}${reader.id}`;
  return { file: await findFile(services, id, reader), readerKey: readerKey };
}

async function findFile({ database }: Services, id: string, reader: FileLinkReader): Promise<FileRow> {
  const file = await translateLostRead(
    database.general.run((sql) =>
      reader.kind === 'account' ? findReadableFile(sql, id, reader.id) : findConversationFile(sql, id, reader.id),
    ),
  );
  if (file === null) throw new KlatchError('file_not_found');
  return file;
}

/** The file id in the path. Text that cannot be one is refused without asking the database. */
function fileIdOf(req: Request): string {
  const id = req.params['id'] as string;
  if (!isFileKey(id)) throw new KlatchError('file_not_found');
  return id;
}
