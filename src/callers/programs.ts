import { developmentPrograms } from './programs/development.ts';
import { homePrograms } from './programs/home.ts';
import { libraryPrograms } from './programs/libraries.ts';
import { monitoringPrograms } from './programs/monitoring.ts';
import type { CallerProgram } from './programs/program.ts';
import { scriptPrograms } from './programs/scripts.ts';

/** How each known program is set up to post into a group. docs/callers.md is generated from this list. */
export const programs: readonly CallerProgram[] = [
  ...monitoringPrograms,
  ...developmentPrograms,
  ...homePrograms,
  ...libraryPrograms,
  ...scriptPrograms,
];
