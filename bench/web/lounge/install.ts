import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUILD, ROOT } from '../../../scripts/package/paths.ts';
import { run } from '../../../scripts/package/run.ts';
import { requireTools } from '../../../scripts/package/tools.ts';
import { IRC_PROGRAM } from './irc-server.ts';

const PEERS = join(BUILD, 'peers');
const MANIFEST = 'package.json';

interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

/**
 * Installs the chat program The Lounge into build/, and the IRC server; neither is part of the project. Returns the
 * script that starts The Lounge, and its version. The Lounge depends on a commit of irc-framework on GitHub; the
 * manifest replaces that commit by the release on npm, which a machine without GitHub can install too.
 */
export function installLounge(): { readonly script: string; readonly version: string } {
  requireTools([IRC_PROGRAM], { startsDaemons: false });
  const wanted = readManifest(join(ROOT, 'bench/peers')).dependencies['thelounge']!;
  const folder = join(PEERS, 'node_modules/thelounge');
  if (!existsSync(join(folder, MANIFEST)) || readManifest(folder).version !== wanted) {
    console.error(`  installing The Lounge ${wanted} into build/peers ...`);
    mkdirSync(PEERS, { recursive: true });
    copyFileSync(join(ROOT, 'bench/peers', MANIFEST), join(PEERS, MANIFEST));
    // npm omits the optional store of messages, a native module that it would build on this machine.
    run('npm', ['install', '--prefix', PEERS, '--no-package-lock', '--omit=optional', '--no-audit', '--no-fund']);
  }
  return { script: join(folder, 'index.js'), version: wanted };
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8')) as Manifest;
}
