import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { BASE_URI, Conversation, post, SETUP } from './support/conversation.ts';
import { Host, suites } from './support/host.ts';
import { Repository } from './support/repository.ts';

/** Each test continues from the state that the previous one left. */
describe.each(suites('bookworm', 'bullseye', 'trixie'))('on the PostgreSQL of %s', (suite) => {
  let repository: Repository;
  let host: Host;
  let conversation: Conversation;

  beforeAll(async () => {
    repository = await Repository.start();
    host = await Host.start(suite);
  });

  afterAll(async () => {
    await conversation?.stop();
    await host?.stop();
    await repository?.stop();
  });

  const psql = (query: string): Promise<string> =>
    host.machine.must(`su postgres -s /bin/sh -c 'psql -AtX' <<'SQL'\n${query}\nSQL`);

  const isReady = async (): Promise<number> => (await fetch(`${BASE_URI}/v1/ready`)).status;

  test('install.sh takes it without being told to, since it is new enough', async () => {
    expect(await host.install(repository)).toMatchObject({ code: 0 });
    expect(Number(await psql('show server_version_num'))).toBeGreaterThanOrEqual(110_000);
    expect((await host.machine.sh('ls -d /usr/lib/klatch/postgresql')).code).not.toBe(0);
  });

  test('klatch setup makes a role and a database in it, and no superuser', async () => {
    expect(await host.act('klatch setup --local-database', `${SETUP} --local-database`)).toMatchObject({ code: 0 });
    const role = "select rolsuper, rolcreatedb, rolcreaterole from pg_roles where rolname = 'klatch'";
    expect(await psql(role)).toBe('f|f|f\n');
    expect(await psql("select pg_encoding_to_char(encoding) from pg_database where datname = 'klatch'")).toBe('UTF8\n');
    // Only the configuration has the password, and only root and the server can read it.
    const password = (
      await host.machine.must('sed -n "s/^ *password = \\"\\(.*\\)\\"/\\1/p" /etc/klatch/server.conf')
    ).trim();
    expect(password.length).toBeGreaterThan(15);
    expect((await host.machine.sh(`grep -rF '${password}' /var/log /var/lib/klatch`)).stdout).toBe('');
    const again = await host.act('klatch setup --local-database, again', `${SETUP} --local-database`);
    expect(again).toMatchObject({ code: 0 });
  });

  test('the server starts on it and forwards', async () => {
    expect(await host.service('start')).toMatchObject({ code: 0 });
    conversation = await Conversation.open(host);
    await conversation.say();
  });

  test('while it is away posts are refused, and when it is back all goes on', async () => {
    await host.machine.must('service postgresql stop');
    await eventually(isReady, (status) => status === 503);
    expect((await post(conversation.webhook, { text: 'nobody takes this' })).status).toBe(503);
    expect(await host.service('status', 'database away')).toMatchObject({ code: 0 });
    expect((await host.act('klatch ready, database away', 'klatch ready')).code).toBe(69);
    await host.machine.must('service postgresql start');
    await eventually(isReady, (status) => status === 200);
    await conversation.say();
  });

  test('a start without it fails, and says what to look at', async () => {
    await host.machine.must('service klatch stop; service postgresql stop');
    const ran = await host.service('start', 'database away');
    expect(ran).toMatchObject({ code: 1 });
    expect(ran.stdout + ran.stderr).toMatch(/PostgreSQL/);
    expect(ran.stdout + ran.stderr).toMatch(/127\.0\.0\.1:54\d\d|\/var\/run\/postgresql/);
    await host.machine.must('service postgresql start');
    expect(await host.service('start', 'database back')).toMatchObject({ code: 0 });
    await conversation.say();
  });

  test('a purge leaves the database in it alone', async () => {
    await host.act('apt-get purge klatch, database of the system', 'apt-get -y purge klatch');
    expect(await psql("select count(*) from pg_database where datname = 'klatch'")).toBe('1\n');
  });
});
