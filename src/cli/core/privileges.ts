import { realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Owner } from '../../config/durable-file.ts';
import { exitCodes } from './exit-codes.ts';
import { CommandError } from './failure.ts';

/** The folder of the configuration that belongs to the service of the package. */
const SERVICE_CONFIG_FOLDER = '/etc/klatch';

/**
 * Refuses to be the service by hand: a server that root starts would leave files that the service, which runs as the
 * user klatch, cannot write, and PostgreSQL does not run as root. `uid` is who runs this process.
 */
export function refuseRootWithServiceConfig(configFile: string, uid: number | undefined): void {
  // The name counts as well as what is behind it: either may be a link.
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
    // Whoever reads it next says what is wrong with it.
    return resolve(file);
  }
}

/** What becoming another user takes; `process` has it. */
interface ProcessIdentity {
  geteuid?: () => number;
  setgroups?: (groups: number[]) => void;
  setgid?: (gid: number) => void;
  setuid?: (uid: number) => void;
}

/**
 * From here on root is the user that the data directory belongs to, for good: what a command makes in there, the
 * server has to be able to write. Does nothing for others, or where the directory is root's or not there. To be called
 * after everything that takes root was read, and before the directory is touched.
 */
export function dropPrivileges(dataDir: string, identity: ProcessIdentity = process): void {
  const owner = targetOwner(dataDir, identity);
  if (owner === null) return;
  identity.setgroups?.([owner.gid]);
  identity.setgid?.(owner.gid);
  identity.setuid?.(owner.uid);
}

/** Whom `dropPrivileges` makes of this process; null: it changes nothing. */
export function targetOwner(dataDir: string, identity: ProcessIdentity = process): Owner | null {
  return identity.geteuid?.() === 0 ? nonRootOwnerOf(dataDir) : null;
}

/** Who a data directory belongs to, if that is not root: the user that the server runs as. */
export function nonRootOwnerOf(dataDir: string): Owner | null {
  const stat = statSync(dataDir, { throwIfNoEntry: false });
  return stat === undefined || stat.uid === 0 ? null : { uid: stat.uid, gid: stat.gid };
}
