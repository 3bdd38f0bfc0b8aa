import { realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { FileOwner } from '../../config/durable-file.ts';
import { exitCodes } from './exit-codes.ts';
import { CommandError } from './failure.ts';

/** The folder with the configuration of the service that the package installs. */
const SERVICE_CONFIG_FOLDER = '/etc/klatch';

/**
 * Refuses to run the server as root with the service's configuration. Such a server would create files that the
 * service, which runs as the user klatch, cannot write; and PostgreSQL does not run as root. `uid`: the user id of this
 * process.
 */
export function refuseRootWithServiceConfig(configFile: string, uid: number | undefined): void {
  // Checks the given path and also the real path, because the file or its folder may be a symbolic link.
  if (
    uid !== 0 ||
    ![resolve(configFile), realPathIfAny(configFile)].some((path) => dirname(path) === SERVICE_CONFIG_FOLDER)
  )
    return;
  const what = `the server does not run as root with ${configFile}, which belongs to the service`;
  throw new CommandError(exitCodes.notPermitted, `${what}. Start the service: sudo service klatch start`);
}

function realPathIfAny(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    // The real path cannot be determined. The next read of the file reports the problem.
    return resolve(file);
  }
}

/** The methods of `process` that read and change its user. */
interface ProcessIdentity {
  geteuid?: () => number;
  setgroups?: (groups: number[]) => void;
  setgid?: (gid: number) => void;
  setuid?: (uid: number) => void;
}

/**
 * If this process runs as root, changes its user for good to the owner of the data directory: the server must be able
 * to write the files that a command creates there. Does nothing if another user runs the process, or if the directory
 * belongs to root or does not exist. Must be called after the last read of a file that only root may read, and before
 * the first access to the directory.
 */
export function dropPrivileges(dataDir: string, identity: ProcessIdentity = process): void {
  const owner = dataDirOwnerIfRoot(dataDir, identity);
  if (owner === null) return;
  identity.setgroups?.([owner.gid]);
  identity.setgid?.(owner.gid);
  identity.setuid?.(owner.uid);
}

/** The user that `dropPrivileges` would change this process to; null: it would change nothing. */
export function dataDirOwnerIfRoot(dataDir: string, identity: ProcessIdentity = process): FileOwner | null {
  return identity.geteuid?.() === 0 ? nonRootOwnerOf(dataDir) : null;
}

/** The owner of a data directory, as whom the server runs; null if that is root or the directory does not exist. */
export function nonRootOwnerOf(dataDir: string): FileOwner | null {
  const stat = statSync(dataDir, { throwIfNoEntry: false });
  return stat === undefined || stat.uid === 0 ? null : { uid: stat.uid, gid: stat.gid };
}
