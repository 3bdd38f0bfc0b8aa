import * as z from 'zod';
import { KlatchError } from '../errors.ts';
import type { AccountId, ConversationId } from '../model/ids.ts';
import { insertAccount } from '../storage/accounts.ts';
import type { Transaction } from '../storage/connection.ts';
import { findGroup, insertGroup, listGroups, updateGroup } from '../storage/groups.ts';
import { insertIntegration } from '../storage/integrations.ts';
import { insertMember } from '../storage/members.ts';
import { insertNotice } from '../storage/notices.ts';
import { newToken } from './access.ts';
import { lockAccount, requireAddressee, requireRoom } from './admission.ts';
import { isAdministrator, type Caller } from './caller.ts';
import { reading, unknownOutcome } from './database-errors.ts';
import { changeGroup, committing, type ConversationNews, type LockedGroup } from './group-change.ts';
import { groupInfoSchema, groupSchema, presentCounts, presentGroup, readGroupInfo } from './group-view.ts';
import { defineOperation, definePlacedOperation } from './operation.ts';
import { limitSchema, pageOf } from './page.ts';
import { readAs } from './place.ts';
import { aboutSchema, groupReference } from './schemas.ts';
import type { Services } from './services.ts';
import { nickSchema, titleSchema } from './users.ts';

/** A line of the list. Without `about`, which is long: a page of 1,000 has to fit into one answer. */
const listedGroupSchema = groupSchema.omit({ about: true }).extend({ hooks: z.int() });

interface NewGroup {
  readonly title: string;
  readonly about: string | null;
  readonly public: boolean;
  /** Null: nobody's. */
  readonly owner: { readonly id: AccountId; readonly nick: string } | null;
  /** Whose doing it is; null: the command line's. */
  readonly actorId: AccountId | null;
}

export const createGroup = defineOperation({
  name: 'groups.create',
  summary: 'Create a group with its integration token; who creates it owns it. Administrators may name another owner.',
  input: z.strictObject({
    title: titleSchema,
    about: aboutSchema.optional(),
    public: z.boolean().optional(),
    owner: nickSchema.optional(),
  }),
  output: groupInfoSchema,
  who: 'account',
  scope: 'groups:write',
  errors: ['forbidden', 'not_found', 'limit_reached'],
  run: async (services, { title, about, public: isPublic = false, owner: named }, caller) => {
    if (named !== undefined && !isAdministrator(caller)) {
      const sentence = 'owner: only administrators make groups for others; create it, then use groups.transfer';
      throw new KlatchError('forbidden', { sentence });
    }
    const actorId = caller.kind === 'account' ? caller.accountId : null;
    const described = { title, about: about || null, public: isPublic, actorId };
    const { id, ownerId } = await insertAll(services, caller, { ...described, named });
    const role = actorId !== null && ownerId === actorId ? ('owner' as const) : null;
    return reading(services.database.general.run((sql) => readGroupInfo(services, sql, { id, caller, role })));
  },
});

async function insertAll(
  services: Services,
  caller: Caller,
  asked: Omit<NewGroup, 'owner'> & { named: string | undefined },
): Promise<{ id: ConversationId; ownerId: AccountId | null }> {
  const { named, ...group } = asked;
  try {
    return await committing(services, async (tx, news) => {
      const self = caller.kind === 'account' ? { id: caller.accountId, nick: caller.nick } : null;
      const owner = named === undefined ? self : await requireAddressee(tx, named);
      const id = await insert(services, { tx, news }, { ...group, owner });
      return { id, ownerId: owner?.id ?? null };
    });
  } catch (error) {
    throw unknownOutcome(error, 'The group may have been created: look at the list before you repeat it');
  }
}

