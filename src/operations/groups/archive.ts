import * as z from 'zod';
import { restartExpectations } from '../../storage/groups/expectations.ts';
import { setArchived } from '../../storage/groups/groups.ts';
import { findIntegrationTokenHash } from '../../storage/groups/integrations.ts';
import type { Caller } from '../core/caller.ts';
import { withLockedGroup } from '../core/group-transaction.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import type { ConversationAccess } from '../core/conversation-access.ts';
import { groupField, groupReference, changedField } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';

const archiveSchema = z.object({
  group: groupField,
  archived: z.boolean().describe('Whether the group is archived now.'),
  changed: changedField,
});

export const archiveGroup = defineTargetedOperation({
  name: 'groups.archive',
  summary: 'Archive a group. Posts are answered 410 from now on; earlier ones are still forwarded.',
  input: z.strictObject({ group: groupReference }),
  output: archiveSchema,
  who: 'group-owner',
  on: 'group',
  scope: 'groups:write',
  errors: [],
  run: (services, _input, caller, access) => setGroupArchived(services, { caller, access, archived: true }),
});

export const unarchiveGroup = defineTargetedOperation({
  name: 'groups.unarchive',
  summary: 'Unarchive a group: its token and its reverse webhooks work as before.',
  input: z.strictObject({ group: groupReference }),
  output: archiveSchema,
  who: 'group-owner',
  on: 'group',
  scope: 'groups:write',
  errors: [],
  run: (services, _input, caller, access) => setGroupArchived(services, { caller, access, archived: false }),
});

async function setGroupArchived(
  services: Services,
  { caller, access, archived }: { caller: Caller; access: ConversationAccess; archived: boolean },
): Promise<z.infer<typeof archiveSchema>> {
  const { changed, hash } = await withLockedGroup(
    services,
    { access, caller, requiredRole: 'group-owner' },
    async (group) => {
      const { tx, conversationId } = group;
      const isChange = await setArchived(tx, conversationId, archived);
      if (isChange) await group.addNotice(archived ? 'archived' : 'unarchived');
      // In an unarchived group the time of each expectation starts again, since nobody could post while it was
      // archived.
      if (isChange && !archived) await restartExpectations(tx, conversationId);
      return { changed: isChange, hash: await findIntegrationTokenHash(tx, conversationId) };
    },
  );
  // Every node removes the token from its cache. Posts are refused without this event too: the statement that writes a
  // message checks the group, and an archived group is not cached.
  if (hash !== null) services.bus.publish('tokensRevoked', [hash]);
  return { group: access.conversationId, archived, changed };
}
