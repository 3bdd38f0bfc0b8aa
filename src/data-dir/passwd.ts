import { readFileSync } from 'node:fs';

/** A user of this machine. */
export interface PasswdEntry {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** The users in /etc/passwd; none where there is no such file. */
export function readPasswd(): PasswdEntry[] {
  let text: string;
  try {
    text = readFileSync('/etc/passwd', 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return text.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':');
    return name && uid && gid ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}

/** A user for a sentence: "the user klatch", or "the user with uid 1234" where no name is known. */
export function describeUser(uid: number): string {
  const name = readPasswd().find((entry) => entry.uid === uid)?.name;
  return name === undefined ? `the user with uid ${uid}` : `the user ${name}`;
}
