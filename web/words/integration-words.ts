import { counted } from './words.ts';

/** The words of the screen about a group's integration. */
export const integrationWords = {
  title: 'Integration',
  secret: 'Whoever has an address of this group can post into it: treat it like a password.',
  program: 'Program that posts',
  anyProgram: 'any program, or a script with curl',
  reveal: 'Show the secret part',
  cover: 'Cover the secret part',
  test: 'Post a test message to all members',
  testText: 'Test message of the integration of this group',
  testAccepted: 'The server has accepted the message: it is in the group now.',
  testRefused: (status: number) =>
    `The server refused the message (${status}). The reason is in the list of refused posts.`,
  use: 'Use',
  neverUsed: 'No program has posted into this group yet.',
  lastUsed: (moment: string, posts: number) =>
    `Last post: ${moment}. In the last 24 hours: ${counted(posts, 'post', 'posts')}.`,
  refused: 'Refused posts of the last 7 days',
  noneRefused: 'None.',
  refusedBy: (posts: number, program: string | null, format: string | null, moment: string) =>
    [
      counted(posts, 'post', 'posts'),
      program === null ? 'by a program without a name' : `by ${program}`,
      ...(format === null ? [] : [`read as ${format}`]),
      `the last one ${moment}`,
    ].join(', '),
  rotate: 'Replace the address',
  rotateQuestion: (posts: number) =>
    `Every address of this group stops working at once, for all programs; ${counted(posts, 'post', 'posts')} came with them in the last 24 hours. You have to enter the new address in each program. Reverse webhooks stay.`,
} as const;
