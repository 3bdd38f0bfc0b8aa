import { mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { PROGRAMS, stageCompanion } from './companion.ts';
import { fill } from './fields.ts';
import { noticesOf } from './licences.ts';
import type { Parts } from './parts.ts';
import { BUILD, buildVersion, DIST, postgresqlVersion, ROOT, sourceDateEpoch } from './paths.ts';
import { run, step } from './run.ts';
import { Stage } from './stage.ts';

/** Level of zip, from 1 (fastest) to 9 (smallest). */
const RELEASE_LEVEL = 9;
const COMMON_LICENCES = '/usr/share/common-licenses';

/** Makes the release zip, dist/klatch-<version>-linux-x64.zip, which unpacks to klatch-<version>/. */
export function makeZip({ binary, runtime, bundle }: Parts, level = RELEASE_LEVEL): string {
  const version = buildVersion();
  const name = `klatch-${version}`;
  const stage = new Stage(join(BUILD, 'zip', name));
  stage.copy(join(ROOT, 'scripts/package/launcher.sh'), 'bin/klatch', 0o755);
  stage.copy(binary, 'lib/klatch/klatch', 0o755);
  stage.copy(runtime.folder, 'lib/klatch/rt');
  for (const file of ['server.conf.example', 'server.conf.example-minimal']) {
    stage.copy(join(ROOT, 'etc/klatch', file), `conf/${file}`);
  }
  stage.copy(join(ROOT, 'docs/man'), 'share/man');
  stage.write(
    'share/bash-completion/klatch',
    run(process.execPath, [join(bundle.folder, 'klatch.cjs'), 'completion', 'bash']),
  );
  stage.write('INSTALL.txt', fill('scripts/package/zip-install.txt', { VERSION: version }));
  stage.copy(join(ROOT, 'CHANGELOG.md'), 'CHANGELOG.md');
  stage.write('licences/third-party-notices.txt', noticesOf(bundle.libraries));
  stage.write('licences/c-library.txt', `${runtime.packages.join('\n')}\n`);
  for (const file of ['LGPL-2.1', 'GPL-3']) stage.copy(join(COMMON_LICENCES, file), `licences/${file}.txt`);
  return pack(stage, `${name}-linux-x64.zip`, level);
}

/**
 * Makes the zip of the private PostgreSQL programs, which unpacks to postgresql/ and belongs beside the server's bin.
 */
export function makeCompanionZip(level = RELEASE_LEVEL): string {
  const stage = new Stage(join(BUILD, 'zip/postgresql'));
  stageCompanion(stage, '.', null);
  mkdirSync(stage.at('libexec'));
  for (const program of PROGRAMS) {
    renameSync(stage.at(`bin/${program}`), stage.at(`libexec/${program}`));
    stage.copy(join(ROOT, 'scripts/package/postgresql-launcher.sh'), `bin/${program}`, 0o755);
  }
  stage.write('LICENCE.txt', readFileSync(join(ROOT, 'debian/klatch-postgresql.copyright')));
  return pack(stage, `klatch-postgresql-${postgresqlVersion()}-linux-x64.zip`, level);
}

function pack(stage: Stage, file: string, level: number): string {
  step(`packing ${file}`);
  stage.settleModes();
  stage.date(sourceDateEpoch());
  const zip = join(DIST, file);
  rmSync(zip, { force: true });
  const folder = stage.root.slice(stage.root.lastIndexOf('/') + 1);
  const cwd = join(stage.root, '..');
  // The entries are sorted, because zip keeps their order; -X omits details of the machine, such as owners.
  const input = [`${folder}/`, ...stage.entries().map((entry) => `${folder}/${entry}`)].join('\n');
  const flags = ['-X', `-${level}`, '-q', '-y'];
  run('zip', [...flags, zip, '-@'], { cwd, input, stdio: 'pipe', env: { ...process.env, TZ: 'UTC' } });
  return zip;
}
