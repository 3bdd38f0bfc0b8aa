import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Publisher, type MachineOptions, type Target } from './support/install-script.ts';
import { suites } from './support/host.ts';
import { ROOT } from './support/machine.ts';
import type { Ran } from './support/run.ts';
import { klatch } from './support/stand-ins.ts';

const LIST = '/etc/apt/sources.list.d/klatch.list';
const RELEASE = '/repo/dists/stable';
const INDEX = `${RELEASE}/main/binary-amd64`;

let publisher: Publisher;
let target: Target | null = null;

beforeAll(async () => {
  publisher = await Publisher.start();
});

afterEach(async () => {
  publisher.server.answers.clear();
  await target?.stop();
  target = null;
});

afterAll(() => publisher.stop());

async function machine(options: MachineOptions = {}): Promise<Target> {
  target = await publisher.machine(options);
  return target;
}

/** The files that a refusal must not change; the caches and logs of apt may change. */
async function kept(at: Target): Promise<string[]> {
  return (await at.files()).filter((line) => !/^\/var\/(log|cache|lib\/apt|lib\/dpkg\/lock)/.test(line));
}

/** Runs the script. Expects this status and sentence, no changes, and a working apt. */
async function expectRefusal(code: number, sentence: string | RegExp, install: () => Promise<Ran>): Promise<void> {
  const before = await kept(target!);
  const ran = await install();
  expect(ran).toMatchObject({ code, stderr: expect.stringMatching(/^install\.sh: [^\n]+/) });
  expect(ran.stderr).toMatch(sentence);
  expect(await kept(target!)).toEqual(before);
  expect(await target!.installed()).toEqual([]);
  expect((await target!.machine.must('ls -A /tmp')).trim()).toBe('');
  publisher.server.answers.clear();
  expect((await target!.userUpdate()).code).toBe(0);
}

