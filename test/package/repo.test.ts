import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { publish } from '../../scripts/package/repo.ts';
import { SigningKey } from '../../scripts/package/signing-key.ts';
import { ROOT } from './support/machine.ts';
import { mustRun, run } from './support/run.ts';
import { build, klatch, klatchPostgresql } from './support/stand-ins.ts';

const DATE_S = 1_750_000_000;
const INDEX = 'dists/stable/main/binary-amd64';

let parent: string;
let folder: string;
let debs: Record<'v1' | 'v2' | 'postgresql', string>;
/** The file with the signing key of all tests: a new key for each test would take seconds. */
let throwAwayFile: string;

beforeAll(async () => {
  parent = mkdtempSync(join(tmpdir(), 'klatch-repo-'));
  throwAwayFile = join(parent, 'throw-away.asc');
  const packages = join(parent, 'packages');
  debs = {
    v1: await build(packages, klatch('0.1.0')),
    v2: await build(packages, klatch('0.2.0')),
    postgresql: await build(packages, klatchPostgresql()),
  };
});

beforeEach(() => {
  folder = mkdtempSync(join(parent, 'repository-'));
});

afterAll(() => rmSync(parent, { recursive: true, force: true }));

interface Signing {
  readonly wanted?: string;
  readonly passphraseFile?: string;
  readonly gnupgHome?: string;
  readonly dateS?: number;
}

/** Publishes packages in the repository, as `make repo` does. */
function publishAs(
  packages: readonly string[],
  { wanted, passphraseFile, gnupgHome, dateS = DATE_S }: Signing = {},
): void {
  const key = new SigningKey({ wanted, passphraseFile, gnupgHome, throwAwayFile });
  try {
    key.open();
    publish({ folder, packages, dateS, key });
  } finally {
    key.close();
  }
}

const read = (path: string): string => readFileSync(join(folder, path), 'utf8');
const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex');
const keyring = (): string => join(folder, 'klatch-archive-keyring.gpg');

/** All files of the repository with the attributes that a client can notice. */
function state(): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => `${file} ${statSync(file).mtimeMs} ${sha256(readFileSync(file))}`)
    .sort();
}

async function gnupgHome(...genkey: readonly string[]): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), 'klatch-home-'));
  await mustRun('gpg', ['--homedir', home, '--batch', '--quiet', '--pinentry-mode', 'loopback', ...genkey]);
  return home;
}

async function removeHome(home: string): Promise<void> {
  await mustRun('gpgconf', ['--homedir', home, '--kill', 'all']);
  rmSync(home, { recursive: true, force: true });
}

