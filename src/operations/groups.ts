import { z } from 'zod';
import { KlatchError } from '../errors.ts';
import type { ConversationId } from '../model/ids.ts';
import { insertAccount } from '../storage/accounts.ts';
import { findGroup, insertGroup, insertMember, listGroups, lockGroup, type Group } from '../storage/groups.ts';
import { findSealedToken, insertIntegration, replaceToken } from '../storage/integrations.ts';
import { newToken, openToken, resolveAccount, resolveGroup } from './access.ts';
import { reading } from './database-errors.ts';
import { groupHooks, hookSummarySchema } from './hooks.ts';
import { defineOperation } from './operation.ts';
import { limitSchema, pageOf } from './page.ts';
import { groupReference } from './schemas.ts';
import type { Services } from './services.ts';
import { nickSchema, titleSchema } from './users.ts';

const groupSchema = z.object({
  id: z.int(),
  title: z.string(),
  about: z.string().nullable(),
  created_at: z.string(),
  archived: z.boolean(),
  members: z.int(),
  messages: z.int(),
});
/** A line of the list. Without `about`, which is long: a page of 1,000 has to fit into one answer. */
const listedGroupSchema = groupSchema.omit({ about: true }).extend({ hooks: z.int() });
const groupInfoSchema = groupSchema.extend({
  /** Where to post: it holds the token, so it is for owners and admins only. */
  webhook: z.string(),
  hooks: z.array(hookSummarySchema),
});
const tokenSchema = z.object({ group: z.int(), token: z.string(), webhook: z.string() });

export const createGroup = defineOperation({
  name: 'groups.create',
  summary: 'Create a group with its integration token.',
  input: z.strictObject({ title: titleSchema, about: z.string().max(2_000).optional(), owner: nickSchema.optional() }),
  output: groupInfoSchema,
  allows: (caller) => caller.kind === 'system',
  run: async (services, { title, about = null, owner }) => {
    const { database, sealer } = services;
    const id = await database.general.transaction(async (tx) => {
      const ownerAccount = owner === undefined ? null : await resolveAccount(tx, owner);
      const conversationId = await insertGroup(tx, title, about);
      const integration = { kind: 'webhook', nick: null, name: 'Webhook', role: 'bot' } as const;
      const accountId = await insertAccount(tx, integration);
      await insertIntegration(tx, { conversationId, accountId, token: newToken(sealer) });
      if (ownerAccount !== null) await insertMember(tx, { conversationId, accountId: ownerAccount.id, role: 'owner' });
      return conversationId;
    });
    return groupInfoOf(services, id);
  },
});

export const groupInfo = defineOperation({
  name: 'groups.info',
  summary: 'Show a group, its webhook URL, and its reverse webhooks with their state.',
  input: z.strictObject({ group: groupReference }),
  output: groupInfoSchema,
  allows: (caller) => caller.kind === 'system',
  run: async (services, { group }) => groupInfoOf(services, await resolveGroup(services.database.general, group)),
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
  allows: (caller) => caller.kind === 'system',
  run: async ({ database }, { after, limit, archived }) => {
    const rows = await reading(database.general.run((sql) => listGroups(sql, { after, limit: limit + 1, archived })));
    const { page, next } = pageOf(rows, limit, (group) => group.id);
    const groups = page.map((group) => ({ ...presentCounts(group), hooks: group.hooks }));
    return { groups, next };
  },
});

export const showToken = defineOperation({
  name: 'groups.token',
  summary: "Show a group's integration token and webhook URL.",
  input: z.strictObject({ group: groupReference }),
  output: tokenSchema,
  allows: (caller) => caller.kind === 'system',
  run: async (services, { group }) => {
    const id = await resolveGroup(services.database.general, group);
    return tokenOf(services, id, await readToken(services, id));
  },
});

export const rotateToken = defineOperation({
  name: 'groups.rotate_token',
  summary: "Replace a group's integration token; its reverse webhooks stay.",
  input: z.strictObject({ group: groupReference }),
  output: tokenSchema,
  allows: (caller) => caller.kind === 'system',
  run: async (services, { group }) => {
    const { database, sealer, bus } = services;
    const id = await resolveGroup(services.database.general, group);
    const token = newToken(sealer);
    const old = await database.general.transaction(async (tx) => {
      // Behind every flush that was admitted with the old token.
      await lockGroup(tx, id);
      return replaceToken(tx, id, token);
    });
    if (old !== null) bus.publish('tokensRevoked', [old]);
    return tokenOf(services, id, token.token);
  },
});

async function groupInfoOf(services: Services, id: ConversationId): Promise<z.infer<typeof groupInfoSchema>> {
  const [group, hooks] = await Promise.all([
    services.database.general.run((sql) => findGroup(sql, id)),
    groupHooks(services, id),
  ]);
  if (group === null) throw new KlatchError('not_found', { sentence: `There is no group ${id}` });
  const token = await readToken(services, id);
  return { ...present(group), webhook: webhookUrl(services, token), hooks };
}

async function readToken({ database, sealer }: Services, id: ConversationId): Promise<string> {
  const sealed = await database.general.run((sql) => findSealedToken(sql, id));
  if (sealed === null) throw new KlatchError('not_found', { sentence: `Group ${id} has no integration` });
  return openToken(sealer, sealed);
}

function tokenOf(services: Services, id: ConversationId, token: string): z.infer<typeof tokenSchema> {
  return { group: id, token, webhook: webhookUrl(services, token) };
}

function webhookUrl({ config }: Services, token: string): string {
  return `${config.http.baseUri}/v1/webhooks/${token}`;
}

function present(group: Group): z.infer<typeof groupSchema> {
  return { ...presentCounts(group), about: group.about };
}

function presentCounts(group: Omit<Group, 'about'>): Omit<z.infer<typeof groupSchema>, 'about'> {
  return {
    id: group.id,
    title: group.title,
    created_at: group.createdAt.toISOString(),
    archived: group.archivedAt !== null,
    members: group.members,
    messages: group.lastSeq,
  };
}
