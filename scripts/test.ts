/**
 * Runs jest and ends with one plain line, `N passed, N failed[, N skipped]`, made from jest's own JSON result. It
 * passes arguments to jest: `npm test -- test/http`.
 */
import { runJest } from './jest.ts';
import { closingLine, countsOf } from './closing-line.ts';

const { result, status } = runJest(process.argv.slice(2));
console.log(closingLine('test', countsOf(result)));
process.exitCode = status !== 0 || !result.success || result.numPassedTests === 0 ? 1 : 0;
