import * as z from 'zod';

export const groupReference = z
  .union([z.int().positive(), z.string().min(1).max(200)])
  .describe("The group's number; for the command line also its title, where no other group has the same.");

export const conversationNumber = z.int().positive().describe("The conversation's number.");

export const conversationReference = groupReference.describe(
  "The conversation's number; for the command line also a group's title, where no other group has the same.",
);

export const seqSchema = z.int().positive().describe("The message's place in its conversation.");

export const hookNumber = z.int().min(1).max(2_147_483_647).describe('The number of the reverse webhook.');

export const groupRoleSchema = z.enum(['owner', 'admin', 'member']).describe('Role of the member in the group.');

export const installationRoleSchema = z.enum(['admin', 'user', 'bot']).describe('The role in the installation.');

/** Text of several lines for people to read, such as the description of a group. */
export const aboutSchema = z.string().trim().max(2_000, 'has at most 2,000 characters');

/** The id of a file, which its upload returned. */
export const fileIdSchema = z.string().regex(/^[A-Za-z0-9_-]{22}$/, 'is not the id of a file');

export const nickSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/, 'a nick has 1 to 32 letters, digits, dots, dashes or underscores')
  .transform((nick) => nick.toLowerCase())
  .describe("The account's nick, which names it in commands and mentions.");

/** One line of text for people to read. */
export const nameOrTitleSchema = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(200, 'has at most 200 characters')
  .regex(/^\P{Cc}*$/u, 'holds no control characters')
  // A name is shown beside other text: it must not turn the direction of that text, nor be invisible.
  .regex(/^[^\u2028\u2029\u202a-\u202e\u2066-\u2069]*$/u, 'holds no signs that break a line or turn its direction')
  // The fillers of Hangul and the empty pattern of Braille belong to the categories L and S, but are invisible.
  .regex(/(?![\u115f\u1160\u2800\u3164\uffa0])[\p{L}\p{N}\p{P}\p{S}]/u, 'must hold something that can be seen');

/** Fields in the outputs of many operations. */
export const accountField = z.int().describe("The account's number.");
export const nickField = z.string().describe("The account's nick.");
export const nameField = z.string().describe("The account's name, for people to read.");
export const accountKindField = z.enum(['user', 'bot']).describe('A person or a bot.');
/** Fields of an account in a list. */
export const accountFields = { id: accountField, nick: nickField, name: nameField };
export const conversationField = z.int().describe("The conversation's number.");
export const groupField = z.int().describe("The group's number.");
export const titleField = z.string().describe("The group's title.");
export const aboutField = z.string().nullable().describe('Description of the group; null: none.');
export const membersField = z.int().describe('How many members it has.');
export const changedField = z.boolean().describe('False: it was so already.');
export const hookField = z.int().describe('The number of the reverse webhook.');
export const hostField = z.string().describe("Host of the target, with its port where it is not the scheme's own.");
export const categoryField = z.string().nullable().describe('Why it failed, as a category; null: it did not.');
export const statusField = z.int().nullable().describe("The status of the target's answer; null: there was none.");
export const createdAtField = z.string().describe('Time of the creation.');
