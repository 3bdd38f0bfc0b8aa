import { z } from 'zod';
import { KlatchError } from '../errors.ts';
import type { ConversationId } from '../model/ids.ts';
import { findAccountByNick, insertAccount } from '../storage/accounts.ts';
import type { Sql } from '../storage/connection.ts';
import {
  findGroup,
  findGroupsByTitle,
  insertGroup,
  insertMember,
  listGroups,
  lockGroup,
  type Group,
} from '../storage/groups.ts';
import { findSealedToken, insertIntegration, replaceToken } from '../storage/integrations.ts';
import { newToken, openToken } from './access.ts';
import { groupHooks, hookSummarySchema } from './hooks.ts';
import { defineOperation } from './operation.ts';
import type { Services } from './services.ts';
import { nickSchema, titleSchema } from './users.ts';

/** A group's number, or its title where no other group has the same. */
const groupReference = z.union([z.int().positive(), z.string().min(1).max(200)]);

const groupSchema = z.object({
  id: z.int(),
  title: z.string(),
  about: z.string().nullable(),
  created_at: z.string(),
  archived: z.boolean(),
  members: z.int(),
  messages: z.int(),
});
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
      const ownerAccount = owner === undefined ? null : await findAccountByNick(tx, owner);
      if (owner !== undefined && ownerAccount === null) {
        throw new KlatchError('not_found', { sentence: `There is no user with the nick ${owner}` });
      }
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
  run: async (services, { group }) => groupInfoOf(services, await resolveGroup(services, group)),
});

export const listAllGroups = defineOperation({
  name: 'groups.list',
  summary: 'List groups by number.',
  input: z.strictObject({ after: z.int().min(0).default(0), limit: z.int().min(1).max(1_000).default(100) }),
  output: z.array(groupSchema),
  allows: (caller) => caller.kind === 'system',
  run: async ({ database }, { after, limit }) => {
    const groups = await database.general.run((sql) => listGroups(sql, after, limit));
    return groups.map(present);
  },
});

export const showToken = defineOperation({
  name: 'groups.token',
  summary: "Show a group's integration token and webhook URL.",
  input: z.strictObject({ group: groupReference }),
  output: tokenSchema,
  allows: (caller) => caller.kind === 'system',
  run: async (services, { group }) => {
    const id = await resolveGroup(services, group);
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
    const id = await resolveGroup(services, group);
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

async function resolveGroup({ database }: Services, reference: string | number): Promise<ConversationId> {
  const number = typeof reference === 'number' ? reference : /^\d{1,15}$/.test(reference) ? Number(reference) : null;
  const found = await database.general.run(async (sql: Sql) => {
    if (number === null) return findGroupsByTitle(sql, String(reference));
    const group = await findGroup(sql, number as ConversationId);
    return group === null ? [] : [group.id];
  });
  if (found.length === 0) throw new KlatchError('not_found', { sentence: `There is no group ${reference}` });
  if (found.length > 1) {
    const sentence = `Several groups are called ${reference}: give the number (${found.join(', ')})`;
    throw new KlatchError('invalid_input', { sentence });
  }
  return found[0]!;
}

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
  return {
    id: group.id,
    title: group.title,
    about: group.about,
    created_at: group.createdAt.toISOString(),
    archived: group.archivedAt !== null,
    members: group.members,
    messages: group.lastSeq,
  };
}
