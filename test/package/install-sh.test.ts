import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Publisher, type MachineOptions, type Target } from './support/install-script.ts';
import { suites } from './support/host.ts';
import { ROOT } from './support/machine.ts';
import { mustRun } from './support/run.ts';
import { klatch } from './support/stand-ins.ts';

const KEYRING = '/usr/share/keyrings/klatch-archive-keyring.gpg';
const OLD_KEYRING = '/etc/apt/trusted.gpg.d/klatch-archive-keyring.gpg';
const LIST = '/etc/apt/sources.list.d/klatch.list';

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

/** Starts a machine; the clean-up after the test stops it. */
async function machine(options: MachineOptions = {}): Promise<Target> {
  target = await publisher.machine(options);
  return target;
}

/** The differences between two listings of files. */
function changes(before: readonly string[], after: readonly string[]): string[] {
  const [old, now] = [new Set(before), new Set(after)];
  return [...before.filter((line) => !now.has(line)), ...after.filter((line) => !old.has(line))];
}

/** Only a hang exceeds this time: about 800 shells run, and each may take a while on a busy machine. */
const CUT_OFF_MS = 300_000;
/**
 * The time for which another program holds dpkg's lock: longer than an installation needs to reach it, also on a busy
 * machine.
 */
const LOCK_S = 20;

