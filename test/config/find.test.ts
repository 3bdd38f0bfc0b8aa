import { describe, expect, test } from '@jest/globals';
import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { findConfigFile } from '../../src/config/tree.ts';
import { ConfigNotFoundError } from '../../src/config/problem.ts';
import { Folder } from './folder.ts';

describe('the configuration file', () => {
  test('is the one of --config, before that of the environment, before the one beside the program', () => {
    using folder = new Folder();
    const programBinDir = join(folder.path, 'bin');
    const beside = folder.write('conf/server.conf', '');
    const fromEnv = folder.write('env.conf', '');
    const flag = folder.write('flag.conf', '');
    const env = { KLATCH_CONFIG: fromEnv };
    expect(findConfigFile({ configOption: flag, env, programBinDir })).toBe(flag);
    expect(findConfigFile({ env, programBinDir })).toBe(fromEnv);
    expect(findConfigFile({ env: { KLATCH_CONFIG: '' }, programBinDir })).toBe(beside);
    expect(findConfigFile({ configOption: undefined, env: {}, programBinDir })).toBe(beside);
  });

  test('that was named has to be there: no other is read in its place', () => {
    using folder = new Folder();
    folder.write('conf/server.conf', '');
    const programBinDir = join(folder.path, 'bin');
    const missing = join(folder.path, 'missing.conf');
    const find = (options: { configOption?: string; env?: Record<string, string> }) => () =>
      findConfigFile({ env: {}, programBinDir, ...options });
    expect(find({ configOption: missing })).toThrow(ConfigNotFoundError);
    expect(find({ env: { KLATCH_CONFIG: missing } })).toThrow(
      `There is no configuration file. Looked for:\n  ${missing}\n"klatch setup" makes one.`,
    );
  });

  test('that is nowhere is told with every place', () => {
    using folder = new Folder();
    const find = (): string => findConfigFile({ env: {}, programBinDir: join(folder.path, 'bin') });
    // On a machine with an installed server, the last place that is searched has a file.
    if (existsSync('/etc/klatch/server.conf')) expect(find()).toBe('/etc/klatch/server.conf');
    else {
      expect(find).toThrow(
        `There is no configuration file. Looked for:\n  ${folder.path}/conf/server.conf\n  /etc/klatch/server.conf\n"klatch setup" makes one.`,
      );
    }
  });

  test('beneath something that is no folder is not there', () => {
    using folder = new Folder();
    const file = folder.write('plain', '');
    expect(() => findConfigFile({ configOption: join(file, 'server.conf'), env: {}, programBinDir: '/' })).toThrow(
      ConfigNotFoundError,
    );
  });

  test('in a closed folder is found, so that reading it can say what is wrong', () => {
    using folder = new Folder();
    const file = folder.write('closed/server.conf', '');
    chmodSync(join(folder.path, 'closed'), 0o000);
    try {
      expect(findConfigFile({ configOption: file, env: {}, programBinDir: '/' })).toBe(file);
    } finally {
      chmodSync(join(folder.path, 'closed'), 0o700);
    }
  });
});
