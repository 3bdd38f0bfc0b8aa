import * as z from 'zod';
import { groupAddresses } from '../../callers/group-addresses.ts';
import { KlatchError } from '../../errors.ts';
import { formatWithin } from '../../model/expectation.ts';
import type { ConversationId } from '../../model/ids.ts';
import type { GroupRole } from '../../model/roles.ts';
import type { Sql } from '../../storage/db/connection.ts';
import { listExpectations, type Expectation } from '../../storage/groups/expectations.ts';
import { findGroup, type Group } from '../../storage/groups/groups.ts';
import { findSealedToken } from '../../storage/groups/integrations.ts';
import { openIntegrationToken } from '../core/access.ts';
import { isAdministrator, type Caller } from '../core/caller.ts';
import { groupNotFound } from '../core/group-transaction.ts';
import { hookSummarySchema, readHookSummaries } from '../hooks/hooks.ts';
import { aboutField, createdAtField, groupField, groupRoleSchema, titleField, membersField } from '../core/schemas.ts';
import type { Services } from '../core/services.ts';
import { readRefusedPosts, refusedPostsSchema } from './refused-posts.ts';

/** The JSON of a group, for those who may see the group. */

export const groupSchema = z.object({
  id: groupField,
  title: titleField,
  about: aboutField,
  public: z.boolean().describe('Anybody of the installation may find and join it.'),
  created_at: createdAtField,
  archived: z.boolean().describe('Nobody posts into an archived group.'),
  members: membersField,
  messages: z.int().describe('Its messages, deleted ones too, without those that a retention rule removed.'),
});

const groupAddressSchema = z.object({
  name: z.string().describe('The kind of program that it is for, such as `Slack` or `Gotify`.'),
  values: z
    .array(
      z.object({
        name: z.string().describe('Name of the field in such programs.'),
        value: z.string().describe('The value to paste.'),
      }),
    )
    .describe('The values to paste, with the names of their fields: a `URL` alone, or `server` and `token`.'),
  programs: z
    .array(z.string())
    .describe('Programs that are set up so; docs/callers.md has the lines of their configuration.'),
});

/** An expectation: the group expects a post with the key at least this often. */
export const expectationSchema = z.object({
  key: z.string().describe('The `key` that the posts have.'),
  within: z.string().describe('How long a post may stay away: a duration, such as `26h`.'),
  last_post_at: z.string().nullable().describe('Time of the last post with the key; null: none since it was set.'),
  set_at: z.string().describe('Time at which it was set.'),
  overdue: z.boolean().describe('True: no post came in time, and a notice in the group says so.'),
  due_at: z
    .string()
    .nullable()
    .describe(
      'When it is overdue unless a post comes, if the server runs until then; null: it is, or the group is archived.',
    ),
});

/**
 * A group with details. The optional fields are only for the group's owner and admins, and for administrators of the
 * installation.
 */
export const groupInfoSchema = groupSchema.extend({
  role: groupRoleSchema.nullable().describe("The caller's own; null for an administrator who is no member."),
  webhook: z.string().optional().describe('Where to post: it holds the token.'),
  addresses: z
    .array(groupAddressSchema)
    .optional()
    .describe('Values to paste into programs, an entry for each way to reach the group. They contain the token.'),
  hooks: z.array(hookSummarySchema).optional().describe('Its reverse webhooks.'),
  refused_posts: z
    .array(refusedPostsSchema)
    .optional()
    .describe('Posts of the last 7 days that were refused for what they hold, newest first: 20 kinds at most.'),
  loops: z
    .array(z.int())
    .optional()
    .describe(
      "Reverse webhooks whose receivers seem to answer posts of the group's webhook with further ones, without an end: for five minutes more than 60 a minute, each within 2 s of a delivery. As far as the node sees that is asked.",
    ),
  expectations: z.array(expectationSchema).optional().describe('At most 100, by key.'),
});

/** The group with the details that the caller may see. */
export async function readGroupInfo(
  services: Services,
  sql: Sql,
  { id, caller, role }: { id: ConversationId; caller: Caller; role: GroupRole | null },
): Promise<z.infer<typeof groupInfoSchema>> {
  const group = await findGroup(sql, id);
  if (group === null) throw groupNotFound(id);
  const basicInfo = { ...serializeGroup(group), role };
  if (!maySeeIntegration(caller, role)) return basicInfo;
  const token = await readIntegrationToken(services, sql, id);
  const hooks = await readHookSummaries(services, sql, id);
  const refused = await readRefusedPosts(sql, id);
  const addresses = pasteableAddresses(services, token);
  const expectations = (await listExpectations(sql, id)).map(serializeExpectation);
  const loops = services.loopingHooks().filter(({ conversationId }) => conversationId === id);
  return {
    ...basicInfo,
    webhook: webhookUrl(services, token),
    addresses,
    hooks,
    refused_posts: refused,
    loops: loops.map(({ hookId }) => hookId),
    expectations,
  };
}

export function serializeExpectation(expectation: Expectation): z.infer<typeof expectationSchema> {
  const { key, withinS, lastPostAt, setAt, isOverdue, dueAt } = expectation;
  return {
    key,
    within: formatWithin(withinS),
    last_post_at: lastPostAt?.toISOString() ?? null,
    set_at: setAt.toISOString(),
    overdue: isOverdue,
    due_at: dueAt?.toISOString() ?? null,
  };
}

/**
 * Whether the caller may see the integration: administrators, and owners and admins of the group. A bot also needs the
 * scope `hooks:manage`.
 */
function maySeeIntegration(caller: Caller, role: GroupRole | null): boolean {
  if (isAdministrator(caller)) return true;
  if (caller.kind !== 'account' || (role !== 'owner' && role !== 'admin')) return false;
  return caller.scopes === null || caller.scopes.has('hooks:manage');
}

export async function readIntegrationToken({ sealer }: Services, sql: Sql, id: ConversationId): Promise<string> {
  const sealed = await findSealedToken(sql, id);
  if (sealed === null) throw new KlatchError('not_found', { sentence: `Group ${id} has no integration` });
  return openIntegrationToken(sealer, sealed);
}

export function webhookUrl({ config }: Services, token: string): string {
  return `${config.http.baseUri}/v1/webhooks/${token}`;
}

/** The addresses for posts into the group. Those at which the server does not answer are left out. */
function pasteableAddresses({ config }: Services, token: string): z.infer<typeof groupAddressSchema>[] {
  const { baseUri, callerPaths: hasCallerPaths } = config.http;
  return groupAddresses({ baseUri, token, hasCallerPaths }).map(({ name, values, programs }) => {
    return { name, values: [...values], programs: [...programs] };
  });
}

export function serializeGroup(group: Group): z.infer<typeof groupSchema> {
  return { ...serializeGroupSummary(group), about: group.about };
}

/** The group without `about`, which may be long. */
export function serializeGroupSummary(group: Omit<Group, 'about'>): Omit<z.infer<typeof groupSchema>, 'about'> {
  return {
    id: group.id,
    title: group.title,
    public: group.public,
    created_at: group.createdAt.toISOString(),
    archived: group.archivedAt !== null,
    members: group.members,
    messages: group.messages,
  };
}
