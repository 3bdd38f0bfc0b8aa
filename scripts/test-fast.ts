/**
 * `make test-fast`: all tests that start no process and no server (fast-tests.ts). Its last line is that of
 * scripts/test.ts.
 */
import { SOURCE_MAIN } from '../test/support/program-files.ts';
import { calibrate } from '../test/run/machine-calibration.ts';
import { closingLine, countsOf } from './closing-line.ts';
import { fastTests } from './fast-tests.ts';
import { runJest } from './jest.ts';

await calibrate(SOURCE_MAIN, 'sources');
const { result, status } = runJest(['--runTestsByPath', ...fastTests()], { env: { KLATCH_FAST_TESTS: '1' } });
console.log(closingLine('test-fast', countsOf(result)));
process.exitCode = status !== 0 || !result.success || result.numPassedTests === 0 ? 1 : 0;
