import { appendFileSync, copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Trial } from '../../../scripts/package/trial/trial-table.ts';
import { Machine, ROOT, type InsideOptions } from './machine.ts';
import type { Repository } from './repository.ts';
import type { Ran } from './run.ts';

/**
 * The releases of Debian. Each is tested with init scripts and with systemd as process 1. Quick tests run only on
 * bookworm.
 */
export type Suite = 'bookworm' | 'bullseye' | 'trixie';

/** Whether this run is limited to the quick tests (`QUICK=1`), those that .ci/run runs. */
export const isQuick = (process.env['QUICK'] ?? '') !== '';

/** The given releases that this run tests. */
export function suites(...all: readonly Suite[]): readonly Suite[] {
  return all.filter((suite) => !isQuick || suite === 'bookworm');
}

/** A Debian machine for an installation of Klatch. Each `act` adds a line to the table of trial results. */
export class Host {
  readonly machine: Machine;
  /** The name of the machine in the table of trial results. */
  readonly name: string;
  readonly isSystemd: boolean;

  private constructor(machine: Machine, name: string, isSystemd: boolean) {
    this.machine = machine;
    this.name = name;
    this.isSystemd = isSystemd;
  }

  static async start(suite: Suite, init: 'sysv' | 'systemd' = 'sysv'): Promise<Host> {
    const isSystemd = init === 'systemd';
    const folder = join(ROOT, 'build/chroots', isSystemd ? `${suite}-systemd` : suite);
    if (!existsSync(folder)) throw new Error(`${folder} is missing: run the tests by "make package-test"`);
    const host = new Host(
      await Machine.start([folder], isSystemd ? 'systemd' : 'none'),
      `${suite}, ${init}`,
      isSystemd,
    );
    // Without an init process, the scripts of packages start nothing unless a policy permits it.
    if (!isSystemd) await host.machine.write('/usr/sbin/policy-rc.d', '#!/bin/sh\nexit 0\n', '755');
    return host;
  }

  /**
   * Runs a command line, and adds its exit code to the table of trial results. `action` describes command and
   * circumstances there.
   */
  async act(action: string, line: string, options: InsideOptions = {}): Promise<Ran> {
    const ran = await this.machine.sh(line, options);
    const trial: Trial = { system: this.name, action, code: ran.code };
    const file = process.env['KLATCH_TRIALS'];
    if (file !== undefined) appendFileSync(file, `${JSON.stringify(trial)}\n`);
    return ran;
  }

  /** Runs `service klatch ACTION`. `state` describes the circumstances in the table of trial results. */
  service(action: string, state = ''): Promise<Ran> {
    const circumstances = state === '' ? '' : `, ${state}`;
    return this.act(`service klatch ${action}${circumstances}`, `service klatch ${action}`);
  }

  /** Installs with install.sh, as a user would. */
  async install(repository: Repository, flags = ''): Promise<Ran> {
    copyFileSync(join(ROOT, 'build/trials/install.sh'), this.machine.path('/root/install.sh'));
    const line = `sh /root/install.sh --repo ${repository.url} ${flags}`.trimEnd();
    return this.act(`install.sh ${flags}`.trimEnd(), line, { timeoutMs: 300_000 });
  }

  /** Makes apt read the current state of the repository. */
  async update(): Promise<void> {
    await this.machine.must(
      'apt-get update -q -o Dir::Etc::sourcelist=sources.list.d/klatch.list -o Dir::Etc::sourceparts=-',
    );
  }

  /** The installed version of the package `klatch`. */
  async version(): Promise<string> {
    return (await this.machine.must("dpkg-query -W -f '${Version}' klatch")).trim();
  }

  /** The log of the server: the journal, or its log file. */
  async log(): Promise<string> {
    const line = this.isSystemd ? 'journalctl -u klatch -o cat --no-pager' : 'cat /var/log/klatch/klatch.log';
    return this.machine.must(line);
  }

  stop(): Promise<void> {
    return this.machine.stop();
  }
}
