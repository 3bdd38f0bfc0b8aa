import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { buildVersion } from '../../../scripts/package/paths.ts';
import { Machine, ROOT } from './machine.ts';
import { mustRun } from './run.ts';

const FOLDER = join(ROOT, 'build/bare');
/** The programs that tests and initdb of PostgreSQL call by name. One static busybox serves as all of them. */
const APPLETS = ['sh', 'cat', 'chmod', 'chown', 'dirname', 'env', 'grep', 'id', 'kill', 'ln', 'ls', 'mkdir', 'ps'];
const MORE_APPLETS = ['readlink', 'setsid', 'sleep', 'timeout', 'touch', 'uname', 'unzip', 'wc'];

/** The path of a package that these tests use, or of its zip. */
export function trialFile(name: 'klatch' | 'klatch-postgresql', kind: 'deb' | 'zip'): string {
  const folder = join(ROOT, 'build/trials/packages');
  // The folder also contains later versions of the server.
  const version = name === 'klatch' ? buildVersion() : '\\d[^_-]*(-\\d+)?';
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const pattern = kind === 'deb' ? `${name}_${version}_amd64\\.deb` : `${name}-${version}-linux-x64\\.zip`;
  const found = names.find((file) => new RegExp(`^${pattern}$`).test(file));
  if (found === undefined) throw new Error(`${folder} has no ${pattern}: run the tests by "make package-test"`);
  return join(folder, found);
}

/**
 * Starts a machine whose root has a static busybox, four device nodes and /proc, but no C library, users or other
 * files. Packages are only unpacked into it. It also contains the program `linux-3.13` (linux-3.13.c).
 */
export async function startBare(name: string, packages: readonly string[] = []): Promise<Machine> {
  const root = join(FOLDER, name);
  rmSync(root, { recursive: true, force: true });
  mkdirSync(join(root, 'bin'), { recursive: true });
  const busybox = await mustRun('sh', ['-c', 'command -v busybox']);
  copyFileSync(busybox.trim(), join(root, 'bin/busybox'));
  for (const applet of [...APPLETS, ...MORE_APPLETS]) symlinkSync('busybox', join(root, 'bin', applet));
  const filter = join(import.meta.dirname, 'linux-3.13.c');
  await mustRun('gcc', ['-static', '-O1', '-Wall', '-Werror', '-o', join(root, 'bin/linux-3.13'), filter]);
  for (const file of packages) await mustRun('dpkg-deb', ['-x', file, root]);
  return Machine.start([root], 'bare');
}

/** Adds users and hosts to a machine, in the files in which an Ubuntu 14.04 looks them up. */
export async function addLookUps(machine: Machine, users: readonly string[], hosts: readonly string[]): Promise<void> {
  await machine.write('/etc/nsswitch.conf', 'passwd: compat\ngroup: compat\nhosts: files dns\n');
  await machine.write('/etc/passwd', ['root:x:0:0:root:/root:/bin/sh', ...users, ''].join('\n'));
  await machine.write(
    '/etc/group',
    ['root:x:0:', ...users.map((user) => `${user.split(':')[0]}:x:${user.split(':')[3]}:`), ''].join('\n'),
  );
  await machine.write('/etc/hosts', ['127.0.0.1 localhost', ...hosts, ''].join('\n'));
}

/** A self-signed certificate for a name, with its key. */
export async function makeCertificate(folder: string, name: string): Promise<{ key: string; cert: string }> {
  mkdirSync(folder, { recursive: true });
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`];
  const kind = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2'];
  await mustRun('openssl', ['req', ...kind, ...subject, '-keyout', key, '-out', cert]);
  return { key, cert };
}
