import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { CertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { serverOwner } from '../support/local-postgres.ts';
import { PostgresCluster } from '../support/postgres-cluster.ts';
import { Receiver } from '../support/receiver.ts';
import { postJson } from '../support/server.ts';
import { Workspace } from './program.ts';

let authority: CertificateAuthority;
let cluster: PostgresCluster;
let workspace: Workspace;

beforeAll(async () => {
  authority = new CertificateAuthority();
  const { certificate, key } = authority.issue('db', 'DNS:localhost', serverOwner().uid);
  // The databases run with fsync, since `klatch doctor` warns without it.
  const settings = {
    fsync: 'on',
    ssl: 'on',
    ssl_cert_file: certificate,
    ssl_key_file: key,
    ssl_ca_file: authority.caFile,
  };
  cluster = await PostgresCluster.start({ servers: 1, settings });
});
afterAll(async () => {
  await cluster.stop();
  authority.stop();
});
beforeEach(async () => {
  workspace = await Workspace.create();
});
afterEach(() => workspace.remove());

/**
 * Configures a server on the database with these lines about TLS. All servers on one database need the same store of
 * files.
 */
function configure(tls: readonly string[], of = workspace): Promise<void> {
  const location = `services.file-storage.location = ${JSON.stringify(join(cluster.folder, 'files'))}`;
  return of.configure({ ...cluster.target(), host: 'localhost' }, [location, ...tls]);
}

const verifyFull = (caFile = authority.caFile): string[] => [
  'services.postgresql.tls = verify-full',
  `services.postgresql.ca-file = ${JSON.stringify(caFile)}`,
];

/**
 * The sessions of Klatch in the database, with their TLS state. The sessions of the test are those of the superuser.
 */
async function sessions(): Promise<{ ssl: boolean; client: string | null }[]> {
  return cluster.nodes[0]!.query(
    (sql) => sql<{ ssl: boolean; client: string | null }[]>`
      select s.ssl, s.client_dn as client from pg_stat_activity a join pg_stat_ssl s on s.pid = a.pid
      where a.usename = ${cluster.target().user}`,
  );
}

/**
 * Checks that the server starts, and that it accepts and forwards a post over sessions that all use TLS. Also checks
 * that `klatch doctor` connects.
 */
async function expectToWork(client: string | null): Promise<void> {
  const { url } = await workspace.serve();
  const receiver = await Receiver.start();
  try {
    const { stdout } = await workspace.run(['group', 'create', 'Lobby', '--json']);
    const webhook = url + new URL((JSON.parse(stdout) as { webhook: string }).webhook).pathname;
    expect((await postJson(`${webhook}/reverse`, { url: receiver.url() })).status).toBe(201);
    expect((await postJson(webhook, { text: 'x' })).status).toBe(200);
    await receiver.received(1);
    const open = await eventually(sessions, (found) => found.length >= 5);
    expect(new Set(open.map(({ ssl }) => ssl))).toEqual(new Set([true]));
    expect(new Set(open.map((each) => each.client))).toEqual(new Set([client]));
    expect((await workspace.run(['doctor'])).stdout).toMatch(/^ok +database +PostgreSQL \S+ answers, schema \d+/m);
  } finally {
    await receiver.stop();
  }
}

test('with hostssl alone, a server without TLS is refused in a sentence that says what to set', async () => {
  await cluster.nodes[0]!.setRules(['hostssl all all all trust']);
  await configure([]);
  const sentence = /no pg_hba\.conf entry .* no encryption .*hostssl.*set services\.postgresql\.tls = verify-full/;
  expect(await workspace.run(['serve'])).toMatchObject({ code: 69, stderr: expect.stringMatching(sentence) });
  expect((await workspace.run(['doctor'])).stdout).toMatch(sentence);
});

test('with hostssl alone, a server works that verifies the certificate, and one with another authority is refused', async () => {
  await cluster.nodes[0]!.setRules(['hostssl all all all trust']);
  await configure(verifyFull());
  await expectToWork(null);
  const other = new CertificateAuthority();
  const stranger = await Workspace.create();
  try {
    await configure(verifyFull(other.caFile), stranger);
    const refused = { code: 69, stderr: expect.stringMatching(/cannot connect to the database: .*certificate/) };
    expect(await stranger.run(['serve'])).toMatchObject(refused);
  } finally {
    await stranger.remove();
    other.stop();
  }
});

test('with client certificates, a server works that has one, and one without is refused', async () => {
  await cluster.nodes[0]!.setRules(['hostssl all all all cert']);
  await configure(verifyFull());
  const refused = { code: 69, stderr: expect.stringContaining('requires a valid client certificate') };
  expect(await workspace.run(['serve'])).toMatchObject(refused);
  const { certificate, key } = authority.issue(cluster.target().user, null);
  await configure([
    ...verifyFull(),
    `services.postgresql.certificate = ${JSON.stringify(certificate)}`,
    `services.postgresql.key = ${JSON.stringify(key)}`,
  ]);
  await expectToWork('/CN=klatch');
});
