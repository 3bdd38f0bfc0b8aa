import type { Mutant } from './mutant.ts';

const COMMANDS = 'test/cli/commands';

export const START_MUTANTS: readonly Mutant[] = [
  {
    name: 'completion-of-itself-alone',
    promise: 'The script for completion is made of all commands.',
    file: 'src/cli/commands.ts',
    find: `commandName === 'completion' || `,
    replace: '',
    tests: [COMMANDS, '-t', 'completion'],
  },
  {
    name: 'config-by-prefix',
    promise:
      'An option that only begins like --config does not hide the command from the list that is shown with the error.',
    file: 'src/cli/commands.ts',
    find: "startsWith('--config=')",
    replace: "startsWith('--config')",
    tests: [COMMANDS, '-t', 'configure'],
  },
  {
    name: 'status-loads-checks',
    promise: 'A command that reaches a running server does not load what examines one that does not run.',
    file: 'src/cli/health/offline-status.ts',
    find: "import type { Finding } from '../../doctor/finding.ts';",
    replace: "import type { Finding } from '../../doctor/finding.ts';\nimport '../../doctor/startup-blockers.ts';",
    tests: [COMMANDS, '-t', 'status of a running one'],
  },
  {
    name: 'interval-of-plain-spread',
    promise: 'The interval of a ratio takes the spread of a sample, which is larger by n / (n − 1).',
    file: 'bench/compare/statistics.ts',
    find: '/ (logs.length - 1);',
    replace: '/ logs.length;',
    tests: ['test/bench/statistics'],
  },
  {
    name: 'wide-interval-decides',
    promise: 'A bar is undecided while an end of the interval is further than 1.5 % from its middle.',
    file: 'bench/compare/statistics.ts',
    find: 'high / ratio <= 1 + NARROW && ',
    replace: '',
    tests: ['test/bench/statistics'],
  },
];
