import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, chmod, chown, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { chooseCluster, examineClusters, type ExaminedCluster } from '../../../src/cli/setup/setup-local.ts';
import { CommandError } from '../../../src/cli/core/failure.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { eventually } from '../../support/eventually.ts';
import { LocalPostgres, localPrograms } from '../../support/local-postgres.ts';
import { MAIN } from '../../support/program-files.ts';
import { Program, Workspace } from '../program.ts';

const isRoot = process.geteuid?.() === 0;
const programs = await localPrograms();

(programs.length === 0 ? describe.skip : describe)('klatch setup on a local PostgreSQL', () => {
  let server: LocalPostgres;
  let workspace: Workspace;
  let names: readonly string[];
  let next = 0;

  beforeAll(async () => {
    server = await LocalPostgres.start(programs[0]!);
  });
  afterAll(async () => server.stop());
  beforeEach(async () => {
    workspace = await Workspace.create();
    next += 1;
    names = ['--db-name', `k${next}`, '--db-user', `k${next}`];
  });
  afterEach(async () => workspace.remove());

  const flags = (): string[] => {
    const { socketDir, port } = server.cluster;
    const place = ['--local-database', '--socket-dir', socketDir, '--db-port', String(port)];
    return ['setup', ...place, ...names, '--base-uri', 'https://one.example', '--data-dir', workspace.dataDir];
  };
  const written = async (): Promise<boolean> =>
    stat(workspace.file).then(
      () => true,
      () => false,
    );

  test('makes all that a server needs, shows no password, and the server starts', async () => {
    const { code, stdout, stderr } = await workspace.run([...flags(), '--port', '0', '--metrics-port', '0']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { postgresql } = loadConfig(workspace.file, { env: {} }).config;
    expect(postgresql).toMatchObject({ embedded: false, host: '127.0.0.1', port: server.cluster.port, db: names[1] });
    expect(stdout).toContain(`Made the role "${names[3]}" and made the database "${names[1]}" in PostgreSQL`);
    expect(stdout).not.toContain(postgresql.password);
    expect((await stat(workspace.file)).mode & 0o777).toBe(0o640);
    // Servers of other tests may use the default ports, which are fixed. The cluster of this test runs without fsync.
    await appendFile(workspace.file, '\nendpoints = []\nservices.postgresql.unsafe = true\n');
    await workspace.serve();
  });

  test('run again it repairs what is gone, with the password of the file', async () => {
    await workspace.run(flags());
    const before = await readFile(workspace.file, 'utf8');
    await server.administer(async (sql) => {
      await sql.unsafe(`drop database ${names[1]}`);
      await sql.unsafe(`drop role ${names[3]}`);
    });
    const { code, stdout } = await workspace.run(flags());
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^Made the role[^]*Nothing to write/) });
    expect(await readFile(workspace.file, 'utf8')).toBe(before);
    const json = await workspace.run([...flags(), '--json']);
    const { database, next } = JSON.parse(json.stdout) as { database: object; next: string };
    expect(database).toEqual({
      host: '127.0.0.1',
      port: server.cluster.port,
      version: expect.stringMatching(/^\d/),
      role: 'kept',
      database: 'kept',
      label: `port ${server.cluster.port}`,
      user: names[3],
      db: names[1],
    });
    expect(next).toContain('klatch serve --config');
  });

  test('killed at any moment, it is completed by the next run', async () => {
    const moments = [(sql: string) => sql.includes('role'), (sql: string) => sql.includes('database')];
    for (const reached of moments) {
      const running = workspace.start(flags());
      const made = async (): Promise<string> =>
        server.administer(async (sql) => {
          const [row] = await sql<{ made: string }[]>`
            select concat_ws(' ', (select 'role' from pg_roles where rolname = ${names[3]!}),
              (select 'database' from pg_database where datname = ${names[1]!})) as made`;
          return row!.made;
        });
      await eventually(made, reached);
      await running.stop();
    }
    expect(await workspace.run(flags())).toMatchObject({ code: 0 });
    expect(await workspace.run(flags())).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Kept the role/) });
  });

  test('writes nothing when the login is refused, and works once that is put right', async () => {
    const admin = 'local all all peer';
    await server.setRules([admin, 'host all all 127.0.0.1/32 reject']);
    const refused = await workspace.run(flags());
    expect(refused).toMatchObject({ code: 69, stdout: '' });
    expect(refused.stderr).toMatch(/does not let the role in[^]*pg_hba\.conf:\n {2}host [^]*was not written\.\n$/);
    expect(await written()).toBe(false);
    await server.setRules([
      /^ {2}(host .*)$/m.exec(refused.stderr)![1]!,
      admin,
      'host all all 127.0.0.1/32 scram-sha-256',
    ]);
    expect(await workspace.run(flags())).toMatchObject({ code: 0 });
  });

  test("refuses what is not Klatch's with 1, and keeps answers that stand in the file", async () => {
    await server.administer((sql) => sql.unsafe(`create database ${names[1]}`));
    const foreign = await workspace.run(flags());
    expect(foreign).toMatchObject({ code: 1, stderr: expect.stringContaining('belongs to the role') });
    expect(await written()).toBe(false);
    await server.administer((sql) => sql.unsafe(`drop database ${names[1]}`));
    await workspace.write(['services.postgresql { host = db.example }', 'http.base-uri = "https://one.example"']);
    const elsewhere = await workspace.run(flags());
    expect(elsewhere).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('names the database server db.example'),
    });
    await workspace.write(['services.postgresql { host = localhost, password = "of the file" }', `data-dir = "data"`]);
    expect(await workspace.run(flags())).toMatchObject({ code: 0 });
    expect(loadConfig(workspace.file, { env: {} }).config.postgresql).toMatchObject({
      host: 'localhost',
      port: server.cluster.port,
      password: 'of the file',
    });
    await workspace.write(['services.postgresql { embedded = false, password = "" }', 'data-dir = "data"']);
    const empty = await workspace.run(flags());
    expect(empty).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('has an empty services.postgresql.password'),
    });
  });

  test("knows Debian's servers by name, running or not", async () => {
    const { socketDir, port } = server.cluster;
    const clustersDir = join(workspace.folder, 'etc');
    const configured = { '15/main': port, '14/old': port + 1 };
    for (const [name, each] of Object.entries(configured)) {
      await mkdir(join(clustersDir, name), { recursive: true });
      const lines = [`port = ${each}`, `unix_socket_directories = '${socketDir}'`, ''];
      await writeFile(join(clustersDir, name, 'postgresql.conf'), lines.join('\n'));
    }
    const found = await examineClusters({ postgresqlClusterLocations: { socketDir, clustersDir } }, undefined);
    expect(found.map(({ cluster, problem }) => [cluster.name, problem])).toEqual([
      ['15/main', null],
      ['14/old', expect.stringContaining('sudo pg_ctlcluster 14 old start')],
    ]);
    expect(chooseCluster(found, { cluster: undefined, port: undefined }).name).toBe('15/main');
  });

  (isRoot ? test : test.skip)('gives the files to whoever has the data directory, or is to make it', async () => {
    const [uid, gid] = [4711, 4712];
    const owners = async (): Promise<unknown[]> =>
      Promise.all(
        ['server.conf', 'server-key.private.pem'].map(async (name) => {
          const found = await stat(join(workspace.folder, name));
          return [found.uid, found.gid, (found.mode & 0o777).toString(8)];
        }),
      );
    const parent = join(workspace.folder, 'state');
    await mkdir(parent);
    await chown(parent, uid, gid);
    const set = ['setup', '--embedded', '--base-uri', 'https://one.example', '--data-dir', join(parent, 'data')];
    expect(await workspace.run(set)).toMatchObject({ code: 0 });
    expect(await owners()).toEqual([
      [0, gid, '640'],
      [uid, gid, '600'],
    ]);
    for (const name of ['server.conf', 'server-key.private.pem', 'server-key.public.pem']) {
      await rm(join(workspace.folder, name));
    }
    // The folder now belongs to the user, as an unpacked archive does.
    await chown(workspace.folder, uid, gid);
    expect(await workspace.run(set)).toMatchObject({ code: 0 });
    expect(await owners()).toEqual([
      [uid, gid, '640'],
      [uid, gid, '600'],
    ]);
  });

  (isRoot ? test : test.skip)('needs root, and says so', async () => {
    await chmod(workspace.folder, 0o777);
    // These capabilities let the user "nobody" read the sources in any folder: a checkout is often closed to other
    // users.
    const mayRead = ['--inh-caps=+dac_read_search', '--ambient-caps=+dac_read_search'];
    const user = ['--reuid=65534', '--regid=65534', '--clear-groups'];
    const command = ['setpriv', ...user, ...mayRead, process.execPath] as const;
    const nobody = new Program([...command, MAIN, ...flags(), '--config', workspace.file]);
    const { code, stderr } = await nobody.ended;
    expect({ code, stderr }).toEqual({
      code: 77,
      stderr: expect.stringMatching(/needs root: repeat this command with sudo/),
    });
    await chmod(workspace.folder, 0o755);
    const closed = new Program([...command, MAIN, 'setup', '--config', workspace.file]);
    expect(await closed.ended).toMatchObject({ code: 73, stderr: expect.stringContaining('can be written only by') });
  });

  describe('at a terminal', () => {
    /** Types each line at a pseudoterminal when the program asks for it. */
    async function converse(args: readonly string[], lines: readonly string[]) {
      const words = [process.execPath, MAIN, ...args, '--config', workspace.file];
      const command = words.map((word) => `'${word}'`).join(' ');
      const child = spawn('script', ['-qec', command, '/dev/null'], {
        env: { ...process.env, KLATCH_CONFIG: '', NODE_OPTIONS: '', TERM: 'dumb' },
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      let shown = '';
      const rest = [...lines];
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        shown += text;
        // After a question, readline writes the sequence that moves the cursor.
        // oxlint-disable-next-line no-control-regex
        if (/: (?:\u001b\[\d+G)?$/.test(shown) && rest.length > 0) child.stdin.write(rest.shift()!);
      });
      try {
        const [code] = (await once(child, 'close', { signal: AbortSignal.timeout(20_000) })) as [number];
        return { code, shown };
      } catch (error) {
        throw new Error(`does not end; it has shown:\n${shown}`, { cause: error });
      } finally {
        // The end of `script` also ends its terminal, and a program that still waits there.
        child.kill();
      }
    }

    test('offers the server that runs, and Enter takes it', async () => {
      const { code, shown } = await converse(
        ['setup', '--socket-dir', server.cluster.socketDir, ...names, '--data-dir', workspace.dataDir],
        ['\r', '\r'],
      );
      expect(shown).toMatch(/1 {2}PostgreSQL \d+\.\d+ on this machine \(port \d+\)[^]*2 {2}a private[^]*3 {2}another/);
      expect(shown).toMatch(/Made the role[^]*Wrote to/);
      expect(code).toBe(0);
    });

    test('Ctrl-C at a question leaves nothing behind, and the next run succeeds', async () => {
      const flagged = ['setup', '--socket-dir', server.cluster.socketDir, ...names, '--data-dir', workspace.dataDir];
      const left = await converse(flagged, ['\r', '\u0003']);
      expect(left.shown).toContain('left without an answer; nothing was written: repeat the command');
      expect(left.code).toBe(64);
      expect(await written()).toBe(false);
      const [row] = await server.administer((sql) => sql`select from pg_roles where rolname = ${names[3]!}`);
      expect(row).toBeUndefined();
      expect((await converse(flagged, ['\r', '\r'])).code).toBe(0);
    });
  });
});

