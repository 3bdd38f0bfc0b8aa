import { development } from './programs/development.ts';
import { home } from './programs/home.ts';
import { libraries } from './programs/libraries.ts';
import { monitoring } from './programs/monitoring.ts';
import type { Program } from './programs/program.ts';
import { scripts } from './programs/scripts.ts';

/** How each known program is set up to post into a group. docs/callers.md is generated from this list. */
export const programs: readonly Program[] = [...monitoring, ...development, ...home, ...libraries, ...scripts];
