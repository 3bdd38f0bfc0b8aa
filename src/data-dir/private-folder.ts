import { lstatSync, statSync, type Stats } from 'node:fs';
import { dirname } from 'node:path';
import { describeUser } from './passwd.ts';

const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o002;

/**
 * What makes a folder unfit to hold a socket that only one user may open, as a phrase; null: nothing. Such a folder can
 * have a parent that other users write to, so they can make it first and stand in for the server. It has to be a real
 * folder of mode 0700 that belongs to one of `owners`, below a parent where others cannot replace it. Throws ENOENT.
 */
export function findFolderProblem(folder: string, owners: readonly number[]): string | null {
  const found = lstatSync(folder);
  if (!found.isDirectory()) return `${folder} is not a folder`;
  if (!owners.includes(found.uid)) return `${folder} belongs to ${describeUser(found.uid)}`;
  if ((found.mode & 0o777) !== 0o700) return `${folder} does not have mode 0700`;
  const parent = dirname(folder);
  if (hasReplaceableEntries(statSync(parent))) return `${parent} is writable by every user and has no sticky bit`;
  return null;
}

/** Without the sticky bit everybody who writes to a folder may rename and remove what others have in it. */
function hasReplaceableEntries({ mode }: Stats): boolean {
  return (mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0;
}
