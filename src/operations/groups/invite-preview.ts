import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { findGroup } from '../../storage/groups/groups.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { requireInvite } from './invites.ts';
import { inviteLinkOrTokenSchema } from './join-group.ts';
import { defineOperation } from '../core/operation.ts';
import type { Services } from '../core/services.ts';
import { titleField, aboutField, membersField } from '../core/schemas.ts';

/** The part of an invitation's group that somebody who is not a member may see. */
const invitePreviewSchema = z.object({
  group: z
    .object({ title: titleField, about: aboutField, members: membersField })
    .describe('The group that it leads into.'),
  invited_by: z
    .string()
    .nullable()
    .describe(
      "The name of the account that made it; null for the administrator's, and for a group that is not public.",
    ),
  expires_at: z.string().nullable().describe('End of its validity; null: none.'),
});

export type InvitePreview = z.infer<typeof invitePreviewSchema>;

export const previewInvite = defineOperation({
  name: 'invites.preview',
  summary: 'Show the group of an invitation, by its link or the token at the end of the link.',
  input: z.strictObject({ invite: inviteLinkOrTokenSchema }),
  output: invitePreviewSchema,
  who: 'anybody',
  scope: null,
  errors: ['invalid_invite'],
  run: async (services, { invite }) => readInvitePreview(services, invite),
});

/** Reads the group of an invitation. Throws `invalid_invite`, also if the group is archived. */
export async function readInvitePreview({ database }: Services, linkOrToken: string): Promise<InvitePreview> {
  return translateLostRead(
    database.general.run(async (sql) => {
      const { conversationId, creatorUnlessCommandLine, expiresAt } = await requireInvite(sql, linkOrToken);
      const group = await findGroup(sql, conversationId);
      if (group === null || group.archivedAt !== null) throw new KlatchError('invalid_invite');
      const { title, about, members } = group;
      return {
        group: { title, about, members },
        // Only members may learn who is in a group that is not public.
        invited_by: group.public ? (creatorUnlessCommandLine?.name ?? null) : null,
        expires_at: expiresAt?.toISOString() ?? null,
      };
    }),
  );
}
