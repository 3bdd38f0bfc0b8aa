import { createHash } from 'node:crypto';
import { chmod, lchown, lstat, mkdir, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findFolderProblem } from '../../data-dir/private-folder.ts';
import { firstInaccessibleFolder, type OsUser } from './os-user.ts';
import { EmbeddedError } from './embedded-error.ts';

/** The port is only part of the socket's name, `.s.PGSQL.<port>`; each cluster has a folder of its own. */
export const SOCKET_PORT = 5432;
/**
 * The maximum length of a Unix socket's path: sockaddr_un holds 108 bytes, the last of which is the terminating zero.
 */
const SOCKET_PATH_MAX_BYTES = 107;

/**
 * Creates the folder of the server's socket, with mode 0700 and owned by the server's account. A user that may enter
 * the folder may log in, so its mode protects the database. The folder is inside the data directory, unless the
 * socket's path would be too long there.
 */
export async function makeSocketFolder(dataDir: string, osUser: OsUser): Promise<string> {
  const inside = join(dataDir, 'postgresql.run');
  if (socketPathFits(inside)) {
    await ensureInsideFolder(inside, osUser);
    return inside;
  }
  const problems: string[] = [];
  for (const folder of outsideFolderCandidates(dataDir)) {
    if (!socketPathFits(folder)) continue;
    const problem = await makeOutsideFolderOrExplain(folder, osUser);
    if (problem === null) return folder;
    problems.push(problem);
  }
  throw new EmbeddedError(
    'socket-folder-invalid',
    `The path of the data directory ${dataDir} is too long for a Unix socket (${SOCKET_PATH_MAX_BYTES} bytes), and no ` +
      `other folder can be used for it (${problems.join('; ') || 'the temporary folder is too long as well'}). ` +
      'Set data-dir to a shorter path.',
  );
}

/** Removes the socket's folder if it is outside of the data directory; called after the server has stopped. */
export async function removeOutsideSocketFolder(socketDir: string, dataDir: string): Promise<void> {
  if (dirname(socketDir) === dataDir) return;
  await rmdir(socketDir).catch((error: NodeJS.ErrnoException) => {
    // The folder has other contents, or is gone already: in both cases Klatch has nothing to remove.
    if (error.code !== 'ENOTEMPTY' && error.code !== 'ENOENT') throw error;
  });
}

function socketPathFits(folder: string): boolean {
  return Buffer.byteLength(join(folder, `.s.PGSQL.${SOCKET_PORT}`)) <= SOCKET_PATH_MAX_BYTES;
}

function outsideFolderCandidates(dataDir: string): string[] {
  const name = `klatch-${createHash('sha256').update(dataDir).digest('hex').slice(0, 16)}`;
  const runtime = process.env['XDG_RUNTIME_DIR'];
  return [...(runtime?.startsWith('/') ? [runtime] : []), tmpdir()].map((parent) => join(parent, name));
}

/**
 * Creates the socket's folder inside the data directory, where only Klatch creates one. So a wrong owner or mode (after
 * a restored backup) is corrected, and not refused.
 */
async function ensureInsideFolder(folder: string, osUser: OsUser): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const found = await lstat(folder);
  if (!found.isDirectory()) throw invalidFolderError(folder, 'is not a folder');
  if (found.uid !== osUser.uid) {
    if (osUser.kind === 'self') throw invalidFolderError(folder, `belongs to the user with uid ${found.uid}`);
    await lchown(folder, osUser.uid, osUser.gid);
  }
  if ((found.mode & 0o777) !== 0o700) await chmod(folder, 0o700);
}

/**
 * Creates the socket's folder outside of the data directory. Others may write to its parent folder, so a folder that
 * exists already must have exactly the right owner and mode. Resolves with the problem; null: there is none.
 */
async function makeOutsideFolderOrExplain(folder: string, osUser: OsUser): Promise<string | null> {
  let isNewFolder = true;
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return (error as Error).message;
    isNewFolder = false;
  }
  const owners = [osUser.uid, ...(osUser.kind === 'switch' ? [0] : [])];
  const problem = findFolderProblem(folder, owners);
  if (problem !== null) return problem;
  // A start that was killed between `mkdir` and `lchown` may have left a folder of root; the sticky bit keeps others
  // from replacing it.
  if (osUser.kind === 'switch' && (await lstat(folder)).uid === 0) await lchown(folder, osUser.uid, osUser.gid);
  const closed = await firstInaccessibleFolder(osUser, [dirname(folder), folder]);
  if (closed === null) return null;
  if (isNewFolder) await rmdir(folder);
  return `${closed} is closed to the user with uid ${osUser.uid}`;
}

function invalidFolderError(folder: string, problemPhrase: string): EmbeddedError {
  return new EmbeddedError(
    'socket-folder-invalid',
    `${folder} ${problemPhrase}. Remove it, or set data-dir to another folder.`,
  );
}
