import { createHash, randomBytes } from 'node:crypto';
import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import {
  countOpenInvites,
  deleteUnusableInvites,
  deleteOpenInvite,
  findOpenInvite,
  insertInvite,
  listOpenInvites,
  type OpenInvite,
} from '../../storage/groups/invites.ts';
import type { Sealer } from '../../storage/db/sealed.ts';
import { translateLostRead, translateCommitUnknown } from '../core/database-errors.ts';
import { withLockedGroup } from '../core/group-transaction.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { limitSchema, pageOf, afterNumberSchema, nextNumberSchema } from '../core/page.ts';
import { createdAtField, groupField, groupReference } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';

/** A new token is 256 random bits in base64url. */
const TOKEN_BYTES = 32;
/** The form of an invitation's token. Any other text is refused without asking the database. */
const TOKEN_PATTERN = /^[A-Za-z0-9_-]{43}$/;
const SEAL_PURPOSE = 'group-invite';
const MINUTE_S = 60;
const DAY_S = 24 * 60 * MINUTE_S;

const inviteSchema = z.object({
  id: z.int().describe('The number of the invitation.'),
  group: groupField,
  link: z.string().describe('Whoever has it may join.'),
  created_by: z
    .string()
    .nullable()
    .describe("The nick of the account that made it; null: the administrator's command line."),
  created_at: createdAtField,
  expires_at: z.string().nullable().describe('End of its validity; null: none.'),
  max_uses: z.int().nullable().describe('Joins at most; null: as many as come.'),
  uses: z.int().describe('How many joined by it.'),
});

function newInviteToken(sealer: Sealer): { token: string; hash: string; sealed: string } {
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  return { token, hash: hashInviteToken(token), sealed: sealer.seal(SEAL_PURPOSE, token) };
}

function hashInviteToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** The token at the end of an invitation's link; a token is returned as it is. */
export function inviteTokenOf(linkOrToken: string): string {
  return linkOrToken.trim().replace(/\/$/, '').split('/').at(-1)!;
}

/** The open invitation with this token or link. Throws `invalid_invite` if there is none. */
export async function requireInvite(
  sql: Parameters<typeof findOpenInvite>[0],
  linkOrToken: string,
): Promise<OpenInvite> {
  const token = inviteTokenOf(linkOrToken);
  const invite = TOKEN_PATTERN.test(token) ? await findOpenInvite(sql, hashInviteToken(token)) : null;
  if (invite === null) throw new KlatchError('invalid_invite');
  return invite;
}

export const createInvite = defineTargetedOperation({
  name: 'invites.create',
  summary: 'Create an invitation into a group. Everybody with its link may join, until it expires or is used up.',
  input: z.strictObject({
    group: groupReference,
    valid_s: z
      .int()
      .min(MINUTE_S)
      .max(366 * DAY_S)
      .nullable()
      .default(7 * DAY_S)
      .describe('Seconds of its validity; null: without end.'),
    max_uses: z.int().min(1).max(1_000_000).nullable().default(null).describe('Joins at most; null: as many as come.'),
  }),
  output: inviteSchema,
  who: 'group-admin',
  on: 'group',
  scope: 'groups:write',
  errors: ['quota_exceeded', 'group_archived'],
  run: async (services, { valid_s: lifetimeS, max_uses: maxUses }, caller, access) => {
    const { sealer, config } = services;
    const { conversationId, accountId: creatorUnlessCommandLine } = access;
    const max = config.limits.invitesPerGroup;
    try {
      return await withLockedGroup(services, { access, caller, requiredRole: 'group-admin' }, async ({ tx, head }) => {
        if (head.archived) throw new KlatchError('group_archived');
        await deleteUnusableInvites(tx, conversationId);
        if ((await countOpenInvites(tx, conversationId)) >= max) {
          const sentence = `A group has at most ${max} open invitations (limits.invites-per-group): revoke one first`;
          throw new KlatchError('quota_exceeded', { sentence });
        }
        const token = newInviteToken(sealer);
        const inviteId = await insertInvite(tx, {
          conversationId,
          token,
          creatorUnlessCommandLine,
          lifetimeS,
          maxUses,
        });
        const [invite] = await listOpenInvites(tx, { conversationId, only: inviteId });
        return serializeInvite(services, invite!);
      });
    } catch (error) {
      throw translateCommitUnknown(error, 'The invitation may have been made: look at the list before you repeat it');
    }
  },
});

export const listGroupInvites = defineTargetedOperation({
  name: 'invites.list',
  summary: 'List the open invitations of a group by number, with their links, a page at a time.',
  input: z.strictObject({ group: groupReference, after: afterNumberSchema, limit: limitSchema }),
  output: z.object({
    invites: z.array(inviteSchema).describe('Those that are open, by number.'),
    next: nextNumberSchema,
  }),
  who: 'group-admin',
  on: 'group',
  scope: 'groups:write',
  errors: [],
  run: async (services, { after, limit }, _caller, { conversationId }) => {
    const request = { conversationId, after, limit: limit + 1 };
    const rows = await translateLostRead(services.database.general.run((sql) => listOpenInvites(sql, request)));
    const { page, next } = pageOf(rows, limit, (invite) => invite.id);
    return { invites: page.map((invite) => serializeInvite(services, invite)), next };
  },
});

export const revokeInvite = defineTargetedOperation({
  name: 'invites.revoke',
  summary: 'Revoke an invitation: its link stops working. People who joined with it stay.',
  input: z.strictObject({
    group: groupReference,
    invite: z.int().positive().describe('The number of the invitation.'),
  }),
  output: z.object({ group: groupField, invite: z.int().describe('The number of the invitation.') }),
  who: 'group-admin',
  on: 'group',
  scope: 'groups:write',
  errors: ['invalid_invite'],
  run: async (services, { invite }, caller, access) =>
    withLockedGroup(services, { access, caller, requiredRole: 'group-admin' }, async ({ tx, conversationId }) => {
      if (await deleteOpenInvite(tx, conversationId, invite)) return { group: conversationId, invite };
      const sentence = `Group ${conversationId} has no open invitation ${invite}: invites.list shows those that it has`;
      throw new KlatchError('invalid_invite', { sentence });
    }),
});

function serializeInvite({ sealer, config }: Services, invite: OpenInvite): z.infer<typeof inviteSchema> {
  return {
    id: invite.id,
    group: invite.conversationId,
    link: `${config.inviteBaseUri}/${sealer.open(SEAL_PURPOSE, invite.sealed)}`,
    created_by: invite.creatorUnlessCommandLine?.nick ?? null,
    created_at: invite.createdAt.toISOString(),
    expires_at: invite.expiresAt?.toISOString() ?? null,
    max_uses: invite.maxUses,
    uses: invite.uses,
  };
}
