import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { DatabaseTlsConfig } from '../../../src/config/services.ts';
import { Connection, type ConnectionTarget, type Sql } from '../../../src/storage/db/connection.ts';
import { CommitUnknownError, DatabaseUnavailableError } from '../../../src/storage/db/database-error.ts';
import { CertificateAuthority } from '../../support/certificate-authority.ts';
import { serverOwner } from '../../support/local-postgres.ts';
import { PostgresCluster } from '../../support/postgres-cluster.ts';

const VERIFY_FULL: DatabaseTlsConfig = { mode: 'verify-full', databaseCaFile: null, certificate: null, key: null };

const opened: Connection[] = [];
let authority: CertificateAuthority;
let cluster: PostgresCluster;
let target: ConnectionTarget;

beforeAll(async () => {
  authority = new CertificateAuthority();
  const { certificate, key } = authority.issue('db', 'DNS:localhost', serverOwner().uid);
  const settings = { ssl: 'on', ssl_cert_file: certificate, ssl_key_file: key, ssl_ca_file: authority.caFile };
  cluster = await PostgresCluster.start({ servers: 1, settings });
  await cluster.nodes[0]!.setRules(['hostssl all all all trust']);
  target = { ...cluster.target(), host: 'localhost', connectTimeoutMs: 20_000 };
});
afterAll(async () => {
  await cluster.stop();
  authority.stop();
});
afterEach(() => {
  for (const connection of opened.splice(0)) connection.close();
});

function open(tls: DatabaseTlsConfig | null, changes: Partial<ConnectionTarget> = {}): Connection {
  const connection = new Connection({ ...target, ...changes, tls }, 'tested');
  opened.push(connection);
  return connection;
}

const isEncrypted = async (sql: Sql): Promise<boolean> => {
  const [row] = await sql<{ ssl: boolean }[]>`select ssl from pg_stat_ssl where pid = pg_backend_pid()`;
  return row!.ssl;
};

async function rejectionOf(connection: Connection): Promise<string> {
  const error: unknown = await connection.run(isEncrypted, 20_000).catch((refused: unknown) => refused);
  expect(error).toBeInstanceOf(DatabaseUnavailableError);
  return (error as Error).message;
}

describe('a server that takes connections with TLS only', () => {
  test('refuses those without, and takes those with', async () => {
    expect(await rejectionOf(open(null))).toMatch(/no pg_hba\.conf entry .* no encryption/);
    expect(await open({ ...VERIFY_FULL, mode: 'require' }).run(isEncrypted, 20_000)).toBe(true);
    expect(await open({ ...VERIFY_FULL, databaseCaFile: authority.caFile }).run(isEncrypted, 20_000)).toBe(true);
  });

  test('is refused where nobody that we know has signed its certificate', async () => {
    expect(await rejectionOf(open(VERIFY_FULL))).toMatch(/^cannot connect to the database: .*certificate/);
    const other = new CertificateAuthority();
    expect(await rejectionOf(open({ ...VERIFY_FULL, databaseCaFile: other.caFile }))).toMatch(/certificate/);
    other.stop();
  });

  test('is refused where its certificate is for another name, unless nobody asks', async () => {
    const other = { host: '127.0.0.1' };
    expect(await rejectionOf(open({ ...VERIFY_FULL, databaseCaFile: authority.caFile }, other))).toMatch(/altnames/);
    expect(await open({ ...VERIFY_FULL, mode: 'require' }, other).run(isEncrypted, 20_000)).toBe(true);
  });

  test('gets our certificate where it asks for one', async () => {
    await cluster.nodes[0]!.setRules(['hostssl all all all cert']);
    const tls = { ...VERIFY_FULL, databaseCaFile: authority.caFile };
    expect(await rejectionOf(open(tls))).toMatch(/requires a valid client certificate/);
    const { certificate, key } = authority.issue(target.user, null);
    expect(await open({ ...tls, certificate, key }).run(isEncrypted, 20_000)).toBe(true);
    const stranger = authority.issue('stranger', null);
    expect(await rejectionOf(open({ ...tls, ...stranger }))).toMatch(/certificate authentication failed/);
    await cluster.nodes[0]!.setRules(['hostssl all all all trust']);
  });

  test('is not spoken to when a file cannot be read, and is when the file is back', async () => {
    const caFile = join(authority.folder, 'late.pem');
    const connection = open({ ...VERIFY_FULL, databaseCaFile: caFile });
    expect(await rejectionOf(connection)).toBe(`cannot connect to the database: ${caFile} cannot be read (ENOENT)`);
    copyFileSync(authority.caFile, caFile);
    expect(await connection.run(isEncrypted, 20_000)).toBe(true);
  });
});

describe('a session with TLS', () => {
  test('ends at a deadline, at a kill and at close() as one without', async () => {
    const connection = open({ ...VERIFY_FULL, databaseCaFile: authority.caFile });
    const pid = async (sql: Sql): Promise<number> =>
      (await sql<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]!.pid;
    const first = await connection.run(pid, 20_000);
    await expect(connection.run((sql) => sql`select pg_sleep(30)`, 200)).rejects.toThrow(CommitUnknownError);
    const second = await connection.run(pid, 20_000);
    expect(second).not.toBe(first);
    const killed = connection.run((sql) => sql`select pg_terminate_backend(pg_backend_pid())`, 20_000);
    await expect(killed).rejects.toThrow(CommitUnknownError);
    expect(await connection.run(pid, 20_000)).not.toBe(second);
    const closed = connection.run((sql) => sql`select pg_sleep(30)`, 20_000);
    connection.close();
    await expect(closed).rejects.toThrow(CommitUnknownError);
  });
});

describe('what answers when it is asked for TLS', () => {
  test.each([
    ['N', 'it does not offer TLS, which services.postgresql.tls demands'],
    ['E', 'it does not answer as PostgreSQL does when asked for TLS'],
    // A man in the middle could append plain bytes after the S, which would look like an answer of the server under
    // TLS.
    ['SR\u0000\u0000\u0000\u0008', 'it does not answer as PostgreSQL does when asked for TLS'],
  ])('%j is refused', async (answer, sentence) => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.write(answer));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const connection = open({ ...VERIFY_FULL, mode: 'require' }, { port });
    expect(await rejectionOf(connection)).toBe(`cannot connect to the database: ${sentence}`);
    server.close();
  });
});
