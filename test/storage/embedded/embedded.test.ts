import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync } from 'node:fs';
import {
  chmod,
  chown,
  cp,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import postgres from 'postgres';
import {
  EmbeddedError,
  startEmbedded,
  type EmbeddedOptions,
  type EmbeddedServer,
} from '../../../src/storage/embedded/embedded.ts';
import { findPrograms } from '../../../src/storage/embedded/programs.ts';

const FAST = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' };
const DEBIAN_15 = '/usr/lib/postgresql/15/bin';
const ENVIRONMENT = { ...process.env };
const asRoot = process.geteuid?.() === 0 ? test : test.skip;

let root: string;
let servers: EmbeddedServer[] = [];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'klatch-embedded-'));
  await chmod(root, 0o711);
});

afterEach(async () => {
  for (const name of ['PATH', 'XDG_RUNTIME_DIR']) {
    if (ENVIRONMENT[name] === undefined) delete process.env[name];
    else process.env[name] = ENVIRONMENT[name];
  }
  await Promise.all(servers.map((server) => server.stop()));
  servers = [];
  await rm(root, { recursive: true, force: true });
});

async function start(dataDir: string, options: Partial<EmbeddedOptions> = {}): Promise<EmbeddedServer> {
  const server = await startEmbedded({ dataDir, binDir: null, log: () => {}, serverSettings: FAST, ...options });
  servers.push(server);
  return server;
}

async function refusal(dataDir: string, options: Partial<EmbeddedOptions> = {}): Promise<EmbeddedError> {
  const error = await start(dataDir, options).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(EmbeddedError);
  return error as EmbeddedError;
}

async function query<T>(server: EmbeddedServer, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const { socketDir: host, port, user, database } = server;
  const sql = postgres({ host, port, user, database, max: 1, onnotice: () => {} });
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}

async function answer(server: EmbeddedServer): Promise<unknown> {
  return query(server, async (sql) => (await sql`select 1 as one`)[0]?.['one']);
}

const versions = [
  { name: 'the newest installed', binDir: null },
  { name: "Debian's 15", binDir: DEBIAN_15 },
].filter(({ binDir }) => binDir === null || existsSync(join(binDir, 'initdb')));

describe.each(versions)('a private server of $name', ({ binDir }) => {
  test('is created at the first start and answers as an ordinary user that owns its database', async () => {
    const server = await start(join(root, 'data'), { binDir });
    expect(server.wasAlreadyRunning).toBe(false);
    const [row] = await query(
      server,
      (sql) => sql`
        select current_user as who, current_database() as db, rolsuper as super, current_setting('timezone') as zone,
               current_setting('server_version') as version, current_setting('data_checksums') as checksums,
               current_setting('listen_addresses') as tcp, pg_get_userbyid(datdba) as owner,
               pg_encoding_to_char(encoding) as encoding
          from pg_roles, pg_database where rolname = current_user and datname = current_database()`,
    );
    expect(row).toMatchObject({ who: 'klatch', db: 'klatch', super: false, owner: 'klatch', encoding: 'UTF8' });
    expect(row).toMatchObject({ zone: 'UTC', checksums: 'on', tcp: '' });
    expect(String(row?.['version']).split(' ')[0]).toBe(server.postgresqlVersion);
    if (binDir === DEBIAN_15) expect(server.postgresqlVersion).toMatch(/^15\./);
  });

  test('lowers letters of every alphabet and orders by code point', async () => {
    const server = await start(join(root, 'data'), { binDir });
    const [row] = await query(
      server,
      (sql) => sql`
        select lower('ПРИВЕТ') as lower, to_tsvector('simple', 'ПРИВЕТ')::text as words,
               (select string_agg(x, ' ' order by x) from unnest(array['б', 'a', 'А', 'B', 'é', '_']) x) as ordered`,
    );
    expect(row).toEqual({ lower: 'привет', words: "'привет':1", ordered: 'B _ a é А б' });
  });

  test('keeps its data over a stop and a start', async () => {
    const first = await start(join(root, 'data'), { binDir });
    await query(first, (sql) => sql`create table kept as select 42 as value`);
    await Promise.all([first.stop(), first.stop()]);
    await expect(answer(first)).rejects.toThrow();
    const second = await start(join(root, 'data'), { binDir });
    expect(second.wasAlreadyRunning).toBe(false);
    expect(await query(second, (sql) => sql`select value from kept`)).toEqual([{ value: 42 }]);
  });
});

