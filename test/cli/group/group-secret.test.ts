import { createHmac } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { Workspace } from '../program.ts';

let database: TestDatabase;
let workspace: Workspace;
let webhook: string;
let group: number;

beforeAll(async () => {
  database = await createTestDatabase();
  workspace = await Workspace.create();
  await workspace.configure(database.target);
  const { url } = await workspace.serve();
  const { stdout } = await workspace.run(['group', 'create', 'Ops', '--json']);
  const created = JSON.parse(stdout) as { id: number; webhook: string };
  group = created.id;
  webhook = url + new URL(created.webhook).pathname;
});
afterAll(async () => {
  await workspace.remove();
  await database.drop();
});

const secret = (...args: string[]): ReturnType<Workspace['run']> => workspace.run(['group', 'secret', ...args]);

const shown = async (): Promise<{ secret: string | null; signed_only: boolean }> =>
  JSON.parse((await secret('show', 'Ops', '--json')).stdout) as { secret: string | null; signed_only: boolean };

/** Posts a push event with GitHub's signature by this key; without a key, it is unsigned. Resolves with the status. */
async function postAsGithub(key: string | null): Promise<number> {
  const body = JSON.stringify({
    zen: 'Keep it logically awesome.',
    hook_id: 1,
    repository: { full_name: 'ada/engine' },
  });
  const signature = key === null ? {} : { 'x-hub-signature-256': signed(body, key) };
  const headers = { 'content-type': 'application/json', 'x-github-event': 'ping', ...signature };
  return (await fetch(webhook, { method: 'POST', body, headers })).status;
}

const signed = (body: string, key: string): string => `sha256=${createHmac('sha256', key).update(body).digest('hex')}`;

test('klatch group secret makes a secret, keeps it, makes another one, and removes it', async () => {
  expect((await secret('show', 'Ops')).stdout).toBe(
    `Group ${group} has no secret: signatures of posts are not looked at.\n`,
  );
  expect(await postAsGithub(null)).toBe(200);
  const made = await secret('set', 'Ops');
  expect(made).toMatchObject({ code: 0 });
  const first = (await shown()).secret!;
  expect(made.stdout).toContain(first);
  expect(made.stdout).toMatch(/^unsigned posts: taken from programs that cannot sign$/m);
  expect([await postAsGithub(first), await postAsGithub('wrong'), await postAsGithub(null)]).toEqual([200, 401, 401]);
  await secret('set', 'Ops', '--signed-only');
  expect(await shown()).toMatchObject({ secret: first, signed_only: true });
  await secret('set', 'Ops', '--rotate', '--no-signed-only');
  const second = await shown();
  expect(second.signed_only).toBe(false);
  expect(second.secret).not.toBe(first);
  expect([await postAsGithub(first), await postAsGithub(second.secret)]).toEqual([401, 200]);
  expect((await secret('remove', 'Ops')).stdout).toBe(`Group ${group} has no secret any more.\n`);
  expect((await secret('remove', 'Ops')).stdout).toBe(`Group ${group} has no secret.\n`);
  expect(await postAsGithub(null)).toBe(200);
});

test('klatch group secret reads a secret that a program made from a file or from standard input', async () => {
  const file = join(workspace.folder, 'secret');
  await writeFile(file, 'made-by-the-program\n');
  await secret('set', 'Ops', '--secret-file', file);
  expect((await shown()).secret).toBe('made-by-the-program');
  expect(await postAsGithub('made-by-the-program')).toBe(200);
  await workspace.pipe('made-by-another-one\n', ['group', 'secret', 'set', 'Ops', '--secret-file', '-']);
  expect((await shown()).secret).toBe('made-by-another-one');
  const missing = await secret('set', 'Ops', '--secret-file', join(workspace.folder, 'none'));
  expect(missing.code).not.toBe(0);
  expect(missing.stderr).toContain('--secret-file: ');
  expect(missing.stderr).toContain('does not exist');
});
