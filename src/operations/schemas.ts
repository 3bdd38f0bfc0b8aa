import { z } from 'zod';

/** A group's number, or its title where no other group has the same. */
export const groupReference = z.union([z.int().positive(), z.string().min(1).max(200)]);

/** The number of a reverse webhook. */
export const hookNumber = z.int().min(1).max(2_147_483_647);

/** What a member may do in a group, from most to least. */
export const groupRoleSchema = z.enum(['owner', 'admin', 'member']);

/** What an account may do in the installation. */
export const installationRoleSchema = z.enum(['admin', 'user', 'bot']);