describe('install.sh', () => {
  test('is plain POSIX shell, to the satisfaction of shellcheck, dash and busybox', async () => {
    const script = join(publisher.folder, 'install.sh');
    await mustRun('sh', ['-c', `cat > ${script}`], { input: publisher.script() });
    for (const file of [script, join(ROOT, 'install.sh')]) {
      await mustRun('shellcheck', ['--shell=sh', file]);
      await mustRun('dash', ['-n', file]);
      await mustRun('busybox', ['sh', '-n', file]);
    }
  });

  describe.each(['dash', 'busybox sh'] as const)('run by %s', (shell) => {
    test('installs server and database, configures nothing, and says what comes next', async () => {
      const { machine: at } = await machine({ shell });
      const { code, stdout, stderr } = await target!.install();
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toBe(`Looking at ${publisher.url} ...
Adding the repository and its key ...
Installing the database: PostgreSQL 15 of this system ...
Installing klatch 0.2.0 ...

Klatch 0.2.0 is installed. It does not run before it is configured. These come next:

  klatch setup
  service klatch start
  klatch admin-link

The last one makes a first group. It prints the address to open in a browser, and the one to post messages to.
`);
      expect(await target!.installed()).toEqual(['klatch', 'postgresql']);
      expect(await at.must(`cat ${LIST}`)).toBe(`deb [arch=amd64 signed-by=${KEYRING}] ${publisher.url} stable main\n`);
      expect(await at.must(`stat -c '%a %U' ${LIST} ${KEYRING}`)).toBe('644 root\n644 root\n');
      expect(await at.must('cat /etc/klatch/server.conf')).toContain('<SERVER_SECRET>');
      expect(await at.must('ls -A /tmp')).toBe('');
      expect(await at.must('stat -c %a /var/log/klatch-install.log')).toBe('640\n');
      expect((await target!.userUpdate()).code).toBe(0);
    });

    test('can be run again, and then changes nothing but its log', async () => {
      const { machine: at } = await machine({ shell });
      await target!.install();
      const before = await target!.files();
      const again = await target!.install();
      expect(again.code).toBe(0);
      const own = /^\/var\/log\/(klatch-install|apt|dpkg|$)|^\/var\/(cache|lib)\/apt|^\/var\/lib\/dpkg\/lock/;
      expect(changes(before, await target!.files()).filter((line) => !own.test(line))).toEqual([]);
      expect(await at.must('cat /var/log/klatch-install.log.1')).toContain('Setting up klatch');
    });

    test('shows in a dry run, without root, what it then does, and changes nothing', async () => {
      const { machine: at } = await machine({ shell });
      const before = await target!.files();
      const asNobody = await target!.install('--dry-run', { by: 'setpriv --reuid 65534 --regid 65534 --clear-groups' });
      const asRoot = await target!.install('--dry-run');
      expect(changes(before, await target!.files())).toEqual([]);
      expect(asNobody).toEqual(asRoot);
      expect(asRoot.code).toBe(0);
      expect(await at.must('ls -A /tmp')).toBe('');

      await target!.install();
      const log = await at.must('cat /var/log/klatch-install.log');
      const done = log
        .split('\n')
        .filter((line) => line.startsWith('+ '))
        .map((line) => line.slice(2));
      const shown = asRoot.stdout
        .split('\n')
        .filter((line) => line.startsWith('  apt-get'))
        .map((line) => line.trim());
      expect(shown).toHaveLength(3);
      // Compares only commands that change something, not those that read the repository.
      expect(done.filter((line) => / (update|install)\b/.test(line) && !line.includes('apt.conf'))).toEqual(shown);
      for (const [, file] of asRoot.stdout.matchAll(/^ {2}write (\S+):/gm)) await at.must(`test -s ${file}`);
    });
  });

  test.each(suites('bookworm', 'bullseye', 'trixie'))('works on %s, and where it was before', async (suite) => {
    await machine({ suite });
    expect(await target!.install()).toMatchObject({ code: 0, stderr: '' });
    expect(await target!.install()).toMatchObject({ code: 0, stderr: '' });
    expect(await target!.installed()).toEqual(['klatch', 'postgresql']);
    expect((await target!.userUpdate()).code).toBe(0);
  });

  test.each(suites('bookworm', 'bullseye', 'trixie'))(
    'trusts a repository with two signatures by either key (%s)',
    async (suite) => {
      await machine({ suite });
      const { keyring, secret } = await publisher.otherKey();
      const url = await publisher.publishWithTwoKeys(secret);
      for (const key of [undefined, keyring]) {
        target!.script = publisher.script(key, url);
        expect(await target!.install('--no-database')).toMatchObject({ code: 0, stderr: '' });
        expect((await target!.userUpdate()).code).toBe(0);
      }
    },
  );

  test('does with the apt of Ubuntu 14.04, and moves the key when apt has become younger', async () => {
    const { machine: at } = await machine({ isOldApt: true, distribution: 'old' });
    const { code, stderr } = await target!.install();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(await at.must(`cat ${LIST}`)).toBe(`deb [arch=amd64] ${publisher.url} stable main\n`);
    expect(await target!.installed()).toEqual(['klatch', 'klatch-postgresql']);
    await at.must(`test -s ${OLD_KEYRING} && test ! -e ${KEYRING}`);
    expect((await target!.userUpdate()).code).toBe(0);

    await at.must('rm /usr/local/bin/apt-get');
    expect((await target!.install()).code).toBe(0);
    await at.must(`test -s ${KEYRING} && test ! -e ${OLD_KEYRING}`);
    expect((await target!.userUpdate()).code).toBe(0);
  });

  test('does nothing at all when its download was cut off, wherever that was', async () => {
    const { machine: at } = await machine();
    const script = publisher.script();
    await at.write('/root/install.sh', script);
    const before = await target!.files();
    const lines = script.split('\n').length;
    // The script is cut after each line, and after each byte near its end. A script that lacks only its last newline is
    // complete.
    const said = await at.must(
      `for n in $(seq 1 ${lines - 2}); do head -n $n /root/install.sh | sh 2>/dev/null; done
       for n in $(seq 2 60); do head -c -$n /root/install.sh | sh 2>/dev/null; done; true`,
      { timeoutMs: CUT_OFF_MS },
    );
    expect(said).toBe('');
    expect(changes(before, await target!.files())).toEqual([]);
  });

  test('takes nothing from its standard input, on which it may have come itself', async () => {
    const { machine: at } = await machine();
    await at.write('/root/install.sh', `${publisher.script()}\necho 'after the end'\n`);
    const { code, stdout } = await at.sh('sh <root/install.sh');
    expect({ code, end: stdout.includes('after the end') }).toEqual({ code: 0, end: false });
    expect(await target!.installed()).toEqual(['klatch', 'postgresql']);
  });

  test.each(['--no-database', '--embedded'])(
    'installs the version that is asked for, and apt upgrades it later (%s)',
    async (database) => {
      const { machine: at } = await machine();
      expect(await target!.install(`--version 0.1.0 ${database}`)).toMatchObject({ code: 0, stderr: '' });
      expect(await target!.version('klatch')).toBe('0.1.0');
      await at.must('apt-get -q update && apt-get -qy upgrade');
      expect(await target!.version('klatch')).toBe('0.2.0');
    },
  );

  test('upgrades when it is run again, and leaves a configured server its database', async () => {
    const { machine: at } = await machine();
    await target!.install('--version=0.1.0 --no-database');
    await at.write('/etc/klatch/server.conf', 'secret: "x"\n');
    const { code, stdout } = await target!.install();
    expect(code).toBe(0);
    expect(stdout).toContain('Klatch 0.2.0 is installed and configured.');
    expect(await at.must('cat /etc/klatch/server.conf')).toBe('secret: "x"\n');
    expect(await target!.installed()).toEqual(['klatch']);
  });

  test('keeps the language of the caller, except for messages', async () => {
    const { machine: at } = await machine();
    const spy = '#!/bin/sh\nenv | grep -E "^(LC_|LANG)" | sort >>/root/locale\nexec /usr/bin/apt-get "$@"\n';
    await at.write('/usr/local/bin/apt-get', spy, '755');
    await target!.install('', { env: { LC_ALL: 'xx_XX.UTF-8', LANG: 'C' } });
    await target!.install('', { env: {} });
    const lines = new Set((await at.must('cat /root/locale')).trim().split('\n'));
    lines.delete('LC_ALL=xx_XX.UTF-8');
    expect([...lines].sort()).toEqual(['LANG=C', 'LANG=C.UTF-8', 'LC_MESSAGES=C']);
  });

  test('may be started twice at the same time', async () => {
    await machine();
    const both = await Promise.all([target!.install(), target!.install()]);
    expect(both.map(({ code, stderr }) => ({ code, stderr }))).toEqual([1, 2].map(() => ({ code: 0, stderr: '' })));
    expect(await target!.installed()).toEqual(['klatch', 'postgresql']);
  });

  test('waits for another installation to end', async () => {
    await machine();
    await target!.holdLock(LOCK_S);
    const { code, stdout } = await target!.install();
    expect(code).toBe(0);
    expect(stdout.match(/another program is installing packages/g)).toHaveLength(1);
    expect(await target!.installed()).toEqual(['klatch', 'postgresql']);
  });
});

