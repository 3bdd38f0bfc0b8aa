/**
 * Makes what is given away, one target a run: `node scripts/package/make.ts binary`. Intermediate files go to build/,
 * results to dist/. `VERSION=1.2.3` builds another version than package.json says, SOURCE_DATE_EPOCH another date than
 * the commit's.
 */
import { mkdirSync } from 'node:fs';
import { makeBinary } from './binary.ts';
import { bundle, type Bundle } from './bundle.ts';
import { BUILD, DIST } from './paths.ts';
import { collectRuntime, type Runtime } from './runtime.ts';
import { requireTools } from './tools.ts';

/** What the packages are made of. */
export interface Parts {
  readonly bundle: Bundle;
  readonly runtime: Runtime;
  /** The file of the single binary. */
  readonly binary: string;
}

async function makeParts(): Promise<Parts> {
  requireTools(['patchelf', 'strip', 'dpkg-query']);
  const runtime = collectRuntime();
  const made = await bundle();
  return { bundle: made, runtime, binary: makeBinary(made) };
}

const TARGETS: Readonly<Record<string, () => Promise<readonly string[]>>> = {
  bundle: async () => [(await bundle()).folder],
  binary: async () => [(await makeParts()).binary],
};

const target = TARGETS[process.argv[2] ?? ''];
if (target === undefined) {
  console.error(`usage: make.ts ${Object.keys(TARGETS).join('|')}`);
  process.exit(64);
}
mkdirSync(BUILD, { recursive: true });
mkdirSync(DIST, { recursive: true });
for (const made of await target()) console.log(`made ${made}`);