describe('what a private server leaves behind', () => {
  test('its folders are closed to others, and everything is inside the data directory', async () => {
    const server = await start(join(root, 'data'));
    expect((await readdir(join(root, 'data'))).sort()).toEqual(['postgresql', 'postgresql.log', 'postgresql.run']);
    expect(server.socketDir).toBe(join(root, 'data', 'postgresql.run'));
    for (const folder of ['postgresql', 'postgresql.run']) {
      expect((await lstat(join(root, 'data', folder))).mode & 0o777).toBe(0o700);
    }
    expect((await lstat(join(root, 'data', 'postgresql.log'))).mode & 0o777).toBe(0o600);
  });

  test('what users wrote does not get into its log', async () => {
    const server = await start(join(root, 'data'));
    await query(server, async (sql) => {
      await sql`create table secret (word text primary key)`;
      await sql`insert into secret values (${'xyzzy'})`;
      await expect(sql`insert into secret values (${'xyzzy'})`).rejects.toThrow('duplicate key');
      await expect(sql`select ${'xyzzy'}::text::int`).rejects.toThrow('xyzzy');
      await expect(sql.unsafe('select xyzzy from nowhere')).rejects.toThrow('nowhere');
    });
    await server.stop();
    const log = await readFile(join(root, 'data', 'postgresql.log'), 'utf8');
    expect(log).toContain('ready to accept connections');
    expect(log).not.toMatch(/xyzzy|nowhere|insert into/);
  });

  test('a log that has grown large is set aside at the next start', async () => {
    await mkdir(join(root, 'data'));
    await writeFile(join(root, 'data', 'postgresql.log'), 'x'.repeat(9 * 1024 * 1024));
    await start(join(root, 'data'));
    expect((await lstat(join(root, 'data', 'postgresql.log'))).size).toBeLessThan(10_000);
    expect((await lstat(join(root, 'data', 'postgresql.log.1'))).size).toBe(9 * 1024 * 1024);
  });
});

describe('a data directory whose path is too long for a socket', () => {
  test('has its socket in a folder of its own in $XDG_RUNTIME_DIR, removed at the stop', async () => {
    process.env['XDG_RUNTIME_DIR'] = root;
    const server = await start(join(root, 'd'.repeat(120)));
    expect(dirname(server.socketDir)).toBe(root);
    expect((await lstat(server.socketDir)).mode & 0o777).toBe(0o700);
    expect(await answer(server)).toBe(1);
    await server.stop();
    expect(existsSync(server.socketDir)).toBe(false);
    // The next start creates the same folder for the socket again.
    expect(await answer(await start(join(root, 'd'.repeat(120))))).toBe(1);
  });

  test('does not use a folder that someone could have prepared', async () => {
    process.env['XDG_RUNTIME_DIR'] = root;
    const dataDir = join(root, 'd'.repeat(120));
    const first = await start(dataDir);
    await first.stop();
    await mkdir(first.socketDir, { mode: 0o755 });
    const second = await start(dataDir);
    expect(dirname(second.socketDir)).not.toBe(root);
    expect(await answer(second)).toBe(1);
  });
});

/** Copies the whole installation of PostgreSQL: programs find their libraries and data files beside them. */
async function copyPrograms(folder: string): Promise<string> {
  const { binDir } = await findPrograms({ binDir: null, clusterMajor: null, clusterDir: '' });
  await cp(dirname(binDir), folder, { recursive: true, verbatimSymlinks: true });
  return join(folder, 'bin');
}

