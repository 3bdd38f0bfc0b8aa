import * as z from 'zod';
import type { ConversationId } from '../../model/ids.ts';
import type { Sql } from '../../storage/db/connection.ts';
import { listRefusedPosts } from '../../storage/groups/refused-posts.ts';

/** Refused posts with the same reason: they differ only in their times, and in the numbers of the sentence. */
export const refusedPostsSchema = z.object({
  first_at: z.string().describe('Time of the first one.'),
  last_at: z.string().describe('Time of the newest one.'),
  posts: z.int().describe('How many there were.'),
  user_agent: z
    .string()
    .nullable()
    .describe('User-Agent of the program, at most 100 characters of printable ASCII; null: none.'),
  format: z
    .string()
    .nullable()
    .describe('The format of another product that the body was read as, or that the address named; null: none.'),
  code: z.string().describe('The code of the error.'),
  sentence: z.string().describe('The sentence that answered the newest one.'),
});

/** The refused posts of a group, newest first; at most 20. */
export async function readRefusedPosts(sql: Sql, id: ConversationId): Promise<z.infer<typeof refusedPostsSchema>[]> {
  const found = await listRefusedPosts(sql, id);
  return found.map(({ firstAt, lastAt, posts, userAgent, format, code, sentence }) => ({
    first_at: firstAt.toISOString(),
    last_at: lastAt.toISOString(),
    posts,
    user_agent: userAgent,
    format,
    code,
    sentence,
  }));
}
