import { programs } from '../../../src/callers/programs.ts';
import type { TestGroup } from '../../support/server.ts';

/** A program's lines in docs/callers.md, with the address of a group. */
export function documentedConfiguration(program: string, group: TestGroup): string {
  const setup = programs.find(({ name }) => name === program)!.setups[0];
  return `${setup.configuration.replaceAll('<address>', group.webhook)}\n`;
}
