import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { AccountId, ConversationId } from '../../model/ids.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import { findGroup, searchPublicGroups } from '../../storage/groups/groups.ts';
import { useInvite, type OpenInvite } from '../../storage/groups/invites.ts';
import { findGroupRole } from '../../storage/groups/members.ts';
import { addToGroup } from './add-member.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { requireAccount, type AccountCaller } from '../core/caller.ts';
import {
  groupNotFound,
  withEventsAfterCommit,
  lockConversation,
  type PendingEvents,
  type LockedGroup,
} from '../core/group-transaction.ts';
import { requireInvite } from './invites.ts';
import { defineOperation } from '../core/operation.ts';
import { limitSchema, pageOf, afterNumberSchema, nextNumberSchema } from '../core/page.ts';
import type { Services } from '../core/services.ts';
import { aboutField, conversationNumber, groupField, titleField, membersField } from '../core/schemas.ts';

/** An invitation's link, or the token at its end. */
export const inviteLinkOrTokenSchema = z.string().min(1).max(2_048).describe("An invitation's link or token.");

const publicGroupSchema = z.object({
  id: groupField,
  title: titleField,
  about: aboutField,
  members: membersField,
  joined: z.boolean().describe('Whether the caller is in it.'),
});

export const findPublicGroups = defineOperation({
  name: 'groups.find',
  summary: 'Find public groups, which everybody may join, by a part of their title, a page at a time, by title.',
  input: z.strictObject({
    text: z.string().trim().max(200).optional().describe('A part of the title; not given: all groups.'),
    after: afterNumberSchema,
    limit: limitSchema,
  }),
  output: z.object({
    groups: z.array(publicGroupSchema).describe('Those that were found, by title.'),
    next: nextNumberSchema,
  }),
  who: 'account',
  scope: 'groups:read',
  errors: [],
  run: async ({ database }, { text = '', after, limit }, caller) => {
    const accountId = caller.kind === 'account' ? caller.accountId : null;
    const request = { text: text === '' ? null : text, after, limit: limit + 1, accountId };
    const rows = await translateLostRead(database.general.run((sql) => searchPublicGroups(sql, request)));
    const { page, next } = pageOf(rows, limit, (group) => group.id);
    return { groups: [...page], next };
  },
});

export const joinGroup = defineOperation({
  name: 'groups.join',
  summary: 'Join a public group, or the group of an invitation by its link or the token at the end of the link.',
  input: z
    .strictObject({
      group: conversationNumber.optional().describe('The number of a public group.'),
      invite: inviteLinkOrTokenSchema.optional(),
    })
    .refine(
      ({ group, invite }) => (group === undefined) !== (invite === undefined),
      'give one of "group" and "invite"',
    ),
  output: z.object({
    group: groupField,
    title: titleField,
    joined: z.boolean().describe('False: the caller was in it already.'),
  }),
  who: 'account',
  scope: 'groups:write',
  errors: ['not_found', 'invalid_invite', 'group_archived', 'quota_exceeded'],
  run: async (services, { group, invite: link }, caller) => {
    const account = toJoiningAccount(requireAccount(caller));
    return withEventsAfterCommit(services, async (tx, events) => {
      if (link !== undefined) return acceptInvite(services, { tx, events }, { link, account });
      const conversationAndActor = { conversationId: group as ConversationId, actorId: account.id };
      return joinLockedGroup(services, await lockConversation(tx, conversationAndActor, events), {
        account,
        invite: null,
      });
    });
  },
});

function toJoiningAccount({ accountId: id, nick }: AccountCaller): JoiningAccount {
  return { id, nick };
}

interface JoiningAccount {
  readonly id: AccountId;
  readonly nick: string;
}

interface JoinResult {
  readonly group: ConversationId;
  readonly title: string;
  readonly joined: boolean;
}

/**
 * Adds an account to the group of an invitation, and counts the use of the invitation, in the caller's transaction. The
 * code that commits the transaction publishes `events` afterwards. Throws `invalid_invite`, `group_archived` and
 * `quota_exceeded`.
 */
export async function acceptInvite(
  services: Pick<Services, 'config'>,
  { tx, events }: { tx: Transaction; events: PendingEvents },
  { link, account }: { link: string; account: JoiningAccount },
): Promise<JoinResult> {
  const invite = await requireInvite(tx, link);
  const conversationAndActor = { conversationId: invite.conversationId, actorId: account.id };
  return joinLockedGroup(services, await lockConversation(tx, conversationAndActor, events), { account, invite });
}

/** Adds an account to a group. Does nothing if the account is a member already; the invitation is not used up then. */
async function joinLockedGroup(
  { config: { limits } }: Pick<Services, 'config'>,
  locked: LockedGroup,
  { account, invite }: { account: JoiningAccount; invite: OpenInvite | null },
): Promise<JoinResult> {
  const { tx, conversationId, head } = locked;
  const group = await findGroup(tx, conversationId);
  const role = await findGroupRole(tx, { conversationId, accountId: account.id });
  // The same error in all cases: nobody must learn which groups exist that are not public, and which numbers are
  // private conversations.
  if (group === null || (role === null && invite === null && !group.public)) throw groupNotFound(conversationId);
  const result = { group: conversationId, title: group.title, joined: role === null };
  if (role !== null) return result;
  if (head.archived) throw new KlatchError('group_archived');
  if (invite !== null && !(await useInvite(tx, invite.id, account.id))) throw new KlatchError('invalid_invite');
  await addToGroup({ limits, group: locked }, account, { role: 'member', requested: true });
  return result;
}
