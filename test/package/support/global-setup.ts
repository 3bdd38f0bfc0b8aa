import { removeLeftOvers } from './machine.ts';

// oxlint-disable-next-line import/no-default-export -- jest calls the default export.
export default function globalSetup(): void {
  removeLeftOvers();
}
