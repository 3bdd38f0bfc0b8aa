import * as z from 'zod';

/** A group's number, or its title where no other group has the same. */
export const groupReference = z.union([z.int().positive(), z.string().min(1).max(200)]);

/** The number of a conversation. */
export const conversationNumber = z.int().positive();

/** A conversation's number; for the command line also a group's title where no other group has the same. */
export const conversationReference = groupReference;

/** A message's place in its conversation. */
export const seqSchema = z.int().positive();

/** The number of a reverse webhook. */
export const hookNumber = z.int().min(1).max(2_147_483_647);

/** What a member may do in a group, from most to least. */
export const groupRoleSchema = z.enum(['owner', 'admin', 'member']);

/** What an account may do in the installation. */
export const installationRoleSchema = z.enum(['admin', 'user', 'bot']);

/** Text of several lines that people read, such as what a group is about. */
export const aboutSchema = z.string().trim().max(2_000, 'has at most 2,000 characters');

/** A file, as its upload named it. */
export const fileIdSchema = z.string().regex(/^[A-Za-z0-9_-]{22}$/, 'is not the id of a file');

/** A nick names an account in commands and mentions. */
export const nickSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/, 'a nick has 1 to 32 letters, digits, dots, dashes or underscores')
  .transform((nick) => nick.toLowerCase());

/** One line of text for people to read. */
export const nameOrTitleSchema = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(200, 'has at most 200 characters')
  .regex(/^\P{Cc}*$/u, 'holds no control characters')
  // A name is shown beside others: it must neither turn the direction of what follows nor be invisible.
  .regex(/^[^\u2028\u2029\u202a-\u202e\u2066-\u2069]*$/u, 'holds no signs that break a line or turn its direction')
  // Fillers of Hangul and the empty pattern of Braille count as letters and signs, and show nothing.
  .regex(/(?![\u115f\u1160\u2800\u3164\uffa0])[\p{L}\p{N}\p{P}\p{S}]/u, 'must hold something that can be seen');
