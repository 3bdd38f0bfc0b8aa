import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import type { AccountId, ConversationId } from '../../model/ids.ts';
import { insertAccount } from '../../storage/accounts/accounts.ts';
import type { Transaction } from '../../storage/db/connection.ts';
import { findGroup, insertGroup, listGroups, updateGroup } from '../../storage/groups/groups.ts';
import { insertIntegration } from '../../storage/groups/integrations.ts';
import { insertMember } from '../../storage/groups/members.ts';
import { insertNotice } from '../../storage/messages/notices.ts';
import { newIntegrationToken } from '../core/access.ts';
import { lockAccountAndCountMemberships, requireConversationQuota } from './add-member.ts';
import { requireActiveAccount } from '../core/account-reference.ts';
import { isAdministrator, type Caller } from '../core/caller.ts';
import { translateLostRead, translateCommitUnknown } from '../core/database-errors.ts';
import {
  withLockedGroup,
  withEventsAfterCommit,
  type PendingEvents,
  type LockedGroup,
} from '../core/group-transaction.ts';
import { groupInfoSchema, groupSchema, serializeGroupSummary, serializeGroup, readGroupInfo } from './group-view.ts';
import { defineOperation, defineTargetedOperation } from '../core/operation.ts';
import { limitSchema, pageOf, afterNumberSchema, nextNumberSchema } from '../core/page.ts';
import { readThenRecheckRole } from '../core/conversation-access.ts';
import { aboutSchema, groupReference, nickSchema, nameOrTitleSchema, changedField } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';

/** A group in a list. It lacks `about`, which may be long: a page of 1,000 groups must fit into one answer. */
const listedGroupSchema = groupSchema
  .omit({ about: true })
  .extend({ hooks: z.int().describe('How many reverse webhooks it has.') });

interface NewGroup {
  readonly title: string;
  readonly about: string | null;
  readonly public: boolean;
  /** The owner of the new group; null: the group has no owner. */
  readonly owner: { readonly id: AccountId; readonly nick: string } | null;
  /** The account that creates the group; null: the command line. */
  readonly actorId: AccountId | null;
}

export const createGroup = defineOperation({
  name: 'groups.create',
  summary: 'Create a group with its integration token. The caller owns it; administrators may name another owner.',
  input: z.strictObject({
    title: nameOrTitleSchema.describe('Its title.'),
    about: aboutSchema.optional().describe('Description of the group.'),
    public: z.boolean().optional().describe('Anybody of the installation may find and join it; not given: nobody.'),
    owner: nickSchema.optional().describe('The nick of its owner, where an administrator makes it for somebody else.'),
  }),
  output: groupInfoSchema,
  who: 'account',
  scope: 'groups:write',
  errors: ['forbidden', 'not_found', 'quota_exceeded'],
  run: async (services, { title, about, public: isPublic = false, owner: ownerNick }, caller) => {
    if (ownerNick !== undefined && !isAdministrator(caller)) {
      const sentence = 'owner: only administrators make groups for others; create it, then use groups.transfer';
      throw new KlatchError('forbidden', { sentence });
    }
    const actorId = caller.kind === 'account' ? caller.accountId : null;
    const groupFields = { title, about: about || null, public: isPublic, actorId };
    const { id, ownerId } = await createGroupInTransaction(services, caller, { ...groupFields, ownerNick });
    const role = actorId !== null && ownerId === actorId ? ('owner' as const) : null;
    return translateLostRead(
      services.database.general.run((sql) => readGroupInfo(services, sql, { id, caller, role })),
    );
  },
});

async function createGroupInTransaction(
  services: Services,
  caller: Caller,
  request: Omit<NewGroup, 'owner'> & { ownerNick: string | undefined },
): Promise<{ id: ConversationId; ownerId: AccountId | null }> {
  const { ownerNick, ...group } = request;
  try {
    return await withEventsAfterCommit(services, async (tx, events) => {
      const self = caller.kind === 'account' ? { id: caller.accountId, nick: caller.nick } : null;
      const owner = ownerNick === undefined ? self : await requireActiveAccount(tx, ownerNick);
      const id = await insertGroupWithIntegration(services, { tx, events }, { ...group, owner });
      return { id, ownerId: owner?.id ?? null };
    });
  } catch (error) {
    throw translateCommitUnknown(error, 'The group may have been created: look at the list before you repeat it');
  }
}

