import { z } from 'zod';
import { defineOperation } from './operation.ts';

export const serverStatus = defineOperation({
  name: 'server.status',
  summary: 'Say which server this is, since when it runs, and what its database is.',
  input: z.strictObject({}),
  output: z.object({ version: z.string(), started_at: z.string(), pid: z.int(), database: z.string() }),
  allows: (caller) => caller.kind === 'system',
  run: async ({ version, startedAt, databaseVersion }) => ({
    version,
    started_at: startedAt.toISOString(),
    pid: process.pid,
    database: databaseVersion,
  }),
});
