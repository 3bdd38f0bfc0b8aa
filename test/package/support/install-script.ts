import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fillInstallScript } from '../../../scripts/package/install-sh.ts';
import { KEYRING, publish } from '../../../scripts/package/repo.ts';
import { SigningKey } from '../../../scripts/package/signing-key.ts';
import { FileServer } from './file-server.ts';
import type { Suite } from './host.ts';
import { Machine, ROOT } from './machine.ts';
import { mustRun, type Ran, type RunOptions } from './run.ts';
import { build, klatch, klatchPostgresql, makeDistribution, postgresql, type StandIn } from './stand-ins.ts';

/**
 * The state of the package archive of a machine's distribution:
 * - `new`: it has PostgreSQL 15.
 * - `old`: it has PostgreSQL 9.3.
 * - `empty`: it has no PostgreSQL.
 * - `dead`: it does not answer.
 * - `unread`: apt has not read its lists yet.
 */
export type Distribution = 'new' | 'old' | 'empty' | 'dead' | 'unread';

export interface MachineOptions {
  readonly suite?: Suite;
  readonly distribution?: Distribution;
  /** The shell that runs the script. `busybox sh` has its own versions of the usual programs. */
  readonly shell?: 'dash' | 'busybox sh';
  /** Whether apt-get reports version 1.0.1, as on Ubuntu 14.04. */
  readonly isOldApt?: boolean;
}

/**
 * Imitates the apt-get of Ubuntu 14.04 as far as install.sh sees it: its version, its missing options, and its update.
 * The update only warns about bad signatures, continues, and exits 0.
 */
const OLD_APT = `#!/bin/sh
[ "$1" = --version ] && { echo 'apt 1.0.1ubuntu2 for amd64 compiled on Jan 12 2016 21:58:14'; exit; }
case "$*" in
  *allow-downgrades*|*error-on*|*./*) echo "E: apt 1.0 does not know this: $*"; exit 100;;
  *update*)
    /usr/bin/apt-get -o Acquire::AllowInsecureRepositories=1 -o Acquire::AllowDowngradeToInsecureRepositories=1 "$@" |
      sed 's/^E: /W: /'
    exit 0;;
esac
exec /usr/bin/apt-get "$@"
`;

/**
 * What a publisher of Klatch serves: a repository with two versions of stand-ins, archives of distributions, and the
 * matching install.sh. Stand-ins are small packages that replace the real ones.
 */
export class Publisher {
  readonly folder: string;
  readonly server: FileServer;
  readonly #key: SigningKey;

  private constructor(folder: string, server: FileServer, key: SigningKey) {
    this.folder = folder;
    this.server = server;
    this.#key = key;
  }

  static async start(): Promise<Publisher> {
    const folder = mkdtempSync(join(tmpdir(), 'klatch-publisher-'));
    const throwAwayFile = join(folder, 'key.asc');
    const key = new SigningKey({ wanted: undefined, passphraseFile: undefined, gnupgHome: undefined, throwAwayFile });
    key.open();
    const publisher = new Publisher(folder, await FileServer.start(join(folder, 'www')), key);
    await publisher.publish(klatch('0.1.0'), klatch('0.2.0'), klatchPostgresql());
    await makeDistribution(join(folder, 'www/new'), [postgresql('15+248')]);
    await makeDistribution(join(folder, 'www/old'), [postgresql('9.3+154ubuntu1.1')]);
    await makeDistribution(join(folder, 'www/empty'), [{ name: 'something', version: '1' }]);
    return publisher;
  }

  get url(): string {
    return `${this.server.url}/repo`;
  }

