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
