import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildVersion, DIST, ROOT, sourceDateEpoch } from './paths.ts';
import { KEYRING, REPO } from './repo.ts';
import { keysOf } from './signing-key.ts';
import { requireTools } from './tools.ts';

const BASE64_COLUMNS = 76;
/** Matches an address of a repository, as install.sh does: no character could end a line or a word of apt's sources. */
const REPO_URL = /^(https?:\/\/|file:\/)[0-9A-Za-z.:/_~%+,=-]+$/;

/** The values that replace the placeholders in the template of install.sh. */
export interface InstallScriptOptions {
  readonly version: string;
  /** Address of the package repository; without one, the caller of install.sh has to name it. */
  readonly repoUrl: string | undefined;
  /** The binary keyring of the repository's signing key. */
  readonly keyringFile: string;
  /** The date of the script, in seconds since 1970. */
  readonly madeS: number;
}

/** `make install-sh`: makes dist/install.sh, and puts it beside its repository. Returns the path. */
export function makeInstallScript(): string {
  requireTools(['gpg']);
  const keyringFile = join(REPO, KEYRING);
  if (!existsSync(keyringFile)) throw new Error('install.sh needs the key of the repository: `make repo` first');
  const repoUrl = process.env['REPO_URL'] || undefined;
  const script = fillInstallScript(readFileSync(join(ROOT, 'install.sh'), 'utf8'), {
    version: buildVersion(),
    repoUrl,
    keyringFile,
    madeS: sourceDateEpoch(),
  });
  if (repoUrl === undefined) console.error('  no REPO_URL: this install.sh will want --repo');
  const file = join(DIST, 'install.sh');
  writeFileSync(file, script, { mode: 0o755 });
  copyFileSync(file, join(REPO, 'install.sh.part'));
  renameSync(join(REPO, 'install.sh.part'), join(REPO, 'install.sh'));
  return file;
}

/** Fills the template of install.sh. Throws for an address that apt would refuse. */
export function fillInstallScript(template: string, options: InstallScriptOptions): string {
  const { version, keyringFile, madeS } = options;
  const repoUrl = (options.repoUrl ?? '').replace(/\/+$/, '');
  if (repoUrl !== '' && !REPO_URL.test(repoUrl)) {
    throw new Error(`REPO_URL is "${repoUrl}": it has to be an address such as http://packages.example.org/klatch`);
  }
  const lines =
    readFileSync(keyringFile)
      .toString('base64')
      .match(new RegExp(`.{1,${BASE64_COLUMNS}}`, 'g')) ?? [];
  const values: Readonly<Record<string, string>> = {
    VERSION: version,
    REPO_URL: repoUrl,
    KEY_FINGERPRINT: keysOf(keyringFile)
      .map(({ fingerprint }) => fingerprint)
      .join(' and '),
    MADE_S: String(madeS),
    KEY: lines.join('\n'),
  };
  return template.replaceAll(/@([A-Z_]+)@/g, (whole, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`install.sh wants ${whole}, which nobody puts in`);
    return value;
  });
}
