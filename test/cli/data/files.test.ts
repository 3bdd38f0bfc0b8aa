import { mkdir, readdir, rename, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { download, tokenOf, upload } from '../../files/over-http.ts';
import { newKey } from '../../files/store-fixture.ts';
import { askControl } from '../../support/control.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type Program, Workspace } from '../program.ts';

describe('klatch files check', () => {
  let database: TestDatabase;
  let workspace: Workspace;
  let server: { url: string; operate: <Result>(method: string, params?: unknown) => Promise<Result> };
  let running: Program;
  let token: string;
  let location: string;

  beforeAll(async () => {
    database = await createTestDatabase();
    workspace = await Workspace.create();
    await workspace.configure(database.target);
    const { server: program, url } = await workspace.serve();
    running = program;
    const operate = <Result>(method: string, params: unknown = {}): Promise<Result> =>
      askControl<Result>(join(workspace.dataDir, 'control.sock'), method, params);
    server = { url, operate };
    location = join(workspace.dataDir, 'files');
    token = await tokenOf(server, 'anna');
  });
  afterAll(async () => {
    await workspace.remove();
    await database.drop();
  });

  const pathOf = (id: string): string => join(location, id.slice(0, 2), id);
  const store = async (text: string): Promise<string> => {
    const { status, body } = await upload(server, { token, bytes: Buffer.from(text) });
    expect(status).toBe(201);
    return body.id as string;
  };

  test('says that everything fits, and ends with 0', async () => {
    await store('one');
    const { code, stdout } = await workspace.run(['files', 'check']);
    expect([code, stdout]).toEqual([
      0,
      `Looked at 1 file and 0 uploads in the folder ${location}.\nEverything fits.\n`,
    ]);
  });

  test('shows what does not, ends with 1, and with 0 once it is repaired', async () => {
    const lost = await store('lost');
    const stray = newKey();
    await unlink(pathOf(lost));
    await mkdir(join(location, stray.slice(0, 2)), { recursive: true });
    await writeFile(pathOf(stray), 'stray');
    const seen = await workspace.run(['files', 'check']);
    expect(seen.code).toBe(1);
    expect(seen.stdout).toMatch(new RegExp(`^file without a row +${stray} +5 +stays$`, 'm'));
    expect(seen.stdout).toMatch(new RegExp(`^row without its file +${lost} +- +stays$`, 'm'));
    expect(seen.stderr).toBe('klatch: 2 problems left: `klatch files check --repair` repairs them\n');
    expect(await readdir(join(location, stray.slice(0, 2)))).toContain(stray);

    const repaired = await workspace.run(['files', 'check', '--repair', '--json']);
    expect(repaired.code).toBe(0);
    expect(JSON.parse(repaired.stdout)).toMatchObject({ ok: true, files: 2, problems: 2, repaired: 2 });
    expect(await readdir(join(location, stray.slice(0, 2)))).not.toContain(stray);
    expect((await workspace.run(['files', 'check'])).code).toBe(0);
    // The row of a lost file stays, and a download reports that the file is missing.
    expect(await download(server, { token, id: lost })).toBe(404);
  });

  test('marks nothing in a store that has no file at all, and says so; nor in one that is away', async () => {
    const id = await store('kept');
    await rename(location, `${location}.away`);
    const away = await workspace.run(['files', 'check', '--repair']);
    expect([away.code, away.stdout]).toEqual([1, '']);
    expect(away.stderr).toMatch(/The store of files is away: the folder .*is its file system mounted\?/);
    await mkdir(location);
    await mkdir(join(location, 'uploads'));
    const empty = await workspace.run(['files', 'check', '--repair']);
    expect(empty.code).toBe(1);
    expect(empty.stderr).toMatch(/has no file at all, so that lost ones were not marked/);
    await rename(location, `${location}.empty`);
    await rename(`${location}.away`, location);
    expect(await download(server, { token, id })).toEqual(Buffer.from('kept'));
  });

  test('a second server with a folder of its own is refused and told what to name; the first one goes on', async () => {
    const id = await store('of the first');
    const second = await Workspace.create();
    try {
      await second.configure(database.target);
      const refused = await second.run(['serve']);
      expect(refused.code).toBe(73);
      expect(refused.stderr).toMatch(
        /is not the store of this database's files: its store-id is missing.* the same folder \(services\.file-storage\.location\)/,
      );
      const doctor = await second.run(['doctor']);
      expect(doctor.stdout).toMatch(/^ERROR +files +the folder .*its store-id is missing/m);
      await second.configure(database.target, [`services.file-storage.location = ${JSON.stringify(location)}`]);
      const { url } = await second.serve();
      expect(await download({ url }, { token, id })).toEqual(Buffer.from('of the first'));
    } finally {
      await second.remove();
    }
    expect(await download(server, { token, id })).toEqual(Buffer.from('of the first'));
  });

  test('`files adopt` makes a folder that was lost the store again; until then the server does not start', async () => {
    const id = await store('gone');
    expect((await workspace.run(['files', 'adopt'])).code).toBe(75);
    const { process } = running;
    process.kill('SIGTERM');
    await running.ended;
    await rename(location, `${location}.gone`);
    const refused = await workspace.run(['serve']);
    expect(refused.code).toBe(73);
    expect(refused.stderr).toContain(`the folder ${location} is not the store of this database's files`);
    expect(refused.stderr).toContain('"klatch files adopt"');
    const doctor = await workspace.run(['doctor']);
    expect(doctor.stdout).toMatch(/^ERROR +files +the folder .*its store-id is missing/m);
    const adopted = await workspace.run(['files', 'adopt', '--json']);
    expect(adopted.stderr).toBe('');
    expect(JSON.parse(adopted.stdout)).toMatchObject({ files: 0, lost: expect.any(Number), found: 0 });
    const { url } = await workspace.serve();
    expect(await download({ url }, { token, id })).toBe(404);
  });
});
