import { words } from './words.ts';

/** The words of the picture viewer, which the page loads with its first use. */
export const pictureWords = {
  position: (at: number, count: number) => `Picture ${words.number(at)} of ${words.number(count)}`,
  previous: 'Previous picture',
  next: 'Next picture',
  larger: 'Larger',
  smaller: 'Smaller',
  broken: 'The picture could not be loaded. Somebody may have deleted its message.',
} as const;
