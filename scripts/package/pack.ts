/**
 * Packs a script, its assets and Node into one program; what to pack is JSON on standard input. In a process of its own:
 * pkg changes the folder it is in, and talks.
 */
import { readFileSync } from 'node:fs';
import sea from '@yao-pkg/pkg/lib-es5/sea.js';

/** What to pack. */
export interface PackConfig {
  /** The file of the program that is made. */
  readonly program: string;
  /** The Node that goes into it. */
  readonly node: string;
  /** The script that it starts, as seen from the folder of temporary files. */
  readonly main: string;
  /** The file of each asset. */
  readonly assets: Readonly<Record<string, string>>;
}

const { program, node, main, assets } = JSON.parse(readFileSync(0, 'utf8')) as PackConfig;

// The script is small, and a code cache that Node makes differs from build to build (code-cache.ts).
const seaConfig = {
  main: `../${main}`,
  assets,
  disableExperimentalSEAWarning: true,
  useSnapshot: false,
  useCodeCache: false,
};
// Not pkg's own bootstrap, a file system in memory that takes as long to start as Node does.
await sea.default(node, {
  nodePath: node,
  targets: [{ nodeRange: `node${process.versions.node}`, platform: 'linux', arch: 'x64', output: program }],
  signature: false,
  seaConfig,
});