async function insertGroupWithIntegration(
  { sealer, config }: Services,
  { tx, events }: { tx: Transaction; events: PendingEvents },
  group: NewGroup,
): Promise<ConversationId> {
  const { owner, actorId, title } = group;
  const requested = owner !== null && owner.id === actorId;
  if (owner !== null)
    requireConversationQuota(config.limits, owner.nick, {
      requested,
      counts: await lockAccountAndCountMemberships(tx, owner),
    });
  const conversationId = await insertGroup(tx, group);
  const accountId = await insertAccount(tx, { kind: 'webhook', nick: null, name: 'Webhook', role: 'bot' });
  await insertIntegration(tx, { conversationId, accountId, token: newIntegrationToken(sealer) });
  if (owner !== null) {
    await insertMember(tx, { conversationId, accountId: owner.id, role: 'owner', readSeq: 0, requested });
    events.queueMemberChangedEvent({ conversationId, accountId: owner.id });
  }
  events.queueNoticeAddedEvent(conversationId);
  await insertNotice(tx, { conversationId, kind: 'created', actorId, details: { title } });
  return conversationId;
}

export const groupInfo = defineTargetedOperation({
  name: 'groups.info',
  summary:
    'Show a group. Its owner and admins also see its addresses for programs, its reverse webhooks and refused posts.',
  input: z.strictObject({ group: groupReference }),
  output: groupInfoSchema,
  who: 'member',
  on: 'group',
  scope: 'groups:read',
  errors: [],
  run: async (services, _input, caller, access) => {
    const { conversationId: id } = access;
    const role = access.role === 'administrator' ? null : access.role;
    const requiredRole = role === 'member' ? ('member' as const) : ('group-admin' as const);
    return readThenRecheckRole(services, { access, caller, on: 'group', requiredRole: requiredRole }, (sql) =>
      readGroupInfo(services, sql, { id, caller, role }),
    );
  },
});

export const listAllGroups = defineOperation({
  name: 'groups.list-all',
  summary: 'List groups by number, a page at a time.',
  input: z.strictObject({
    after: afterNumberSchema,
    limit: limitSchema,
    archived: z.boolean().nullable().default(null).describe('Only archived ones, or only others; null: all.'),
  }),
  output: z.object({ groups: z.array(listedGroupSchema).describe('The groups, by number.'), next: nextNumberSchema }),
  who: 'administrator',
  scope: null,
  errors: [],
  run: async ({ database }, { after, limit, archived }) => {
    const rows = await translateLostRead(
      database.general.run((sql) => listGroups(sql, { after, limit: limit + 1, archived })),
    );
    const { page, next } = pageOf(rows, limit, (group) => group.id);
    const groups = page.map((group) => ({ ...serializeGroupSummary(group), hooks: group.hooks }));
    return { groups, next };
  },
});

export const editGroup = defineTargetedOperation({
  name: 'groups.update',
  summary: 'Change the title or description of a group, or whether everybody in the installation may find and join it.',
  input: z
    .strictObject({
      group: groupReference,
      title: nameOrTitleSchema.optional().describe('Its new title.'),
      about: aboutSchema.nullable().optional().describe('Description of the group; null: none.'),
      public: z.boolean().optional().describe('Whether anybody of the installation may find and join it.'),
    })
    .refine(
      ({ title, about, public: isPublic }) => [title, about, isPublic].some((value) => value !== undefined),
      'give one or more of "title", "about" and "public"',
    ),
  output: groupSchema.extend({
    changed: changedField,
  }),
  who: 'group-admin',
  on: 'group',
  scope: 'groups:write',
  errors: [],
  run: async (services, { title, about, public: isPublic }, caller, access) =>
    withLockedGroup(services, { access, caller, requiredRole: 'group-admin' }, async (group) => {
      const changes = { title, about: about === undefined ? undefined : about || null, public: isPublic };
      const changedFields = await updateGroup(group.tx, group.conversationId, changes);
      const updatedGroup = serializeGroup((await findGroup(group.tx, group.conversationId))!);
      await addChangeNotices(group, changedFields, updatedGroup);
      return { ...updatedGroup, changed: changedFields.size > 0 };
    }),
});

async function addChangeNotices(
  group: LockedGroup,
  changedFields: Awaited<ReturnType<typeof updateGroup>>,
  updatedGroup: { title: string; public: boolean },
): Promise<void> {
  if (changedFields.has('title')) await group.addNotice('renamed', { title: updatedGroup.title });
  if (changedFields.has('about')) await group.addNotice('described');
  if (changedFields.has('public')) await group.addNotice(updatedGroup.public ? 'published' : 'unpublished');
}
