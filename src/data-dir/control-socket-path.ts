import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findFolderProblem } from './private-folder.ts';

/**
 * The maximum length of a Unix socket's path: sockaddr_un holds 108 bytes, the last of which is the terminating zero.
 */
const MAX_SOCKET_PATH_BYTES = 107;

/** The folder of the control socket is not safe from other users. The message is a sentence that says what to do. */
export class ControlFolderError extends Error {
  override readonly name = 'ControlFolderError';
}

/**
 * The path of a data directory's control socket, for connecting to the socket. The socket is inside the data directory.
 * If that path is too long for a Unix socket, the socket is in a folder below `$XDG_RUNTIME_DIR` or else the temporary
 * folder. The name of that folder is derived from the data directory. Throws ControlFolderError where another user
 * could have made that folder: the socket might be a stranger's.
 */
export function findControlSocket(dataDir: string, env: NodeJS.ProcessEnv = process.env): string {
  const { path, isInDataDir } = locateSocket(dataDir, env);
  if (!isInDataDir && existsSync(dirname(path))) requirePrivateFolder(dirname(path), dataDir);
  return path;
}

/**
 * The path of the control socket for the server to listen at (see `findControlSocket`); creates its folder if it is
 * missing. Throws ControlFolderError.
 */
export function prepareControlSocket(dataDir: string, env: NodeJS.ProcessEnv = process.env): string {
  const { path, isInDataDir } = locateSocket(dataDir, env);
  if (isInDataDir) return path;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  requirePrivateFolder(dirname(path), dataDir);
  return path;
}

function locateSocket(
  dataDir: string,
  env: NodeJS.ProcessEnv,
): { readonly path: string; readonly isInDataDir: boolean } {
  const inside = join(dataDir, 'control.sock');
  if (Buffer.byteLength(inside) <= MAX_SOCKET_PATH_BYTES) return { path: inside, isInDataDir: true };
  const runtime = env['XDG_RUNTIME_DIR'];
  // The module node:crypto is loaded only for a long path: it takes 3 ms of a command's start.
  const { createHash } = process.getBuiltinModule('node:crypto');
  const name = createHash('sha256').update(realpathSync(dataDir)).digest('hex').slice(0, 16);
  const parent = runtime?.startsWith('/') === true ? runtime : tmpdir();
  return { path: join(parent, `klatch-control-${name}`, 'control.sock'), isInDataDir: false };
}

/**
 * Throws ControlFolderError for a folder of another user. Besides this user, root and the owner of the data directory
 * may own the folder: both control the server anyway.
 */
function requirePrivateFolder(folder: string, dataDir: string): void {
  const problem = findFolderProblem(folder, [0, process.geteuid?.() ?? 0, statSync(dataDir).uid]);
  if (problem === null) return;
  throw new ControlFolderError(
    `The control socket of the data directory ${dataDir} cannot be trusted: ${problem}, so another user could answer ` +
      'in place of the server. Remove that folder, or set data-dir to a shorter path.',
  );
}
