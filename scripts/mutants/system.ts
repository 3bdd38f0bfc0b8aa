import type { Mutant } from './mutant.ts';

/** Sockets, locks, rights and durability: what the installation promises to the machine's other users. */
export const SYSTEM_MUTANTS: readonly Mutant[] = [
  {
    name: 'control-folder-owner',
    promise: 'A control socket in a folder of another user is trusted.',
    file: 'src/storage/private-folder.ts',
    find: '  if (!owners.includes(found.uid)) return',
    replace: '  if (false) return',
    tests: ['test/cli/control-folder', '-t', 'of another user'],
  },
  {
    name: 'control-folder-mode',
    promise: 'A control socket in a folder that others can open is trusted.',
    file: 'src/storage/private-folder.ts',
    find: '(found.mode & 0o777) !== 0o700',
    replace: '(found.mode & 0o700) !== 0o700',
    tests: ['test/cli/control-folder', '-t', 'others can open'],
  },
  {
    name: 'lock-holder-user',
    promise: 'The refusal of a data directory in use does not name the user who has it.',
    file: 'src/storage/data-dir-lock.ts',
    find: '(pid ${pid}, ${describeUser(uid)})',
    replace: '(pid ${pid})',
    tests: ['test/storage/data-dir-lock', '-t', 'a second process is refused'],
  },
  {
    name: 'lock-file-owner',
    promise: 'A lock file that another user placed in the data directory is accepted.',
    file: 'src/storage/data-dir-lock.ts',
    find: '![0, uid, owner.uid].includes(found.uid)',
    replace: 'false',
    tests: ['test/storage/data-dir-lock', '-t', 'third user'],
  },
  {
    name: 'backup-as-owner',
    promise: 'A backup that root takes works with root’s rights in the folder of another user.',
    file: 'src/cli/backup.ts',
    find: '  becomeOwner(loaded.config.dataDir);\n',
    replace: '',
    tests: ['test/cli/backup-as-root'],
  },
  {
    name: 'synchronous-commit-off',
    promise: 'A session commits without waiting for the disk because the database says so.',
    file: 'src/storage/connection.ts',
    find: "when setting in ('off', 'local') then 'on'",
    replace: "when setting in ('local') then 'on'",
    tests: ['test/storage/durability'],
  },
  {
    name: 'fsync-off',
    promise: 'A server starts on a database that loses everything in a crash.',
    file: 'src/storage/open-database.ts',
    find: 'if (!config.postgresql.unsafe) await',
    replace: 'if (config.postgresql.unsafe) await',
    tests: ['test/storage/durability', '-t', 'fsync'],
  },
];