  /** Adds packages to the repository. */
  async publish(...standIns: readonly StandIn[]): Promise<void> {
    const packages: string[] = [];
    for (const each of standIns) packages.push(await build(join(this.folder, 'packages'), each));
    publish({ folder: join(this.folder, 'www/repo'), packages, dateS: 1_760_000_000, key: this.#key });
  }

  /** The text of install.sh as `make install-sh` makes it; by default with the key of this repository. */
  script(keyringFile = join(this.folder, 'www/repo', KEYRING), repoUrl: string | undefined = this.url): string {
    const template = readFileSync(join(ROOT, 'install.sh'), 'utf8');
    return fillInstallScript(template, { version: '0.2.0', repoUrl, keyringFile, madeS: 1_700_000_000 });
  }

  /** The hashes of the index files: apt may request the files by these names. */
  indexHashes(): string[] {
    const release = readFileSync(join(this.folder, 'www/repo/dists/stable/Release'), 'utf8');
    return [...release.matchAll(/^ ([0-9a-f]{64}) /gm)].map(([, hash]) => hash!);
  }

  /** Generates another key: resolves to its public keyring and the file of its secret key. */
  async otherKey(): Promise<{ keyring: string; secret: string }> {
    const home = mkdtempSync(join(this.folder, 'home-'));
    const gpg = ['--homedir', home, '--batch', '--quiet'];
    const [keyring, secret] = [join(home, 'other.gpg'), join(home, 'other.asc')];
    await mustRun('gpg', [...gpg, '--passphrase', '', '--quick-generate-key', 'Other', 'rsa2048', 'sign', 'never']);
    await mustRun('gpg', [...gpg, '--output', keyring, '--export']);
    await mustRun('gpg', [...gpg, '--output', secret, '--armor', '--export-secret-keys']);
    await mustRun('gpgconf', ['--homedir', home, '--kill', 'all']);
    return { keyring, secret };
  }

  /** Publishes a second repository, signed with the key of the first one and with another key. Resolves to its URL. */
  async publishWithTwoKeys(secret: string): Promise<string> {
    const wanted = `${join(this.folder, 'key.asc')},${secret}`;
    const key = new SigningKey({ wanted, passphraseFile: undefined, gnupgHome: undefined, throwAwayFile: '' });
    try {
      key.open();
      const packages = [join(this.folder, 'packages/klatch_0.2.0_amd64.deb')];
      publish({ folder: join(this.folder, 'www/both'), packages, dateS: 1_760_000_000, key });
    } finally {
      key.close();
    }
    return `${this.server.url}/both`;
  }

  /** Starts a new Debian machine with this distribution. */
  async machine(options: MachineOptions = {}): Promise<Target> {
    const { suite = 'bookworm', distribution = 'new', shell = 'dash', isOldApt = false } = options;
    const debian = join(ROOT, 'build/chroots', suite);
    if (!existsSync(debian)) throw new Error(`${debian} is missing: run the tests by "make package-test"`);
    const machine = await Machine.start([debian]);
    try {
      const target = new Target(machine, this, shell);
      await machine.must('rm -rf /var/lib/apt/lists/*_* /etc/apt/sources.list.d/* /var/cache/apt/*.bin');
      const source = distribution === 'unread' || distribution === 'dead' ? 'new' : distribution;
      await machine.write('/etc/apt/sources.list', `deb [trusted=yes] ${this.server.url}/${source} ./\n`);
      if (distribution === 'dead')
        await machine.write('/etc/apt/sources.list', 'deb http://127.0.0.1:9/gone stable main\n');
      else if (distribution !== 'unread') await machine.must('apt-get -q update');
      if (isOldApt) await machine.write('/usr/local/bin/apt-get', OLD_APT, '755');
      if (shell === 'busybox sh') cpSync('/bin/busybox', machine.path('/usr/local/bin/busybox'), { dereference: true });
      return target;
    } catch (error) {
      await machine.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#key.close();
    await this.server.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A machine on which install.sh runs. */
export class Target {
  readonly machine: Machine;
  /** The script that `install` runs. */
  script: string;
  readonly #shell: string;

  constructor(machine: Machine, publisher: Publisher, shell: string) {
    this.machine = machine;
    this.script = publisher.script();
    this.#shell = shell;
  }

  /** Runs install.sh as root, or through the given command (`setpriv …`). */
  async install(args = '', options: Omit<RunOptions, 'cwd'> & { readonly by?: string } = {}): Promise<Ran> {
    const { by = '', ...rest } = options;
    await this.machine.write('/root/install.sh', this.script);
    await this.machine.must('chmod 755 /root');
    return this.machine.sh(`${by} ${this.#shell} /root/install.sh ${args}`, rest);
  }

  /** The installed version of a package; empty if it is not installed. */
  async version(name: string): Promise<string> {
    const { stdout } = await this.machine.sh(`dpkg-query -W -f='\${Status} \${Version}' ${name}`);
    return stdout.startsWith('install ok installed ') ? stdout.slice('install ok installed '.length) : '';
  }

  /** The names of the installed stand-ins. */
  async installed(): Promise<string[]> {
    const names = ['klatch', 'klatch-postgresql', 'postgresql'];
    const versions = await Promise.all(names.map((name) => this.version(name)));
    return names.filter((_, i) => versions[i] !== '');
  }

  /**
   * Lists every file outside of the folders for temporary data, with its size, times, mode and owner. A change of a
   * file shows in these.
   */
  async files(): Promise<string[]> {
    const pruned = ['/proc', '/dev', '/run', '/tmp', '/root', '/sys'].map((path) => `-path ${path}`).join(' -o ');
    // Leaves out the times of folders: creating and removing a file in a folder changes them, too.
    const printed = "-type d -printf '%p %m %U\\n' -o -printf '%p %s %T@ %C@ %m %U\\n'";
    const line = `find / -mindepth 1 \\( ${pruned} \\) -prune -o \\( ${printed} \\)`;
    return (await this.machine.must(line)).trim().split('\n').sort();
  }

  /** Updates all package lists as a user does, which has to work after every refusal. */
  async userUpdate(): Promise<Ran> {
    return this.machine.sh('/usr/bin/apt-get -q update -o APT::Update::Error-Mode=any');
  }

  /** Makes another program hold dpkg's lock from now on, for this many seconds. */
  async holdLock(seconds: number): Promise<void> {
    const lock = 'open(F, ">>", "/var/lib/dpkg/lock-frontend"); $l = pack("ssx4qqlx4", F_WRLCK, 0, 0, 0, 0);';
    const hold = `use Fcntl; ${lock} fcntl(F, F_SETLK, $l) or die; print "locked\\n"; close STDOUT; sleep ${seconds}`;
    const wait = 'until grep -q locked /tmp/locked; do sleep 0.1; done; rm /tmp/locked';
    await this.machine.must(`perl -e '${hold}' >/tmp/locked 2>&1 & ${wait}`);
  }

  async stop(): Promise<void> {
    await this.machine.stop();
  }
}
