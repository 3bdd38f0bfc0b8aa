import { z } from 'zod';
import { setArchived } from '../storage/groups.ts';
import { findIntegrationHash } from '../storage/integrations.ts';
import { resolveGroup } from './access.ts';
import { defineOperation } from './operation.ts';
import { groupReference } from './schemas.ts';
import type { Services } from './services.ts';

const archiveSchema = z.object({
  group: z.int(),
  archived: z.boolean(),
  /** False: it was so already. */
  changed: z.boolean(),
});

export const archiveGroup = defineOperation({
  name: 'groups.archive',
  summary: 'Archive a group: posts are answered 410 from now on; what was posted before is still forwarded.',
  input: z.strictObject({ group: groupReference }),
  output: archiveSchema,
  allows: (caller) => caller.kind === 'system',
  run: (services, { group }) => archive(services, group, true),
});

export const unarchiveGroup = defineOperation({
  name: 'groups.unarchive',
  summary: 'Take an archived group back: its token and its reverse webhooks work as before.',
  input: z.strictObject({ group: groupReference }),
  output: archiveSchema,
  allows: (caller) => caller.kind === 'system',
  run: (services, { group }) => archive(services, group, false),
});

async function archive(
  { database, bus }: Services,
  reference: string | number,
  archived: boolean,
): Promise<z.infer<typeof archiveSchema>> {
  const group = await resolveGroup(database.general, reference);
  const { changed, hash } = await database.general.transaction(async (tx) => ({
    changed: await setArchived(tx, group, archived),
    hash: await findIntegrationHash(tx, group),
  }));
  // Every node asks the database anew about this token. Nothing depends on the word: the statement that writes a message
  // looks at the group itself, and an archived group is never remembered.
  if (hash !== null) bus.publish('tokensRevoked', [hash]);
  return { group, archived, changed };
}