describe('the database that install.sh chooses', () => {
  const prefixed = (name: string): string => `Installing the database: ${name}`;

  test.each([
    [
      'the system offers a new one',
      { distribution: 'new' },
      '',
      ['klatch', 'postgresql'],
      'PostgreSQL 15 of this system',
    ],
    [
      'the system offers an old one',
      { distribution: 'old' },
      '',
      ['klatch', 'klatch-postgresql'],
      'this system offers 9.3',
    ],
    ['the system offers none', { distribution: 'empty' }, '', ['klatch', 'klatch-postgresql'], 'offers no PostgreSQL'],
    [
      'the archive of the system is gone',
      { distribution: 'dead' },
      '',
      ['klatch', 'klatch-postgresql'],
      'offers no PostgreSQL',
    ],
    ['the system has not read its lists', { distribution: 'unread' }, '', ['klatch', 'postgresql'], 'PostgreSQL 15'],
    [
      'the private one is asked for',
      { distribution: 'new' },
      '--embedded',
      ['klatch', 'klatch-postgresql'],
      'klatch-postgresql ...',
    ],
  ] as const)('where %s', async (_, options, args, installed, said) => {
    await machine(options);
    const { code, stdout, stderr } = await target!.install(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(await target!.installed()).toEqual(installed);
    expect(stdout.split('\n').find((line) => line.startsWith(prefixed('')))).toContain(said);
    expect(stdout).toContain(
      installed.includes('klatch-postgresql' as never) ? ' klatch setup --embedded\n' : ' klatch setup\n',
    );
  });

  test('is none where none is wanted', async () => {
    await machine();
    const { code, stdout } = await target!.install('--no-database');
    expect({ code, said: stdout.includes('database') }).toEqual({ code: 0, said: false });
    expect(await target!.installed()).toEqual(['klatch']);
  });

  test('is the one that is there, if it is new enough', async () => {
    const { machine: at } = await machine();
    await at.write('/usr/lib/postgresql/9.6/bin/postgres', '', '755');
    await at.write('/usr/lib/postgresql/13/bin/postgres', '', '755');
    expect((await target!.install('--dry-run')).stdout).toContain('there is PostgreSQL 13');
    expect((await target!.install()).code).toBe(0);
    expect(await target!.installed()).toEqual(['klatch']);
  });

  test('is another one than an old one that is there', async () => {
    const { machine: at } = await machine();
    await at.write('/usr/lib/postgresql/9.6/bin/postgres', '', '755');
    expect((await target!.install()).code).toBe(0);
    expect(await target!.installed()).toEqual(['klatch', 'postgresql']);
  });

  test('is one that runs without a package', async () => {
    const { machine: at } = await machine();
    await at.write('/srv/db/PG_VERSION', '16\n');
    await at.write('/run/postgresql/.s.PGSQL.5432.lock', '1\n/srv/db\n1\n5432\n');
    await at.must('ls /var/run/postgresql');
    expect((await target!.install('--dry-run')).stdout).toContain('there is PostgreSQL 16');
  });

  test('stays the private one after the system has got a new one', async () => {
    await machine();
    await target!.install('--embedded');
    const { stdout } = await target!.install();
    expect(await target!.installed()).toEqual(['klatch', 'klatch-postgresql']);
    expect(stdout).toContain('klatch setup --embedded');
  });

  test.each([[{ isLost: false }], [{ isLost: true }]])(
    'is asked for once more when the lists are out of date, and else the private one is taken (%j)',
    async ({ isLost }) => {
      await machine();
      const deb = '/new/postgresql_15+248_amd64.deb';
      const list = '/new/Packages';
      let asked = 0;
      publisher.server.answers.set(deb, (content) => {
        asked++;
        return content;
      });
      // The list of packages that apt has names a file that does not exist, until apt downloads the list again.
      await target!.machine.must("sed -i 's/15+248_amd64/15+247_amd64/' /var/lib/apt/lists/*_new_*Packages");
      if (isLost) {
        publisher.server.answers.set(deb, null);
        publisher.server.answers.set(list, null);
      }
      const { code, stdout } = await target!.install();
      expect(code).toBe(0);
      expect(stdout).toContain('Refreshing the package lists');
      expect(await target!.installed()).toEqual(['klatch', isLost ? 'klatch-postgresql' : 'postgresql']);
      expect(asked).toBe(isLost ? 0 : 1);
    },
  );
});

describe('a new install.sh', () => {
  test('holds the key and the address, and no placeholder', () => {
    const script = publisher.script();
    expect(script).not.toMatch(/@[A-Z_]+@/);
    expect(script).toContain(`REPO='${publisher.url}'`);
    const base64 = /<<'KEY'\n([^]*?)\nKEY\n/.exec(script)![1]!;
    expect(Buffer.from(base64, 'base64')).toEqual(
      readFileSync(join(publisher.folder, 'www/repo/klatch-archive-keyring.gpg')),
    );
  });

  test('is not made with an address that could smuggle something into the configuration of apt', () => {
    for (const url of ["http://x/' ; rm", 'ftp://x', 'http://a b', 'http://x\ndeb http://y', 'http://user:word@x/']) {
      expect(() => publisher.script(undefined, url)).toThrow('REPO_URL');
    }
  });

  test('offers later versions as soon as they are published', async () => {
    await machine();
    await publisher.publish(klatch('0.3.0'));
    expect((await target!.install('--no-database')).stdout).toContain('Klatch 0.3.0 is installed');
  });
});
