import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Sequencer from '@jest/test-sequencer';

/**
 * Test files that take more than 25 seconds, slowest first. Jest knows how long a file took in its last run, but a
 * fresh clone has no such record. A slow file that begins last would lengthen the run by its whole time.
 */
const SLOW = [
  'faults/receiver-faults',
  'faults/cluster-faults',
  'storage/backup/upgrade-cluster',
  'access/hostile-input',
  'docs/backup',
  'live/hostile',
  'faults/database-faults',
  'storage/embedded/embedded',
  'access/matrix',
  'http/database-away',
  'http/bounds',
  'faults/address-faults',
  'cli/data/backup',
  'cli/health/doctor',
  'client/terminal/chat',
  'delivery/node-processes',
  'docs/transcripts',
  'storage/embedded/embedded-takeover',
  'cli/serve',
  'cli/health/status',
  'faults/node-faults',
  'cli/data/rotate-secret',
  'docs/people',
  'delivery/partition-assignment',
  'cli/group/members',
  'delivery/unordered',
  'push/queue-kills',
].map((name) => `/test/${name}.test.ts`);

const moved = SLOW.filter((name) => !existsSync(join(import.meta.dirname, '../..', name)));
if (moved.length > 0) throw new Error(`test/run/slow-first.ts names no tests that exist: ${moved.join(', ')}`);

/**
 * The sequencer of jest. The types of its package are those of the CommonJS form, whose default export is one level
 * deeper.
 */
const Base = Sequencer as unknown as typeof Sequencer.default;

type Test = Parameters<InstanceType<typeof Base>['sort']>[0][number];

/** Runs the slowest files first. */
// oxlint-disable-next-line import/no-default-export -- jest calls the default export.
export default class SlowFirst extends Base {
  override async sort(tests: Test[]): Promise<Test[]> {
    const place = (path: string): number => {
      const found = SLOW.findIndex((name) => path.endsWith(name));
      return found === -1 ? SLOW.length : found;
    };
    return (await super.sort(tests)).toSorted((a, b) => place(a.path) - place(b.path));
  }
}