describe('the choice among several servers', () => {
  const examined = (name: string, port: number, problem: string | null = null): ExaminedCluster => ({
    cluster: { name, port, socketDir: '/run', socketOwnerUid: process.geteuid?.() ?? 0, hbaFile: null },
    server: problem === null ? { version: name.split('/')[0]!, number: 150_000 } : null,
    problem,
  });
  const old = examined('9.3/main', 5432, 'too old');
  const [one, two] = [examined('15/main', 5433), examined('16/main', 5434)];
  const choose = (all: readonly ExaminedCluster[], wanted: { cluster?: string; port?: number } = {}) =>
    chooseCluster(all, { cluster: wanted.cluster, port: wanted.port }).name;
  const refusal = (all: readonly ExaminedCluster[], wanted: { cluster?: string; port?: number } = {}): CommandError => {
    try {
      choose(all, wanted);
    } catch (error) {
      return error as CommandError;
    }
    throw new Error('was not refused');
  };

  test('takes the only one that can be used', () => {
    expect(choose([old, one])).toBe('15/main');
  });

  test('is made by name or port, and asked for where it is open', () => {
    expect(choose([one, two], { cluster: '16/main' })).toBe('16/main');
    expect(choose([one, two], { port: 5433 })).toBe('15/main');
    const open = refusal([one, two]);
    expect(open.exitCode).toBe(64);
    expect(open.message).toMatch(/--cluster 15\/main: [^]*--cluster 16\/main: /);
  });

  test('says what is wrong with the one that was meant, or that there is none', () => {
    expect(refusal([old, one], { cluster: '9.3/main' })).toMatchObject({ exitCode: 69, message: 'too old' });
    expect(refusal([one], { port: 6000 }).message).toContain('no PostgreSQL server on port 6000');
    const crossed = refusal([one, two], { cluster: '16/main', port: 5433 });
    expect(crossed.message).toMatch(/no PostgreSQL server 16\/main on port 5433 on this machine; there is 15\/main on/);
    expect(refusal([]).message).toMatch(/sudo apt-get install postgresql.*klatch setup --embedded/);
  });
});
