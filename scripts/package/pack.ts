/**
 * Packs a script, its assets and Node into one program; the input is JSON on standard input. This script runs as its
 * own process, since pkg changes its working directory and prints.
 */
import { readFileSync } from 'node:fs';
import sea from '@yao-pkg/pkg/lib-es5/sea.js';

/** The input of this script. */
export interface PackConfig {
  /** The path of the resulting program. */
  readonly program: string;
  /** The path of the Node program to pack. */
  readonly node: string;
  /** The script that the resulting program starts, relative to the folder of temporary files. */
  readonly main: string;
  /** The path of each asset, by the name of the asset. */
  readonly assets: Readonly<Record<string, string>>;
}

const { program, node, main, assets } = JSON.parse(readFileSync(0, 'utf8')) as PackConfig;

// Without a code cache by Node: it differs from build to build (code-cache.ts), and the script is small.
const seaConfig = {
  main: `../${main}`,
  assets,
  disableExperimentalSEAWarning: true,
  useSnapshot: false,
  useCodeCache: false,
};
// This call avoids pkg's own bootstrap, whose file system in memory takes as long to start as Node does.
await sea.default(node, {
  nodePath: node,
  targets: [{ nodeRange: `node${process.versions.node}`, platform: 'linux', arch: 'x64', output: program }],
  signature: false,
  seaConfig,
});
