import { realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Owner } from '../../config/durable-file.ts';
import { exitCodes } from './exit-codes.ts';
import { CommandError } from './failure.ts';

/** The configuration folder of the package's service. */
const SERVICE_CONFIG_FOLDER = '/etc/klatch';

/**
 * Refuses to run the service by hand. A server that root starts would leave files that the service, which runs as the
 * user klatch, cannot write. PostgreSQL does not run as root at all. `uid` is the user of this process.
 */
export function refuseRootWithServiceConfig(configFile: string, uid: number | undefined): void {
  // Both the name and its real path count: either may be a link.
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
    // The next reader of the file reports what is wrong with it.
    return resolve(file);
  }
}

/** The functions of `process` that change its user. */
interface ProcessIdentity {
  geteuid?: () => number;
  setgroups?: (groups: number[]) => void;
  setgid?: (gid: number) => void;
  setuid?: (uid: number) => void;
}

/**
 * Turns root for good into the user that owns the data directory, since the server has to be able to write what a
 * command creates there. Does nothing for other users, or where the directory is root's or does not exist. To be called
 * after reading everything that only root may read, and before touching the directory.
 */
export function dropPrivileges(dataDir: string, identity: ProcessIdentity = process): void {
  const owner = targetOwner(dataDir, identity);
  if (owner === null) return;
  identity.setgroups?.([owner.gid]);
  identity.setgid?.(owner.gid);
  identity.setuid?.(owner.uid);
}

/** The user that `dropPrivileges` would switch to; null: it changes nothing. */
export function targetOwner(dataDir: string, identity: ProcessIdentity = process): Owner | null {
  return identity.geteuid?.() === 0 ? nonRootOwnerOf(dataDir) : null;
}

/** The owner of a data directory, if that is not root: the user that the server runs as. */
export function nonRootOwnerOf(dataDir: string): Owner | null {
  const stat = statSync(dataDir, { throwIfNoEntry: false });
  return stat === undefined || stat.uid === 0 ? null : { uid: stat.uid, gid: stat.gid };
}
