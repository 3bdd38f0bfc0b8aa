import { z } from 'zod';
import { defineOperation } from './operation.ts';

const PING_MS = 1_000;

export const serverStatus = defineOperation({
  name: 'server.status',
  summary: 'Say which server this is, since when it runs, what its database is, and whether it can do its work.',
  input: z.strictObject({}),
  output: z.object({
    version: z.string(),
    started_at: z.string(),
    pid: z.int(),
    database: z.string(),
    /** Whether the database answered just now. */
    ready: z.boolean(),
    /** Posts that wait for their commit. */
    waiting_posts: z.int(),
  }),
  allows: (caller) => caller.kind === 'system',
  run: async ({ version, startedAt, database, databaseVersion, messageLog }) => ({
    version,
    started_at: startedAt.toISOString(),
    pid: process.pid,
    database: databaseVersion,
    ready: await database.ping(PING_MS).then(
      () => true,
      () => false,
    ),
    waiting_posts: messageLog.depth,
  }),
});
