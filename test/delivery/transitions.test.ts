import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  hookStateTriggers,
  documentedHookTransitions,
  type HookStateTrigger,
  type HookState,
} from '../../src/model/hook.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';

type AnyState = HookState | 'removed';
const states = Object.keys(documentedHookTransitions) as AnyState[];

let server: TestServer;
let receiver: Receiver;
let group: TestGroup;
let hook: number;
beforeAll(async () => {
  server = await TestServer.start({
    // The server retries nothing within a test: the test causes each attempt.
    delivery: { retryDelaysMs: [3_600_000] },
    limits: { hookRegistrationsPerGroupPerMinute: 1_000, hookChangesPerGroupPerMinute: 1_000 },
  });
});
afterAll(() => server.stop());
beforeEach(async () => {
  receiver = await Receiver.start();
  group = await server.createGroup();
  hook = (await postJson(`${group.webhook}/reverse`, { url: receiver.url() })).body.id;
  // The hook needs a delivered message that it can deliver again.
  await attempt(200);
});
afterEach(() => receiver.stop());

const url = (): string => `${group.webhook}/reverse/${hook}`;
const state = async (): Promise<AnyState> => (await server.operate<{ state: AnyState }>('hooks.info', { hook })).state;
const row = async (): Promise<string> =>
  JSON.stringify(
    await server.database.query((sql) => sql`select cursor, failures, removed_at from reverse_hook where id = ${hook}`),
  );
const change = (paused: boolean): Promise<unknown> =>
  fetch(url(), {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ paused }),
  });

/** Makes the hook attempt a delivery that gets this answer, if it sends at all. Waits until the attempt is settled. */
async function attempt(status: number): Promise<void> {
  const before = await row();
  const from = await state();
  receiver.answer = () => status;
  await postJson(group.webhook, { text: 'message' });
  if (from === 'paused' || from === 'removed') return;
  if (from !== 'active') {
    await server.database.query(
      (sql) => sql`update reverse_hook set next_attempt_at = null, generation = generation + 1 where id = ${hook}`,
    );
    await server.database.query((sql) => sql`select pg_notify('klatch', ${`test h${group.id}`})`);
  }
  await eventually(row, (now) => now !== before);
}

const happenings: Record<HookStateTrigger, () => Promise<unknown>> = {
  delivered: () => attempt(200),
  failed: () => attempt(503),
  'failing for three days': () =>
    server.database.query(
      (sql) => sql`update reverse_hook set failing_since = failing_since - interval '3 days' where id = ${hook}`,
    ),
  'answered 410': () => attempt(410),
  pause: () => change(true),
  resume: () => change(false),
  'redeliver from': () => postJson(`${url()}/redeliver`, { from: `${group.id}:1` }),
  'skip the backlog': () => postJson(`${url()}/redeliver`, { discard_backlog: true }),
  delete: () => fetch(url(), { method: 'DELETE' }),
  restore: () => server.operate('hooks.restore', { hook }).catch(() => {}),
};

/** By state: the events that bring an active hook into that state. */
const ways: Record<AnyState, readonly HookStateTrigger[]> = {
  active: [],
  failing: ['failed'],
  parked: ['failed', 'failing for three days'],
  paused: ['pause'],
  removed: ['answered 410'],
};

describe.each(states)('a hook that is %s', (from) => {
  test.each(hookStateTriggers.map((event) => [event, documentedHookTransitions[from][event] ?? from] as const))(
    'and meets "%s" is %s',
    async (event, to) => {
      for (const step of ways[from]) await happenings[step]();
      expect(await state()).toBe(from);
      // The receiver does not answer: a request that the event makes due stays in flight, and changes no state.
      receiver.answer = () => {};
      await happenings[event]();
      expect(await state()).toBe(to);
    },
  );
});

test('docs/reverse-webhooks.md shows the table', () => {
  const rows = states.flatMap((from) =>
    Object.entries(documentedHookTransitions[from]).map(([event, to]) => `${from} | ${event} | ${to}`),
  );
  const page = readFileSync(join(import.meta.dirname, '../../docs/reverse-webhooks.md'), 'utf8');
  const shown = /<!-- transitions -->\n\n([^]*?)\n\n/.exec(page)?.[1]!.split('\n').slice(2) ?? [];
  expect(
    shown.map((line) =>
      line
        .replace(/^\| *| *\|$/g, '')
        .replace(/ +\| +/g, ' | ')
        .replaceAll('`', ''),
    ),
  ).toEqual(rows);
});