describe('install.sh refuses', () => {
  test('what it cannot do, each with a status and a sentence of its own', async () => {
    const at = await machine();
    const asUser = { by: 'setpriv --reuid 65534 --regid 65534 --clear-groups' };
    const cases: [string, number, string][] = [
      ['--fast', 64, 'there is no option --fast'],
      ['--embedded=yes', 64, 'there is no option --embedded=yes'],
      ['now', 64, 'there is no option now'],
      ['--version', 64, '--version lacks its value'],
      ["--version ''", 64, '--version lacks its value'],
      ['--repo=', 64, '--repo lacks its value'],
      ['--embedded --no-database', 64, 'exclude each other'],
      ['--wait soon', 64, 'number of seconds'],
      ["--version '1 2'", 64, 'takes a version such as'],
      ['--repo ftp://x', 64, 'begins with http://'],
      ["--repo 'http://x/ y'", 64, 'a character that apt does not take'],
      ['--repo http://me:word@x/', 64, 'no user and password'],
    ];
    for (const [args, code, sentence] of cases) await expectRefusal(code, sentence, () => at.install(args));
    await expectRefusal(77, 'needs root', () => at.install('', asUser));
    expect((await at.install('--help', asUser)).code).toBe(0);
    at.script = publisher.script(undefined, '');
    await expectRefusal(64, 'without the address of a repository: give it with --repo', () => at.install());
    at.script = readFileSync(join(ROOT, 'install.sh'), 'utf8');
    await expectRefusal(64, 'template out of the source tree', () => at.install());
    expect((await at.install('--help')).code).toBe(0);
  });

  test('systems that it cannot work on, and points to the zip', async () => {
    const at = await machine();
    const uname = (system: string, processor: string): string =>
      `#!/bin/sh\ncase $1 in -s) echo ${system};; -m) echo ${processor};; esac\n`;
    // The file exists before the comparison of files begins, so it does not count as a change by the script.
    await at.machine.write('/root/bin/uname', '', '755');
    const put = (text: string): Promise<void> => at.machine.write('/root/bin/uname', text, '755');
    const env = { PATH: '/root/bin:/usr/sbin:/usr/bin:/sbin:/bin' };
    await put(uname('FreeBSD', 'amd64'));
    await expectRefusal(71, 'this is FreeBSD', () => at.install('', { env }));
    await put(uname('Linux', 'aarch64'));
    await expectRefusal(71, 'this machine is aarch64', () => at.install('', { env }));
    await put(uname('Linux', 'x86_64'));
    await at.machine.must('mkdir /root/away');
    await at.machine.must('mv /usr/bin/apt-get /root/away/');
    const without = await at.install();
    await at.machine.must('mv /root/away/apt-get /usr/bin/');
    expect(without).toMatchObject({ code: 72 });
    expect(without.stderr).toMatch(/no apt-get here.*klatch-<version>-linux-x64\.zip/);
    await at.machine.must(
      'mv /usr/bin/dpkg /root/away/ && printf "#!/bin/sh\\necho i386\\n" >/usr/bin/dpkg && chmod +x /usr/bin/dpkg',
    );
    expect(await at.install()).toMatchObject({ code: 71, stderr: expect.stringContaining('are for i386') });
  });

  test.each(suites('bookworm', 'bullseye', 'trixie'))(
    'a repository that it cannot reach, or that is none (%s)',
    async (suite) => {
      const at = await machine({ suite });
      const { answers } = publisher.server;
      await expectRefusal(69, 'cannot be reached', () => at.install('--repo http://127.0.0.1:9'));
      await expectRefusal(69, 'cannot be reached', () => at.install('--repo http://klatch.invalid/'));
      await expectRefusal(69, 'cannot be reached', () => at.install(`--repo ${publisher.server.url}/elsewhere`));
      await expectRefusal(69, 'cannot be reached', () => at.install('--repo file:/nowhere'));
      const plain = publisher.url.replace('http:', 'https:');
      await expectRefusal(69, 'TLS does not work with it', () => at.install(`--repo ${plain}`));
      await expectRefusal(69, 'cannot be reached', () => at.install('--dry-run --repo http://127.0.0.1:9'));
      answers.set('*', () => '<html>Please log in to the network of the hotel</html>\n');
      await expectRefusal(69, 'login page', () => at.install());
    },
  );

  const apts = suites('bookworm', 'bullseye', 'trixie').map((suite) => ({ suite, isOldApt: false }));
  test.each([...apts, { suite: 'bookworm', isOldApt: true }] as const)(
    'what is not signed with its key, or was altered (%j)',
    async (options) => {
      const at = await machine(options);
      const { answers } = publisher.server;
      at.script = publisher.script((await publisher.otherKey()).keyring);
      await expectRefusal(65, 'not signed with the key that this script brings', () => at.install());
      await expectRefusal(65, 'not signed with the key that this script brings', () => at.install('--dry-run'));
      at.script = publisher.script();

      const alter = (content: Buffer): string => content.toString().replace('Suite: stable', 'Suite: Stable');
      for (const file of ['InRelease', 'Release']) answers.set(`${RELEASE}/${file}`, alter);
      await expectRefusal(65, 'its signature is wrong', () => at.install());

      for (const file of ['InRelease', 'Release.gpg']) answers.set(`${RELEASE}/${file}`, null);
      await expectRefusal(65, 'its signature is wrong', () => at.install());

      // The index of the repository is altered under every name by which apt may request it.
      const evil = (content: Buffer): Buffer => Buffer.from(content.map((byte, i) => (i === 40 ? byte ^ 1 : byte)));
      const names = ['Packages', 'Packages.gz', ...publisher.indexHashes().map((hash) => `by-hash/SHA256/${hash}`)];
      for (const name of names) answers.set(`${INDEX}/${name}`, evil);
      await expectRefusal(65, 'not the one that was signed', () => at.install());
    },
  );

  test.each(suites('bookworm', 'bullseye', 'trixie'))(
    'a package that is not the one that was signed, and leaves a repository that works (%s)',
    async (suite) => {
      const at = await machine({ suite });
      publisher.server.answers.set('/repo/pool/main/k/klatch/klatch_0.2.0_amd64.deb', (content) =>
        Buffer.concat([content, content]),
      );
      const ran = await at.install('--no-database');
      expect(ran).toMatchObject({ code: 65, stderr: expect.stringContaining('not the one that was signed') });
      expect(await at.installed()).toEqual([]);
      publisher.server.answers.clear();
      expect((await at.userUpdate()).code).toBe(0);
      expect((await at.install('--no-database')).code).toBe(0);
    },
  );

  test('a version that there is none of, or that is older than what is installed', async () => {
    const at = await machine();
    await expectRefusal(66, 'does not have klatch 7.7; it has 0.2.0 0.1.0', () => at.install('--version 7.7'));
    await at.install('--no-database');
    const back = await at.install('--no-database --version 0.1.0');
    expect(back).toMatchObject({
      code: 66,
      stderr: expect.stringContaining('klatch 0.2.0 is installed, which is newer'),
    });
    expect(await at.version('klatch')).toBe('0.2.0');
  });

  test('a machine on which another program keeps installing', async () => {
    const at = await machine();
    await at.holdLock(100);
    const ran = await at.install('--wait 3');
    expect(ran).toMatchObject({ code: 75, stderr: expect.stringContaining('more than 3 seconds') });
    expect(await at.installed()).toEqual([]);
  });

  test.each(suites('bookworm', 'bullseye', 'trixie'))(
    'a configuration of apt that would no longer work with it, and takes its own part back (%s)',
    async (suite) => {
      const at = await machine({ suite });
      const { machine: host } = at;
      // The administrator has added the repository before, with other options. apt refuses two such entries.
      await host.write('/etc/apt/sources.list.d/mine.list', `deb [trusted=yes] ${publisher.url} stable main\n`);
      await host.write('/usr/share/keyrings/mine.gpg', 'x');
      await host.write(
        '/etc/apt/sources.list.d/mine.list',
        `deb [signed-by=/etc/mine.gpg] ${publisher.url} stable main\n`,
      );
      const ran = await at.install();
      expect(ran).toMatchObject({
        code: 78,
        stderr: expect.stringContaining('the configuration of apt on this machine'),
      });
      expect(ran.stderr).toContain('Signed-By');
      await host.must(`test ! -e ${LIST}`);
      await host.write('/etc/apt/sources.list.d/mine.list', 'nonsense\n');
      expect(await at.install()).toMatchObject({ code: 78, stderr: expect.stringContaining('Malformed') });
      await host.must('rm /etc/apt/sources.list.d/mine.list');
      await host.write('/etc/apt/preferences.d/no', 'Package: klatch\nPin: version *\nPin-Priority: -1\n');
      expect(await at.install()).toMatchObject({ code: 78, stderr: expect.stringContaining('preferences') });
    },
  );

  test('to exchange a key that works for one that does not', async () => {
    const at = await machine({ isOldApt: true });
    const { machine: host } = at;
    expect((await at.install('--no-database')).code).toBe(0);
    const before = await host.must(`cat ${LIST}; cksum /etc/apt/trusted.gpg.d/klatch-archive-keyring.gpg`);
    // The old apt is replaced by the newer one of the system, and the administrator has added the repository once more.
    await host.must('rm /usr/local/bin/apt-get');
    await host.write(
      '/etc/apt/sources.list.d/mine.list',
      `deb [signed-by=/etc/mine.gpg] ${publisher.url} stable main\n`,
    );
    expect((await at.install()).code).toBe(78);
    expect(await host.must(`cat ${LIST}; cksum /etc/apt/trusted.gpg.d/klatch-archive-keyring.gpg`)).toBe(before);
    await host.must('rm /etc/apt/sources.list.d/mine.list');
    expect((await at.userUpdate()).code).toBe(0);
  });

  test('to blame the network or the key when the clock is wrong', async () => {
    const at = await machine();
    at.script = publisher.script((await publisher.otherKey()).keyring).replace(/^MADE_S=.*$/m, "MADE_S='4000000000'");
    expect((await at.install()).stderr).toContain('The clock of this machine is wrong');
  });
});

