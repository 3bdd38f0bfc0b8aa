import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import {
  EXPECTATION_KEY_SENTENCE,
  MAX_EXPECTATIONS_PER_GROUP,
  parseExpectationKey,
  parseWithin,
  WITHIN_SENTENCE,
} from '../../model/expectation.ts';
import { deleteExpectation, listExpectations, setExpectation } from '../../storage/groups/expectations.ts';
import { readThenRecheckRole } from '../core/conversation-access.ts';
import { tooManyExpectations } from '../core/expectation-limit.ts';
import { withLockedGroup } from '../core/group-transaction.ts';
import { defineTargetedOperation } from '../core/operation.ts';
import { groupField, groupReference, changedField } from '../core/schemas.ts';
import { expectationSchema, serializeExpectation } from './group-view.ts';

/** The most characters of a key as it is sent, with the white space around it. */
const MAX_UNTRIMMED_KEY_LENGTH = 400;
const MAX_DURATION_LENGTH = 100;

const expectationKeySchema = z
  .string()
  .max(MAX_UNTRIMMED_KEY_LENGTH)
  .transform((text, context) => {
    const key = parseExpectationKey(text);
    if (key !== null) return key;
    context.addIssue({ code: 'custom', message: EXPECTATION_KEY_SENTENCE });
    return z.NEVER;
  });

const withinSchema = z
  .string()
  .max(MAX_DURATION_LENGTH)
  .refine((text) => parseWithin(text) !== null, WITHIN_SENTENCE);

export const setGroupExpectation = defineTargetedOperation({
  name: 'expectations.set',
  summary:
    'Expect a post with this key at least once in a given time. The group gets a line when none comes in time, and when one comes again.',
  input: z.strictObject({
    group: groupReference,
    key: expectationKeySchema.describe('The `key` that the posts have, in their body or behind their address.'),
    within: withinSchema.describe(
      'A duration from 1m to 366d, such as `26h`. Time in which no server could take posts does not count.',
    ),
  }),
  output: expectationSchema.extend({
    group: groupField,
    changed: changedField,
  }),
  who: 'group-admin',
  on: 'group',
  scope: 'groups:write',
  errors: ['quota_exceeded'],
  run: async (services, { key, within }, caller, access) =>
    withLockedGroup(services, { access, caller, requiredRole: 'group-admin' }, async ({ tx, conversationId }) => {
      const max = MAX_EXPECTATIONS_PER_GROUP;
      const withinS = parseWithin(within)!;
      const result = await setExpectation(tx, conversationId, { key, withinS, max });
      if (result === 'full') throw tooManyExpectations();
      const [expectation] = await listExpectations(tx, conversationId, key);
      return { group: conversationId, ...serializeExpectation(expectation!), changed: result === 'set' };
    }),
});

export const listGroupExpectations = defineTargetedOperation({
  name: 'expectations.list',
  summary: 'List the expectations of a group by key, with the last post of each: at most 100.',
  input: z.strictObject({ group: groupReference }),
  output: z.object({ expectations: z.array(expectationSchema).describe('At most 100, by key.') }),
  who: 'group-admin',
  on: 'group',
  scope: 'groups:read',
  errors: [],
  run: async (services, _input, caller, access) =>
    readThenRecheckRole(services, { access, caller, on: 'group', requiredRole: 'group-admin' }, async (sql) => ({
      expectations: (await listExpectations(sql, access.conversationId)).map(serializeExpectation),
    })),
});

export const removeGroupExpectation = defineTargetedOperation({
  name: 'expectations.remove',
  summary: 'Remove an expectation: the group gets no more lines about it.',
  input: z.strictObject({
    group: groupReference,
    key: expectationKeySchema.describe('The key of the posts that are expected.'),
  }),
  output: z.object({ group: groupField, key: z.string().describe('The key of the posts that were expected.') }),
  who: 'group-admin',
  on: 'group',
  scope: 'groups:write',
  errors: ['not_found'],
  run: async (services, { key }, caller, access) =>
    withLockedGroup(services, { access, caller, requiredRole: 'group-admin' }, async ({ tx, conversationId }) => {
      if (await deleteExpectation(tx, conversationId, key)) return { group: conversationId, key };
      const sentence = `Group ${conversationId} expects no post with this key: look at the list of what it expects`;
      throw new KlatchError('not_found', { sentence });
    }),
});
