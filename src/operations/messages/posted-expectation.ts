import { MAX_EXPECTATIONS_PER_GROUP, type PostedExpectation } from '../../model/expectation.ts';
import {
  deleteExpectation,
  findExpectedWithinS,
  recordSignOfLife,
  setExpectation,
} from '../../storage/groups/expectations.ts';
import { lockGroup } from '../../storage/groups/groups.ts';
import { lockAndCompareTokenHash, type Integration } from '../../storage/groups/integrations.ts';
import { retryWhileDatabaseIsAway } from '../core/database-wait.ts';
import { tooManyExpectations } from '../core/expectation-limit.ts';
import type { Services } from '../core/services.ts';

/**
 * Sets or removes the expectation of a post before the post is written: if the post then fails, the group still expects
 * one. Does nothing if the group is archived or the token was replaced, since the post is refused then. Retries while
 * the database is unavailable, as long as a post may wait. Throws `quota_exceeded`.
 */
export async function applyPostedExpectation(
  { database, config }: Services,
  { conversationId, tokenHash }: Integration,
  { key, within, mustRefusePostAtLimit: isRefusedOverLimit }: PostedExpectation,
): Promise<void> {
  if (within === null) return;
  const deadlineMs = performance.now() + config.limits.intakeTimeoutMs;
  const result = await retryWhileDatabaseIsAway(async () => {
    const storedWithin = await database.general.run((sql) => findExpectedWithinS(sql, conversationId, key));
    if (storedWithin === (within === 'off' ? null : within)) return 'unchanged';
    return database.general.transaction(async (tx) => {
      const groupHead = await lockGroup(tx, conversationId);
      if (groupHead === null || groupHead.archived) return 'unchanged';
      if (!(await lockAndCompareTokenHash(tx, conversationId, tokenHash))) return 'unchanged';
      if (within === 'off') return deleteExpectation(tx, conversationId, key);
      return setExpectation(tx, conversationId, { key, withinS: within, max: MAX_EXPECTATIONS_PER_GROUP });
    });
  }, deadlineMs);
  if (result === 'full' && isRefusedOverLimit) throw tooManyExpectations();
}

/**
 * For a post that becomes no message: counts it as a sign of life, and applies its expectation. Does nothing if
 * `expectation` is null.
 */
export async function recordPostWithoutMessage(
  services: Services,
  integration: Integration,
  expectation: PostedExpectation | null,
): Promise<void> {
  if (expectation === null) return;
  await applyPostedExpectation(services, integration, expectation);
  const { database, config } = services;
  await retryWhileDatabaseIsAway(
    () => database.general.transaction((tx) => recordSignOfLife(tx, integration, expectation.key)),
    performance.now() + config.limits.intakeTimeoutMs,
  );
  services.recheckOverdueExpectations();
}
