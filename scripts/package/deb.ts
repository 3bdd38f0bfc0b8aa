import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { continued, fill } from './fields.ts';
import { listLibraries, noticesOf } from './licences.ts';
import type { Parts } from './parts.ts';
import { BUILD, buildVersion, DIST, ROOT, sourceDateEpoch } from './paths.ts';
import { run, step } from './run.ts';
import { Stage } from './stage.ts';

const MAINTAINER_SCRIPTS = ['preinst', 'postinst', 'prerm', 'postrm'];

/** Makes the package of the server, dist/klatch_<version>_amd64.deb, and returns its path. */
export function makeDeb(parts: Parts): string {
  const version = buildVersion();
  step(`laying out klatch ${version}`);
  const stage = new Stage(join(BUILD, 'deb/klatch'));
  stageProgram(stage, parts);
  stageService(stage);
  stageDocuments(stage, parts);
  return packDeb(stage, { name: 'klatch', version, epoch: sourceDateEpoch() });
}

function stageProgram(stage: Stage, { binary, runtime, bundle }: Parts): void {
  stage.copy(binary, 'usr/lib/klatch/klatch', 0o755);
  stage.copy(runtime.folder, 'usr/lib/klatch/rt');
  stage.link('usr/bin/klatch', '../lib/klatch/klatch');
  stage.copy(join(ROOT, 'etc/klatch'), 'usr/share/klatch');
  const completion = run(process.execPath, [join(bundle.folder, 'klatch.cjs'), 'completion', 'bash']);
  stage.write('usr/share/bash-completion/completions/klatch', completion);
}

function stageService(stage: Stage): void {
  stage.copy(join(ROOT, 'debian/klatch.init'), 'etc/init.d/klatch', 0o755);
  stage.copy(join(ROOT, 'debian/klatch.default'), 'etc/default/klatch');
  stage.copy(join(ROOT, 'debian/klatch.logrotate'), 'etc/logrotate.d/klatch');
  // systemd reads this folder on old and new systems. The deb-systemd-helper of Ubuntu 14.04 reads no other folder.
  stage.copy(join(ROOT, 'systemd/klatch.service'), 'lib/systemd/system/klatch.service');
  for (const folder of ['etc/klatch', 'var/lib/klatch', 'var/log/klatch']) stage.folder(folder);
}

function stageDocuments(stage: Stage, { runtime, bundle }: Parts): void {
  for (const page of readdirSync(join(ROOT, 'docs/man'))) {
    const [, section] = /\.(\d)$/.exec(page) ?? [];
    if (section === undefined) continue;
    stage.writePacked(`usr/share/man/man${section}/${page}.gz`, readFileSync(join(ROOT, 'docs/man', page)));
  }
  const documents = 'usr/share/doc/klatch';
  stage.writePacked(`${documents}/changelog.gz`, fill('debian/changelog', { VERSION: buildVersion() }));
  stage.writePacked(`${documents}/third-party-notices.gz`, noticesOf(bundle.libraries));
  const copyright = fill('debian/copyright', {
    LIBRARIES: continued(listLibraries(bundle.libraries)),
    RUNTIME_VERSIONS: continued(runtime.packages),
  });
  stage.write(`${documents}/copyright`, copyright);
}

/** The name and version of a package, and the date of all its files, in seconds since 1970. */
interface Identity {
  readonly name: string;
  readonly version: string;
  readonly epoch: number;
}

/** Adds the control files of debian/ to a laid out package, and packs it for dpkg 1.17 (Ubuntu 14.04) and newer. */
export function packDeb(stage: Stage, { name, version, epoch }: Identity): string {
  const source = (file: string): string => join('debian', `${name}.${file}`);
  const overrides = join(ROOT, source('lintian-overrides'));
  if (existsSync(overrides)) stage.copy(overrides, `usr/share/lintian/overrides/${name}`);
  stage.settleModes();
  const sizeKib = stage.installedKib();
  const control = fill(source('control'), { VERSION: version, INSTALLED_SIZE: String(sizeKib) });
  stage.write('DEBIAN/md5sums', stage.md5sums());
  stage.write('DEBIAN/control', control);
  for (const script of MAINTAINER_SCRIPTS) {
    if (existsSync(join(ROOT, source(script)))) stage.write(`DEBIAN/${script}`, fill(source(script), {}), 0o755);
  }
  for (const list of ['conffiles', 'triggers']) {
    if (existsSync(join(ROOT, source(list)))) stage.copy(join(ROOT, source(list)), `DEBIAN/${list}`);
  }
  stage.date(epoch);
  const deb = join(DIST, `${name}_${version}_amd64.deb`);
  step(`packing ${name}_${version}_amd64.deb`);
  const flags = ['--root-owner-group', '-Zxz', '--no-uniform-compression'];
  const env = { ...process.env, SOURCE_DATE_EPOCH: String(epoch) };
  run('dpkg-deb', [...flags, '--build', stage.root, deb], { env });
  return deb;
}
