import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { postJson } from '../../support/server.ts';
import { Workspace } from '../program.ts';

describe('klatch group expect', () => {
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

  const run = (...args: string[]): ReturnType<Workspace['run']> => workspace.run(['group', ...args]);

  test('sets, lists and removes what a group expects, and klatch group info shows it', async () => {
    expect((await run('expect', 'list', 'Ops')).stdout).toBe(
      'The group expects nothing. `klatch group expect set GROUP KEY 26h` changes that.\n',
    );
    expect(await run('expect', 'set', 'Ops', 'backup', '26h')).toMatchObject({
      code: 0,
      stdout: `Group ${group} now expects a post with the key backup every 26h.\n`,
    });
    expect((await run('expect', 'set', 'Ops', 'backup', '26 hours')).stdout).toBe(
      `Group ${group} expects a post with the key backup every 26h already.\n`,
    );
    await postJson(webhook, { text: 'done', key: 'certificates', expect: '90d' });
    const table =
      /EXPECTED EVERY +LAST POST +DUE +KEY\n26h +never +20\S+Z +backup\n90d +20\S+Z +20\S+Z +certificates\n$/;
    expect((await run('expect', 'list', 'Ops')).stdout).toMatch(table);
    const { stdout } = await run('info', 'Ops');
    expect(stdout).toMatch(table);
    await database.query((sql) => sql`update expectation set state = 'overdue' where key = 'backup'`);
    expect((await run('expect', 'list', 'Ops')).stdout).toMatch(/^26h +never +overdue +backup$/m);
    expect(await run('expect', 'remove', 'Ops', 'backup')).toMatchObject({
      code: 0,
      stdout: `Group ${group} expects no post with the key backup any longer.\n`,
    });
    const again = await run('expect', 'remove', 'Ops', 'backup');
    expect(again.code).not.toBe(0);
    expect(again.stderr).toContain(`Group ${group} expects no post with this key: look at the list of what it expects`);
  });

  test('says what a duration is', async () => {
    const { code, stderr } = await run('expect', 'set', 'Ops', 'backup', '26');
    expect(code).not.toBe(0);
    expect(stderr).toContain('must be a duration from 1m to 366d, such as 26h');
  });
});
