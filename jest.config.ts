import type { Config } from 'jest';

/** `make foreign-test` and `make test-fast`. */
const isForeign = process.env['KLATCH_FOREIGN_TESTS'] === '1';
const isFast = process.env['KLATCH_FAST_TESTS'] === '1';

const config: Config = {
  testMatch: ['<rootDir>/test/**/*.test.ts', '<rootDir>/packages/*/test/**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2024', parser: { syntax: 'typescript' } }, module: { type: 'es6' }, sourceMaps: 'inline' },
    ],
  },
  // Those of test/package install packages and need root: `make package-test`. Those of test/foreign need programs of
  // Debian: `make foreign-test`.
  testPathIgnorePatterns: ['<rootDir>/test/package/', ...(isForeign ? [] : ['<rootDir>/test/foreign/'])],
  // Jest reads all folders below its roots, and the package tests make whole systems below build meanwhile.
  roots: isForeign ? ['<rootDir>/test/foreign'] : ['<rootDir>/test', '<rootDir>/packages'],
  ...(isFast
    ? { setupFiles: ['<rootDir>/test/run/no-processes.ts'] }
    : {
        globalSetup: '<rootDir>/test/run/global-setup.ts',
        globalTeardown: '<rootDir>/test/run/global-teardown.ts',
      }),
  // Catches a hang. It is no measure of speed: a slow machine must pass, too.
  testTimeout: 300_000,
  // More than cores: tests wait half of their time. Jest replaces a worker that has grown:
  // without this limit a worker holds 2 GB at the end of a run.
  maxWorkers: 4,
  workerIdleMemoryLimit: '700MB',
  // A worker's exit takes longer than jest's half second on a slow machine; one that leaks shows itself all the same.
  workerGracefulExitTimeout: 30_000,
  testSequencer: '<rootDir>/test/run/slow-first.ts',
};

export default config;