async function insert(
  { sealer, config }: Services,
  { tx, news }: { tx: Transaction; news: ConversationNews },
  group: NewGroup,
): Promise<ConversationId> {
  const { owner, actorId, title } = group;
  const requested = owner !== null && owner.id === actorId;
  if (owner !== null) requireRoom(config.limits, owner.nick, { requested, counts: await lockAccount(tx, owner) });
  const conversationId = await insertGroup(tx, group);
  const accountId = await insertAccount(tx, { kind: 'webhook', nick: null, name: 'Webhook', role: 'bot' });
  await insertIntegration(tx, { conversationId, accountId, token: newToken(sealer) });
  if (owner !== null) {
    await insertMember(tx, { conversationId, accountId: owner.id, role: 'owner', readSeq: 0, requested });
    news.memberChanged({ conversationId, accountId: owner.id });
  }
  news.noticed(conversationId);
  await insertNotice(tx, { conversationId, kind: 'created', actorId, details: { title } });
  return conversationId;
}

export const groupInfo = definePlacedOperation({
  name: 'groups.info',
  summary: 'Show a group; to its owner and admins with its webhook URL, and its reverse webhooks with their state.',
  input: z.strictObject({ group: groupReference }),
  output: groupInfoSchema,
  who: 'member',
  on: 'group',
  scope: 'groups:read',
  errors: [],
  run: async (services, _input, caller, place) => {
    const { conversationId: id } = place;
    const role = place.role === 'administrator' ? null : place.role;
    const who = role === 'member' ? ('member' as const) : ('group-admin' as const);
    return readAs(services, { place, caller, on: 'group', who }, (sql) =>
      readGroupInfo(services, sql, { id, caller, role }),
    );
  },
});

export const listAllGroups = defineOperation({
  name: 'groups.list',
  summary: 'List groups by number, a page at a time.',
  input: z.strictObject({
    after: z.int().min(0).default(0),
    limit: limitSchema,
    archived: z.boolean().nullable().default(null),
  }),
  output: z.object({ groups: z.array(listedGroupSchema), next: z.int().nullable() }),
  who: 'administrator',
  scope: null,
  errors: [],
  run: async ({ database }, { after, limit, archived }) => {
    const rows = await reading(database.general.run((sql) => listGroups(sql, { after, limit: limit + 1, archived })));
    const { page, next } = pageOf(rows, limit, (group) => group.id);
    const groups = page.map((group) => ({ ...presentCounts(group), hooks: group.hooks }));
    return { groups, next };
  },
});

export const editGroup = definePlacedOperation({
  name: 'groups.update',
  summary: 'Rename or describe a group, or let anybody of the installation find and join it.',
  input: z
    .strictObject({
      group: groupReference,
      title: titleSchema.optional(),
      about: aboutSchema.nullable().optional(),
      public: z.boolean().optional(),
    })
    .refine(
      ({ title, about, public: isPublic }) => [title, about, isPublic].some((value) => value !== undefined),
      'give one or more of "title", "about" and "public"',
    ),
  output: groupSchema.extend({
    /** False: it was so already. */
    changed: z.boolean(),
  }),
  who: 'group-admin',
  on: 'group',
  scope: 'groups:write',
  errors: [],
  run: async (services, { title, about, public: isPublic }, caller, place) =>
    changeGroup(services, { place, caller, who: 'group-admin' }, async (group) => {
      const changes = { title, about: about === undefined ? undefined : about || null, public: isPublic };
      const changed = await updateGroup(group.tx, group.conversationId, changes);
      const now = presentGroup((await findGroup(group.tx, group.conversationId))!);
      await tellChanges(group, changed, now);
      return { ...now, changed: changed.size > 0 };
    }),
});

async function tellChanges(
  group: LockedGroup,
  changed: Awaited<ReturnType<typeof updateGroup>>,
  now: { title: string; public: boolean },
): Promise<void> {
  if (changed.has('title')) await group.notice('renamed', { title: now.title });
  if (changed.has('about')) await group.notice('described');
  if (changed.has('public')) await group.notice(now.public ? 'published' : 'unpublished');
}
