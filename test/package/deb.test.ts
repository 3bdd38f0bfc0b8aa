import { cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { trialFile } from './support/bare.ts';
import { isQuick } from './support/host.ts';
import { ROOT } from './support/machine.ts';
import { mustRun, run } from './support/run.ts';

const FIRST = join(ROOT, 'build/trials/first');
const REBUILD_MS = 900_000;

describe.each(['klatch', 'klatch-postgresql'] as const)('the package %s', (name) => {
  const deb = trialFile(name, 'deb');
  const field = async (of: string): Promise<string> => (await mustRun('dpkg-deb', ['--field', deb, of])).trim();

  test('has the members that dpkg 1.17 reads: it knows gzip for control files, xz for the others, and no zstd', async () => {
    expect((await mustRun('ar', ['t', deb])).trim().split('\n')).toEqual([
      'debian-binary',
      'control.tar.gz',
      'data.tar.xz',
    ]);
  });

  test('gives every file to root, with no bit that gives its rights to others', async () => {
    const lines = (await mustRun('dpkg-deb', ['--contents', deb])).trim().split('\n');
    expect(lines.length).toBeGreaterThan(10);
    expect(lines.filter((line) => !/^[-dlrwx]{10} root\/root /.test(line))).toEqual([]);
    expect(lines.filter((line) => /^-.......w/.test(line))).toEqual([]);
  });

  test('wants nothing that an old system does not have, and takes no other package along', async () => {
    expect(await field('Pre-Depends')).toBe('');
    expect(await field('Recommends')).toBe('');
    const depends = await field('Depends');
    expect(depends.replace(/klatch \(>= [^)]*\)/, 'klatch')).toBe(name === 'klatch' ? 'passwd' : 'klatch');
    expect(await field('Architecture')).toBe('amd64');
  });

  test('names no folder of the machine that it was built on', async () => {
    const folder = join(ROOT, 'build/trials/contents', name);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    await mustRun('dpkg-deb', ['-R', deb, folder]);
    const folders = ['build', 'client', 'node_modules', 'packages', 'scripts', 'src'].flatMap((each) => [
      '-e',
      `${ROOT}/${each}/`,
    ]);
    const found = await run('grep', ['-rlaF', ...folders, '.'], { cwd: folder });
    expect(found).toMatchObject({ code: 1, stdout: '' });
    rmSync(folder, { recursive: true });
  });

  test('leaves lintian nothing to say that is not explained', async () => {
    const ran = await run('lintian', ['--allow-root', '--fail-on', 'error,warning', deb], { timeoutMs: 600_000 });
    expect(ran).toMatchObject({ code: 0, stdout: '' });
  });
});

describe('the repository', () => {
  const release = join(FIRST, 'dists/stable');
  const keyring = join(FIRST, 'klatch-archive-keyring.gpg');

  test.each([['InRelease'], ['Release.gpg', 'Release']])(
    'is signed so that gnupg 1.4 verifies %s',
    async (...files) => {
      const paths = files.map((file) => join(release, file));
      const ran = await run('gpgv1', ['--status-fd', '1', '--keyring', keyring, ...paths]);
      expect(ran).toMatchObject({ code: 0 });
      expect(ran.stdout).toContain('VALIDSIG');
    },
  );

  test('is not verified when a byte of it has changed', async () => {
    const text = readFileSync(join(release, 'InRelease'), 'utf8').replace('Suite: stable', 'Suite: staple');
    const ran = await run('gpgv1', ['--keyring', keyring, '-'], { input: text });
    expect(ran.code).not.toBe(0);
  });
});

// Quick runs skip this: it takes as long as the build of the packages itself.
(isQuick ? () => {} : test)(
  'built again in another folder, the packages are the same to the byte',
  async () => {
    const folder = join(ROOT, 'build/trials/again');
    rmSync(folder, { recursive: true, force: true });
    for (const file of (await mustRun('git', ['-C', ROOT, 'ls-files'])).trim().split('\n')) {
      cpSync(join(ROOT, file), join(folder, file));
    }
    // Hard links, because a symbolic link would give the libraries another path.
    await mustRun('cp', ['-al', join(ROOT, 'node_modules'), join(folder, 'node_modules')]);
    // The date of the build is that of the first member of the package. The last commit may be later: a commit need not
    // change a package.
    const epoch = readFileSync(trialFile('klatch', 'deb')).toString('latin1', 24, 36).trim();
    await mustRun(process.execPath, ['scripts/package/make.ts', 'deb'], {
      cwd: folder,
      env: { ...(process.env as Record<string, string>), SOURCE_DATE_EPOCH: epoch },
      timeoutMs: REBUILD_MS,
    });
    for (const deb of [trialFile('klatch', 'deb'), trialFile('klatch-postgresql', 'deb')]) {
      expect(readFileSync(join(folder, 'dist', basename(deb))).equals(readFileSync(deb))).toBe(true);
    }
    rmSync(folder, { recursive: true });
  },
  REBUILD_MS,
);
