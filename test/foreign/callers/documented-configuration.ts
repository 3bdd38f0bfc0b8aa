import { programs } from '../../../src/callers/programs.ts';
import type { TestGroup } from '../../support/server.ts';

/** The configuration lines for a program in docs/callers.md, with the webhook URL of a group. */
export function documentedConfiguration(program: string, group: TestGroup): string {
  const setup = programs.find(({ name }) => name === program)!.setups[0];
  return `${setup.configuration.replaceAll('<address>', group.webhook)}\n`;
}
