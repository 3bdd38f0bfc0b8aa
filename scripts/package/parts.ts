import { makeBinary } from './binary.ts';
import { bundle, type Bundle } from './bundle.ts';
import { collectRuntime, type Runtime } from './runtime.ts';
import { requireTools } from './tools.ts';

/** The parts from which the packages and zips are made. */
export interface Parts {
  readonly bundle: Bundle;
  readonly runtime: Runtime;
  /** The path of the single binary. */
  readonly binary: string;
}

/** Makes all parts of the packages. */
export async function makeParts(): Promise<Parts> {
  requireTools(['patchelf', 'strip', 'dpkg-query']);
  const runtime = collectRuntime();
  const made = await bundle();
  return { bundle: made, runtime, binary: await makeBinary(made) };
}