describe('the apt repository', () => {
  test('has the layout and the fields that apt asks for, and no date at which it ends', () => {
    publishAs([debs.v1, debs.postgresql]);
    const release = read('dists/stable/Release');
    expect(release.split('SHA256:')[0]!.replace(/^Date: .*$/m, 'Date')).toBe(
      'Origin: Klatch\nLabel: Klatch\nSuite: stable\nCodename: stable\nDate\nArchitectures: amd64\nComponents: main\n' +
        'Description: Klatch, a self-hosted group messaging server\nAcquire-By-Hash: yes\n',
    );
    expect(release).not.toContain('Valid-Until');
    expect(release).toContain('Date: Sun, 15 Jun 2025 15:06:40 UTC\n');
    expect(readdirSync(join(folder, 'pool/main/k/klatch')).sort()).toEqual([
      'klatch-postgresql_18.4_amd64.deb',
      'klatch_0.1.0_amd64.deb',
    ]);
  });

  test('names every index file with its size and hash, and every package', () => {
    publishAs([debs.v1, debs.postgresql]);
    const sums = [...read('dists/stable/Release').matchAll(/^ ([0-9a-f]{64}) +(\d+) (\S+)$/gm)];
    expect(sums.map(([, , , path]) => path)).toEqual(['main/binary-amd64/Packages', 'main/binary-amd64/Packages.gz']);
    for (const [, hash, size, path] of sums) {
      const content = readFileSync(join(folder, 'dists/stable', path!));
      expect([hash, size]).toEqual([sha256(content), String(content.length)]);
      expect(readFileSync(join(folder, INDEX, 'by-hash/SHA256', hash!))).toEqual(content);
    }
    const packages = read(`${INDEX}/Packages`);
    expect(gunzipSync(readFileSync(join(folder, `${INDEX}/Packages.gz`))).toString()).toBe(packages);
    for (const stanza of packages.trim().split('\n\n')) {
      const content = readFileSync(join(folder, /^Filename: (.*)$/m.exec(stanza)![1]!));
      expect(stanza).toContain(`\nSHA256: ${sha256(content)}\n`);
      expect(stanza).toContain(`\nSize: ${content.length}\n`);
    }
  });

  test.each(['gpgv', 'gpgv1'])('is verified by %s', async (gpgv) => {
    publishAs([debs.v1]);
    await mustRun(gpgv, ['--keyring', keyring(), join(folder, 'dists/stable/InRelease')]);
    await mustRun(gpgv, [
      '--keyring',
      keyring(),
      join(folder, 'dists/stable/Release.gpg'),
      join(folder, 'dists/stable/Release'),
    ]);
    writeFileSync(join(folder, 'dists/stable/Release'), read('dists/stable/Release').replace('main', 'evil'));
    const altered = await run(gpgv, [
      '--keyring',
      keyring(),
      join(folder, 'dists/stable/Release.gpg'),
      join(folder, 'dists/stable/Release'),
    ]);
    expect(altered.code).not.toBe(0);
  });

  test('is the same to the byte from the same packages, but for the signatures', () => {
    publishAs([debs.v1, debs.v2, debs.postgresql]);
    const files = ['Release', 'main/binary-amd64/Packages', 'main/binary-amd64/Packages.gz'];
    const first = files.map((file) => sha256(readFileSync(join(folder, 'dists/stable', file))));
    folder = mkdtempSync(join(parent, 'repository-'));
    publishAs([debs.postgresql, debs.v2, debs.v1]);
    expect(files.map((file) => sha256(readFileSync(join(folder, 'dists/stable', file))))).toEqual(first);
  });

  test('goes on offering the versions before', () => {
    publishAs([debs.v1, debs.postgresql]);
    publishAs([debs.v2]);
    const versions = [...read(`${INDEX}/Packages`).matchAll(/^Package: (.*)\nVersion: (.*)$/gm)];
    expect(versions.map(([, name, version]) => `${name} ${version}`)).toEqual([
      'klatch-postgresql 18.4',
      'klatch 0.1.0',
      'klatch 0.2.0',
    ]);
  });

  test('is not touched where there is nothing new', () => {
    publishAs([debs.v1]);
    const before = state();
    publishAs([debs.v1], { dateS: DATE_S + 1000 });
    expect(state()).toEqual(before);
  });

  test('gets a later date with each change, in the text and in what a web server tells of its files', () => {
    publishAs([debs.v1]);
    const before = statSync(join(folder, 'dists/stable/InRelease')).mtimeMs;
    publishAs([debs.v2]);
    expect(read('dists/stable/InRelease')).toContain('15:06:41 UTC');
    expect(Math.floor(statSync(join(folder, 'dists/stable/InRelease')).mtimeMs / 1000)).toBeGreaterThan(
      Math.floor(before / 1000),
    );
  });

  test('never shows a reader an index that its signed file does not name', async () => {
    publishAs([debs.v1]);
    const publisher = join(parent, 'publisher.ts');
    const scripts = join(ROOT, 'scripts/package');
    const versions = await Promise.all(
      Array.from({ length: 6 }, (_, i) => build(join(parent, 'many'), klatch(`1.0.${i}`))),
    );
    writeFileSync(
      publisher,
      `import { publish } from '${scripts}/repo.ts';
import { SigningKey } from '${scripts}/signing-key.ts';
const key = new SigningKey({ wanted: undefined, passphraseFile: undefined, gnupgHome: undefined, throwAwayFile: '${throwAwayFile}' });
key.open();
for (const file of process.argv.slice(2)) publish({ folder: '${folder}', packages: [file], dateS: 1, key });
key.close();
`,
    );
    const child = spawn(process.execPath, [publisher, ...versions], { stdio: 'inherit' });
    const ended = once(child, 'exit');
    const seen = new Set<string>();
    const wrong: string[] = [];
    while (child.exitCode === null) {
      const signed = read('dists/stable/InRelease');
      const [, hash] = /^ ([0-9a-f]{64}) +\d+ main\/binary-amd64\/Packages$/m.exec(signed)!;
      // The wait is that of a client for the network between these two requests.
      await new Promise((resolve) => setTimeout(resolve, 3));
      const index = readFileSync(join(folder, INDEX, 'by-hash/SHA256', hash!));
      if (sha256(index) !== hash) wrong.push(hash!);
      for (const [, file] of index.toString().matchAll(/^Filename: (.*)$/gm)) statSync(join(folder, file!));
      seen.add(hash!);
    }
    expect(await ended).toEqual([0, null]);
    expect(wrong).toEqual([]);
    expect(seen.size).toBeGreaterThan(2);
    expect(readdirSync(join(folder, INDEX, 'by-hash/SHA256')).length).toBeLessThanOrEqual(16);
  });

  test('comes right at the next run when one was killed in the middle', async () => {
    publishAs([debs.v1]);
    // Simulates a killed run, which has left a new index, an old signature and an incomplete file.
    const before = readFileSync(join(folder, 'dists/stable/InRelease'));
    publishAs([debs.v2]);
    writeFileSync(join(folder, 'dists/stable/InRelease'), before);
    writeFileSync(join(folder, 'pool/main/k/klatch/klatch_0.3.0_amd64.deb.part'), 'half');
    publishAs([debs.v2]);
    expect(read('dists/stable/InRelease')).toContain(sha256(readFileSync(join(folder, `${INDEX}/Packages`))));
    await mustRun('gpgv', ['--keyring', keyring(), join(folder, 'dists/stable/InRelease')]);
    expect(state().filter((line) => line.includes('.part '))).toEqual([]);
  });

  test('takes no package of somebody else, and none at all is told', async () => {
    const other = await build(join(parent, 'other'), { name: 'other', version: '1' });
    expect(() => publishAs([other])).toThrow('other_1_amd64.deb holds other for amd64');
    const arm = await build(join(parent, 'other'), klatch('0.1.0', { fields: { Architecture: 'arm64' } }));
    expect(() => publishAs([arm])).toThrow('holds klatch for arm64');
    expect(() => publishAs([])).toThrow('`make deb` makes one');
  });
});

