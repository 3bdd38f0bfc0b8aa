import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Connection } from '../../../src/storage/db/connection.ts';
import { findClusters, type LocalCluster } from '../../../src/storage/provision/clusters.ts';
import { provisionDatabase } from '../../../src/storage/provision/provision.ts';
import { matchesStoredPassword, scramVerifier } from '../../../src/storage/provision/scram.ts';

let folder: string;
const servers: Server[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'klatch-clusters-'));
  await mkdir(join(folder, 'run'));
});

afterEach(async () => {
  for (const server of servers.splice(0)) server.close();
  await rm(folder, { recursive: true, force: true });
});

const find = (): LocalCluster[] => findClusters({ socketDir: join(folder, 'run'), clustersDir: join(folder, 'etc') });

async function configure(name: string, lines: readonly string[]): Promise<void> {
  await mkdir(join(folder, 'etc', name), { recursive: true });
  await writeFile(join(folder, 'etc', name, 'postgresql.conf'), `${lines.join('\n')}\n`);
}

/** Starts a listener that answers every message with `answer`. */
async function listen(port: number, answer: Buffer = Buffer.alloc(0)): Promise<void> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(answer));
  });
  servers.push(server);
  server.listen(join(folder, 'run', `.s.PGSQL.${port}`));
  await once(server, 'listening');
}

/** The bytes of PostgreSQL's message for an error that ends a session. */
function fatal(sqlState: string, text: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${sqlState}\0M${text}\0\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

describe('the PostgreSQL servers of a machine', () => {
  test("are Debian's, running or not, and those that have a socket", async () => {
    const run = join(folder, 'run');
    await configure('15/main', [
      '#port = 1 # a remark',
      'port = 5433\t\t\t# (change requires restart)',
      `unix_socket_directories = '${run}, /tmp' # comma-separated`,
      "hba_file = '/etc/elsewhere/pg_hba.conf'",
    ]);
    await configure('9.3/old one', ['port=5434', `unix_socket_directories '${run}'`]);
    await mkdir(join(folder, 'etc/14/removed'), { recursive: true });
    await listen(5433);
    await listen(6000);
    await writeFile(join(run, '.s.PGSQL.6001'), 'no socket');
    await writeFile(join(run, '.s.PGSQL.5433.lock'), '');
    const uid = process.geteuid?.();
    expect(find()).toEqual([
      { name: '15/main', socketDir: run, port: 5433, socketOwnerUid: uid, hbaFile: '/etc/elsewhere/pg_hba.conf' },
      {
        name: '9.3/old one',
        socketDir: run,
        port: 5434,
        socketOwnerUid: null,
        hbaFile: join(folder, 'etc/9.3/old one/pg_hba.conf'),
      },
      { name: null, socketDir: run, port: 6000, socketOwnerUid: uid, hbaFile: null },
    ]);
  });

  test('are none where there is no PostgreSQL', async () => {
    await rm(join(folder, 'run'), { recursive: true });
    expect(find()).toEqual([]);
  });

  test('that are too old are refused with the package that brings one that is not', async () => {
    // PostgreSQL 9.3 answers this to a setting that exists since 9.6, before it authenticates the client.
    const unknown = 'unrecognized configuration parameter "idle_in_transaction_session_timeout"';
    await configure('9.3/main', ['port = 5432', `unix_socket_directories = '${join(folder, 'run')}'`]);
    await listen(5432, fatal('42704', unknown));
    const wanted = { database: 'd', user: 'u', password: null, secret: null, serverUid: null, host: null };
    await expect(provisionDatabase(find()[0]!, wanted)).rejects.toThrow(
      /^PostgreSQL 9\.3 \(9\.3\/main on port 5432\) is too old.*apt-get install klatch-postgresql.*klatch setup --embedded/,
    );
    // Here the caller names the server itself, by the folder of its socket.
    const place = { host: join(folder, 'run'), port: 5432, database: 'd', user: 'u', password: '' };
    const connection = new Connection({ ...place, connectTimeoutMs: 2_000, lockTimeoutMs: 1_000 }, 'test');
    const work = connection.run((sql) => sql`select 1`, 5_000);
    await expect(work).rejects.toThrow('this PostgreSQL is too old: Klatch needs 11 or newer');
  });

  test('that answer nonsense, or refuse their own administrator, are told as such', async () => {
    const wanted = { database: 'd', user: 'u', password: null, secret: null, serverUid: null, host: null };
    await configure('15/main', ['port = 5432', `unix_socket_directories = '${join(folder, 'run')}'`]);
    await listen(5432, fatal('28000', 'Peer authentication failed for user "postgres"'));
    await expect(provisionDatabase(find()[0]!, wanted)).rejects.toThrow(
      /put the line "local all .* peer" first into .*15\/main\/pg_hba\.conf/,
    );
    await listen(5440);
    const silent = find().find(({ port }) => port === 5440)!;
    await expect(provisionDatabase(silent, wanted)).rejects.toThrow('PostgreSQL port 5440 cannot be used');
  });
});

describe('a SCRAM verifier', () => {
  test('fits its own password and no other', () => {
    const verifier = scramVerifier('pencil');
    expect(verifier).toMatch(/^SCRAM-SHA-256\$4096:[\w+/=]{24}\$[\w+/=]{44}:[\w+/=]{44}$/);
    expect(matchesStoredPassword(verifier, 'user', 'pencil')).toBe(true);
    expect(matchesStoredPassword(verifier, 'user', 'Pencil')).toBe(false);
    expect(matchesStoredPassword(null, 'user', '')).toBe(false);
    expect(matchesStoredPassword('something else', 'user', 'pencil')).toBe(false);
  });

  test('that asks for hours of work is not recomputed', () => {
    const costly = scramVerifier('pencil').replace('$4096:', '$9999999:');
    expect(matchesStoredPassword(costly, 'user', 'pencil')).toBe(false);
  });
});