describe('as root', () => {
  asRoot('files and server belong to another user, where that user can reach them', async () => {
    // PostgreSQL runs as another user, who may not be able to open the folder of the checkout's own programs.
    const server = await start(join(root, 'data'), { binDir: await copyPrograms(join(root, 'native')) });
    expect((await lstat(join(root, 'data', 'postgresql'))).uid).not.toBe(0);
    expect(await answer(server)).toBe(1);
  });

  asRoot('the log belongs to whom the data directory belongs, who has to open it at the next start', async () => {
    await mkdir(join(root, 'data'));
    await chown(join(root, 'data'), 65_534, 65_534);
    await start(join(root, 'data'), { binDir: await copyPrograms(join(root, 'native')) });
    expect(await lstat(join(root, 'data', 'postgresql.log'))).toMatchObject({ uid: 65_534, gid: 65_534 });
  });

  asRoot('a data directory inside a closed folder works: the files stay root’s', async () => {
    await chmod(root, 0o700);
    const first = await start(join(root, 'data'));
    expect((await lstat(join(root, 'data', 'postgresql'))).uid).toBe(0);
    expect(await answer(first)).toBe(1);
    await first.stop();
    // The files still belong to root when the server starts again in an open folder.
    await chmod(root, 0o711);
    expect(await answer(await start(join(root, 'data')))).toBe(1);
  });

  asRoot('programs inside a closed folder work', async () => {
    await mkdir(join(root, 'closed'), { mode: 0o700 });
    const server = await start(join(root, 'data'), { binDir: await copyPrograms(join(root, 'closed/native')) });
    expect(await answer(server)).toBe(1);
    expect((await lstat(join(root, 'data', 'postgresql'))).uid).toBe(0);
  });

  asRoot('a closed folder is named with its key where user namespaces are refused', async () => {
    await mkdir(join(root, 'closed'), { mode: 0o700 });
    await mkdir(join(root, 'path'));
    await writeFile(join(root, 'path/unshare'), '#!/bin/sh\necho "unshare failed: Not permitted" >&2; exit 1\n', {
      mode: 0o755,
    });
    process.env['PATH'] = join(root, 'path');
    const error = await refusal(join(root, 'closed/data'));
    expect(error.code).toBe('folder-closed');
    expect(error.message).toContain(`The folder ${join(root, 'closed')} is closed`);
    expect(error.message).toContain('Not permitted');
    expect(error.message).toContain('data-dir');
  });

  asRoot('a folder that was closed over another user’s files is named', async () => {
    const binDir = await copyPrograms(join(root, 'native'));
    const first = await start(join(root, 'data'), { binDir });
    await first.stop();
    await chmod(root, 0o700);
    const error = await refusal(join(root, 'data'), { binDir });
    expect(error.code).toBe('folder-closed');
    expect(error.message).toContain(`to whom ${root} is closed`);
    expect(error.message).toContain('data-dir');
  });
});

describe('what is refused, in a sentence', () => {
  test('a bin-dir without the programs', async () => {
    const error = await refusal(join(root, 'data'), { binDir: root });
    expect(error.code).toBe('bin-dir-invalid');
    expect(error.message).toContain(`services.postgresql.bin-dir is ${root}, but there is no program initdb in it`);
    expect(existsSync(join(root, 'data', 'postgresql'))).toBe(false);
  });

  test.each([
    { name: 'found by search', binDir: null },
    { name: 'named by bin-dir', binDir: 'found' },
  ])('database files of another major version than the programs $name', async ({ binDir }) => {
    const found = await findPrograms({ binDir: null, clusterMajor: null, clusterDir: '' });
    await mkdir(join(root, 'data/postgresql'), { recursive: true, mode: 0o700 });
    await writeFile(join(root, 'data/postgresql/PG_VERSION'), '9\n');
    const error = await refusal(join(root, 'data'), { binDir: binDir === null ? null : found.binDir });
    expect(error.code).toBe('version-mismatch');
    expect(error.message).toContain(`${join(root, 'data/postgresql')} were made by PostgreSQL 9`);
    expect(error.message).toContain('klatch db upgrade');
    expect(error.message).toContain(found.postgresqlVersion);
  });

  test('a database folder with something else in it, which is left alone', async () => {
    await mkdir(join(root, 'data/postgresql'), { recursive: true });
    await writeFile(join(root, 'data/postgresql/letter.txt'), 'dear');
    const error = await refusal(join(root, 'data'));
    expect(error.code).toBe('cluster-invalid');
    expect(await readFile(join(root, 'data/postgresql/letter.txt'), 'utf8')).toBe('dear');
  });

  test('a database folder that is a link', async () => {
    const server = await start(join(root, 'data'));
    await server.stop();
    await rename(join(root, 'data/postgresql'), join(root, 'elsewhere'));
    await symlink(join(root, 'elsewhere'), join(root, 'data/postgresql'));
    const error = await refusal(join(root, 'data'));
    expect(error.code).toBe('cluster-linked');
    expect(error.message).toContain(`${join(root, 'data/postgresql')} is a link`);
  });

  test('a server that ends while it is being started: the last lines of its log say why', async () => {
    const error = await refusal(join(root, 'data'), { serverSettings: { ...FAST, shared_buffers: 'plenty' } });
    expect(error.code).toBe('start-failed');
    expect(error.message).toContain('invalid value for parameter "shared_buffers"');
    expect(error.message).toContain(join(root, 'data', 'postgresql.log'));
  });

  test('a data directory that cannot be made', async () => {
    await writeFile(join(root, 'file'), '');
    const dataDir = join(root, 'file', 'data');
    await expect(start(dataDir)).rejects.toThrow(`The data directory ${dataDir} cannot be made or reached (ENOTDIR)`);
  });
});
