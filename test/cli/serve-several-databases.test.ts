import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { PostgresCluster, type PostgresNode } from '../support/postgres-cluster.ts';
import { postJson } from '../support/server.ts';
import { Workspace } from './program.ts';

const STANDBY = 'it is a standby, which takes no writes';

let cluster: PostgresCluster;
let primary: PostgresNode;
let standby: PostgresNode;
let workspace: Workspace;

beforeEach(async () => {
  // The databases run with fsync, since `klatch doctor` warns without it.
  cluster = await PostgresCluster.start({ settings: { fsync: 'on' } });
  [primary, standby] = cluster.nodes as [PostgresNode, PostgresNode];
  workspace = await Workspace.create();
});
afterEach(async () => {
  await workspace.remove();
  await cluster.stop();
});

const nameOf = ({ port }: PostgresNode): string => `127.0.0.1:${port}`;

interface Status {
  readonly database_servers: { server: string; used: boolean; rejection: string | null }[];
}

async function servers(): Promise<Status['database_servers']> {
  return (JSON.parse((await workspace.run(['status', '--json'])).stdout) as Status).database_servers;
}

test('a server works with the primary behind a standby, and status and doctor say so, also after a switchover', async () => {
  const hosts = JSON.stringify([standby, primary].map(nameOf));
  await workspace.configure(cluster.target(), [`services.postgresql.host = ${hosts}`]);
  const { url } = await workspace.serve();
  const { stdout } = await workspace.run(['group', 'create', 'Lobby', '--json']);
  const webhook = url + new URL((JSON.parse(stdout) as { webhook: string }).webhook).pathname;
  expect((await postJson(webhook, { text: 'x' })).status).toBe(200);

  expect(await servers()).toEqual([
    { server: nameOf(standby), used: false, rejection: STANDBY },
    { server: nameOf(primary), used: true, rejection: null },
  ]);
  const status = await workspace.run(['status']);
  expect(status.code).toBe(0);
  const line = `db servers: +${nameOf(standby)} is not used: ${STANDBY}; ${nameOf(primary)} is used`;
  expect(status.stdout).toMatch(new RegExp(`^${line}$`, 'm'));
  const doctor = await workspace.run(['doctor']);
  const answers = `PostgreSQL \\S+ answers at ${nameOf(primary)} \\(${nameOf(standby)}: ${STANDBY}\\), schema`;
  expect(doctor.stdout).toMatch(new RegExp(answers));

  await primary.stop();
  await standby.promote();
  const after = await eventually(servers, ([first]) => first!.used);
  expect(after[1]).toMatchObject({ server: nameOf(primary), used: false, rejection: expect.stringMatching(/\S/) });
});
