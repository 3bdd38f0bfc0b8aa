import type { Config } from 'jest';

const config: Config = {
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2024', parser: { syntax: 'typescript' } }, module: { type: 'es6' }, sourceMaps: 'inline' },
    ],
  },
  // They install packages and need root: `make package-test`.
  testPathIgnorePatterns: process.env['KLATCH_PACKAGE_TESTS'] === '1' ? [] : ['<rootDir>/test/package/'],
  modulePathIgnorePatterns: ['<rootDir>/build', '<rootDir>/dist', '<rootDir>/var'],
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  // Catches a hang. It is no measure of speed: a slow machine must pass, too.
  testTimeout: 300_000,
  maxWorkers: 2,
};

export default config;
