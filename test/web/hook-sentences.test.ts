import { expect, test } from '@jest/globals';
import type { Attempt, Hook } from '../../web/core/webhooks/hook-api.ts';
import { attemptSentence, hookSentence, untilMoment } from '../../web/screens/webhooks/hook-sentences.ts';

const NOW = Date.parse('2026-11-28T12:00:00Z');

const hook = (changes: Partial<Hook>): Hook => ({
  id: 5,
  group: 7,
  group_title: 'Operations',
  url: 'https://example.org/hook',
  host: 'example.org',
  description: null,
  order: 'strict',
  format: 'klatch',
  events: [],
  state: 'active',
  pending: 0,
  oldest_pending_at: null,
  last_success_at: '2026-11-28T11:59:00Z',
  last_error: null,
  next_attempt_at: null,
  batch: 1,
  signature: 'v1',
  skip: [],
  old_secret_until: null,
  created_at: '2026-11-01T00:00:00Z',
  start_seq: 0,
  cursor: 3,
  last_seq: 3,
  failures: 0,
  failing_since: null,
  removed: null,
  ...changes,
});
const refusedConnection = { at: '2026-11-28T11:58:00Z', category: 'refused', code: null };

test.each([
  [{ last_success_at: null }, 'Nothing waits. Nothing was sent yet.'],
  [{ pending: 1 }, 'The receiver takes its messages. 1 message waits.'],
  [{ state: 'paused', pending: 12 }, 'Paused: the server sends nothing. 12 messages wait.'],
  [{ state: 'paused' }, 'Paused: the server sends nothing. Nothing waits.'],
])('the sentence about a hook says its state and what waits: %j', (changes, sentence) => {
  expect(hookSentence(hook(changes), NOW)).toBe(sentence);
});

test('the sentence about a failing hook says since when, why, what comes next, and what waits', () => {
  const failing = { state: 'failing', pending: 312, failures: 4, failing_since: '2026-11-28T11:02:00Z' };
  const next = { last_error: refusedConnection, next_attempt_at: '2026-11-28T12:04:00Z' };
  expect(hookSentence(hook({ ...failing, ...next }), NOW)).toMatch(
    /^Failing since \d.*: the target refused the connection or cannot be reached\. Next attempt in 4 min\. 312 messages wait\. The server keeps trying\.$/,
  );
  const answered = { last_error: { ...refusedConnection, category: 'status', code: 503 }, next_attempt_at: null };
  expect(hookSentence(hook({ ...failing, ...answered }), NOW)).toMatch(
    /the target answered 503\. The server tries it now\./,
  );
});

test('the sentence about a removed hook says who removed it, and until when it can be restored', () => {
  const removed = { at: '2026-11-28T11:00:00Z', by: 'target', restorable_until: '2026-12-28T11:00:00Z' };
  expect(hookSentence(hook({ state: 'removed', removed }), NOW)).toMatch(/answered 410.*You can restore it until/);
  const byClient = { ...removed, by: 'client', restorable_until: null };
  expect(hookSentence(hook({ state: 'removed', removed: byClient }), NOW)).toMatch(
    /^Removed .* by somebody who manages the group\.$/,
  );
});

test('moments before today have a day and a time of day', () => {
  const idle = hookSentence(hook({ last_success_at: '2020-03-05T10:11:00Z' }), NOW);
  expect(idle).toMatch(/^Nothing waits\. Last delivery .*\b[45]\b.*:11.*\.$/);
});

test.each([
  ['2026-11-28T11:59:00Z', 'now'],
  ['2026-11-28T12:00:12.3Z', 'in 13 s'],
  ['2026-11-28T12:04:20Z', 'in 4 min'],
  ['2026-11-28T15:00:00Z', 'in 3 h'],
])('the time until %s is "%s"', (iso, text) => {
  expect(untilMoment(iso, NOW)).toBe(text);
});

test.each([
  ['delivered', null, 204, 'delivered, answered 204'],
  [
    'delivered',
    'group archived',
    200,
    'delivered, answered 200; its reply was not posted, since the group is archived',
  ],
  ['failed', 'status', 500, 'failed: the target answered 500'],
  ['dead_lettered', 'status', 422, 'set aside: the target answered 422'],
  ['unregistered', 'status', 410, 'hook removed: the target answered 410'],
  ['skipped', null, null, 'skipped on request'],
  ['skipped', 'too old', null, 'passed over: too old'],
  ['expired', null, null, 'removed by a retention rule before it was delivered'],
])('an attempt with outcome %s (%s, %s) is "%s"', (outcome, category, code, sentence) => {
  expect(attemptSentence({ outcome, category, code } as Attempt)).toBe(sentence);
});
