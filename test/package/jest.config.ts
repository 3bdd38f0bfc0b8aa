import type { Config } from 'jest';
import common from '../../jest.config.ts';

/**
 * The configuration of jest for `make package-test`. It runs one test after the other, since they share the ports of
 * one network.
 */
const config: Config = {
  ...common,
  rootDir: '../..',
  roots: ['<rootDir>/test/package'],
  // Quick runs skip the test with all versions of PostgreSQL: it takes a minute and half a gigabyte.
  testPathIgnorePatterns: (process.env['QUICK'] ?? '') === '' ? [] : ['backup-versions'],
  globalSetup: '<rootDir>/test/package/support/global-setup.ts',
  // Only a hang exceeds this time: some tests build a release or make several installations.
  testTimeout: 1_800_000,
  maxWorkers: 1,
};
delete config.globalTeardown;

export default config;