describe('the key of the repository', () => {
  test('that is made for a trial is kept for the next one, readable by its owner alone, and no agent stays', async () => {
    publishAs([debs.v1]);
    const key = readFileSync(keyring());
    publishAs([debs.v2]);
    expect(readFileSync(keyring())).toEqual(key);
    expect(statSync(throwAwayFile).mode & 0o777).toBe(0o600);
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith(`klatch-gpg-${process.pid}-`))).toEqual([]);
    expect((await run('pgrep', ['-f', `gpg-agent --homedir /tmp/klatch-gpg-${process.pid}-`])).stdout).toBe('');
  });

  test('may be a file, protected by a passphrase', async () => {
    const passphraseFile = join(parent, 'passphrase');
    writeFileSync(passphraseFile, 'correct horse\n');
    const home = await gnupgHome(
      '--passphrase',
      'correct horse',
      '--quick-generate-key',
      'A',
      'rsa3072',
      'sign',
      'never',
    );
    const wanted = join(parent, 'protected.asc');
    const exported = [
      '--pinentry-mode',
      'loopback',
      '--passphrase',
      'correct horse',
      '--armor',
      '--export-secret-keys',
    ];
    writeFileSync(wanted, await mustRun('gpg', ['--homedir', home, '--batch', ...exported]));
    await removeHome(home);
    publishAs([debs.v1], { wanted, passphraseFile });
    await mustRun('gpgv1', ['--keyring', keyring(), join(folder, 'dists/stable/InRelease')]);
    expect(readFileSync(keyring()).includes('correct horse')).toBe(false);
  });

  test('may be an id in the GnuPG home of the caller, which stays as it is', async () => {
    const home = await gnupgHome('--passphrase', '', '--quick-generate-key', 'Publisher', 'rsa2048', 'sign', 'never');
    publishAs([debs.v1], { wanted: 'Publisher', gnupgHome: home });
    await mustRun('gpgv1', ['--keyring', keyring(), join(folder, 'dists/stable/InRelease')]);
    expect(() => publishAs([debs.v1], { wanted: 'Nobody', gnupgHome: home })).toThrow('no secret key Nobody');
    await removeHome(home);
  });

  test('may be two, while one takes the place of the other: each verifies it alone', async () => {
    const files: string[] = [];
    for (const name of ['Old', 'New']) {
      const home = await gnupgHome('--passphrase', '', '--quick-generate-key', name, 'rsa2048', 'sign', 'never');
      files.push(join(parent, `${name}.asc`));
      writeFileSync(
        files.at(-1)!,
        await mustRun('gpg', ['--homedir', home, '--batch', '--armor', '--export-secret-keys']),
      );
      await removeHome(home);
    }
    publishAs([debs.v1], { wanted: files.join(', ') });
    const both = join(folder, 'dists/stable/InRelease');
    for (const file of files) {
      mkdirSync(join(parent, 'alone'), { recursive: true });
      const signed = readFileSync(both);
      const before = folder;
      folder = mkdtempSync(join(parent, 'alone-'));
      publishAs([debs.v1], { wanted: file });
      writeFileSync(join(folder, 'both'), signed);
      // The keyring has one of the two keys. For the other signature gpgv exits with 2, as apt expects.
      const said = await run('gpgv', ['--status-fd', '1', '--keyring', keyring(), join(folder, 'both')]);
      expect(said.stdout.match(/GOODSIG/g)).toHaveLength(1);
      folder = before;
    }
  });

  test('has to be one that Ubuntu 14.04 can verify', async () => {
    const home = await gnupgHome('--passphrase', '', '--quick-generate-key', 'Modern', 'ed25519', 'sign', 'never');
    expect(() => publishAs([debs.v1], { wanted: 'Modern', gnupgHome: home })).toThrow('RSA');
    expect(readdirSync(join(folder, 'dists/stable'))).not.toContain('InRelease');
    await removeHome(home);
  });

  test('that is real binds: a published version never gets other contents', async () => {
    const other = await build(join(parent, 'rebuilt'), klatch('0.1.0', { files: { '/usr/bin/klatch': 'other' } }));
    publishAs([debs.v1]);
    publishAs([other]);
    expect(readFileSync(join(folder, 'pool/main/k/klatch/klatch_0.1.0_amd64.deb'))).toEqual(readFileSync(other));
    expect(() => publishAs([debs.v1], { wanted: throwAwayFile })).toThrow('klatch 0.1.0 is in the repository already');
  });
});
