import { expect } from '@jest/globals';
import { expectResponseHeaders } from '../http/wire.ts';
import { eventually } from '../support/eventually.ts';
import { postJson, readJson, type JsonAnswer, type TestGroup, type TestServer } from '../support/server.ts';

export const NOT_FOUND = { status: 'Webhook with given id not found', message: 'Webhook with given id not found' };
export const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** One registered hook, as a holder of its group's token sees it. */
export interface TestHook {
  readonly id: number;
  readonly secret: string;
  /** The URL `/v1/webhooks/<token>/reverse/<id>` on this server. */
  readonly url: string;
}

export async function registerHook(group: TestGroup, body: Record<string, unknown>): Promise<TestHook> {
  const answer = await postJson(`${group.webhook}/reverse`, body);
  expect(answer).toMatchObject({ status: 201 });
  return { ...answer.body, url: `${group.webhook}/reverse/${answer.body.id}` };
}

/** Sends JSON with this method. Checks that every answer has the common headers. */
export async function ask(method: string, url: string, body?: unknown): Promise<JsonAnswer> {
  const content = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
  const headers = { 'content-type': 'application/json' };
  const answer = await readJson(await fetch(url, { method, headers, ...content }));
  expectResponseHeaders(answer);
  return answer;
}

/** Polls the health of a hook until `wanted` is true of it. */
export async function healthWhen(hook: TestHook, wanted: (health: JsonAnswer['body']) => boolean) {
  return eventually(async () => (await ask('GET', hook.url)).body, wanted);
}

/** The row of a hook. */
export interface HookRow {
  readonly generation: number;
  readonly cursorGeneration: number;
  readonly cursor: number;
  readonly failures: number;
  readonly rejections: number;
  readonly batchLastSeq: number | null;
  readonly unbatchedUntil: number | null;
  readonly paused: boolean;
  readonly failing: boolean;
  readonly parked: boolean;
  readonly waits: boolean;
  readonly secret: string;
  readonly oldSecret: string | null;
  /** The remaining time for which the old secret is valid, in seconds. */
  readonly oldForS: number | null;
}

export async function rowOf(server: TestServer, { id }: { id: number }): Promise<HookRow> {
  const [row] = await server.database.query(
    (sql) => sql<HookRow[]>`
      select generation, cursor_generation as "cursorGeneration", cursor, failures, rejections, batch_last_seq as "batchLastSeq",
        unbatched_until as "unbatchedUntil", paused_at is not null as paused, failing_since is not null as failing,
        parked_at is not null as parked, next_attempt_at is not null as waits, secret_sealed as secret,
        old_secret_sealed as "oldSecret", extract(epoch from old_secret_until - now())::float8 as "oldForS"
      from reverse_hook where id = ${id}`,
  );
  return row!;
}

/** The retry rows of a hook for messages, each as its first seq, last seq, attempts, and whether it is due. */
export async function retriesOf(server: TestServer, { id }: { id: number }): Promise<unknown[]> {
  const rows = await server.database.query(
    (sql) => sql`
      select seq, last_seq as last, attempts, next_at <= now() as due from delivery_retry where hook_id = ${id}
      order by seq`,
  );
  return rows.map(({ seq, last, attempts, due }) => [seq, last, attempts, due]);
}