describe('install.sh on a full disk', () => {
  test('refuses before it changes anything where the packages would not fit', async () => {
    const at = await machine();
    await publisher.publish(klatch('0.0.1', { installedKib: 900_000_000 }));
    await expectRefusal(73, /the disk is full: .* MiB are needed in \/usr/, () => at.install('--version 0.0.1'));
    await expectRefusal(73, 'MiB are needed in /usr', () => at.install('--dry-run --version 0.0.1'));
  });

  test.each(['/tmp', '/var/log', '/etc/apt/sources.list.d', '/var/cache/apt/archives'])(
    'says so of %s',
    async (folder) => {
      const at = await machine();
      const size = folder.startsWith('/var/cache') ? '64k' : '4k';
      await at.machine.must(`mount -t tmpfs -o size=${size},mode=1777 small ${folder} && mkdir -p ${folder}/partial`);
      await at.machine.sh(`head -c 100000 /dev/zero >${folder}/filler`);
      const ran = await at.install('--no-database');
      expect(ran).toMatchObject({ code: 73, stderr: expect.stringMatching(/full|read-only/) });
      await at.machine.must(`umount ${folder}`);
      expect((await at.userUpdate()).code).toBe(0);
      expect((await at.install('--no-database')).code).toBe(0);
    },
  );

  test.each(suites('bookworm', 'bullseye', 'trixie'))(
    'says so when it fills up while dpkg unpacks, and goes on when there is room (%s)',
    async (suite) => {
      const at = await machine({ suite });
      // The files need more room than the package announces.
      const files = { '/usr/lib/klatch/klatch': 'x'.repeat(3_000_000), '/usr/bin/klatch': '#!/bin/sh\nexit 64\n' };
      await publisher.publish(klatch('0.0.2', { files }));
      await at.machine.must('mkdir /usr/lib/klatch && mount -t tmpfs -o size=1m small /usr/lib/klatch');
      const ran = await at.install('--no-database --version 0.0.2');
      expect(ran).toMatchObject({ code: 73, stderr: expect.stringContaining('the disk is full') });
      await at.machine.must('umount /usr/lib/klatch');
      expect((await at.userUpdate()).code).toBe(0);
      expect((await at.install('--no-database --version 0.0.2')).code).toBe(0);
      expect(await at.version('klatch')).toBe('0.0.2');
    },
  );
});
