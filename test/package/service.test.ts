import { createServer } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { BASE_URI, Conversation, SETUP } from './support/conversation.ts';
import { openFirstPage } from './support/first-page.ts';
import { Host, suites } from './support/host.ts';
import { Repository } from './support/repository.ts';

const CONFIG = '/etc/klatch/server.conf';
const systems = [
  ...suites('bookworm', 'bullseye', 'trixie').map((suite) => [suite, 'sysv'] as const),
  ...suites('bookworm', 'trixie').map((suite) => [suite, 'systemd'] as const),
];

/** Each test continues from the previous one: all of them use one installation, from the first command on. */
describe.each(systems)('a service with the private database on %s with %s', (suite, init) => {
  /** The exit codes of `service klatch start`. Init scripts can distinguish more cases than systemctl. */
  const codes = init === 'sysv' ? { unconfigured: 6, killed: 1 } : { unconfigured: 1, killed: 3 };
  let repository: Repository;
  let host: Host;
  let conversation: Conversation;

  beforeAll(async () => {
    repository = await Repository.start();
    host = await Host.start(suite, init);
  });

  afterAll(async () => {
    await conversation?.stop();
    await host?.stop();
    await repository?.stop();
  });

  /**
   * Returns the text with the reason why the server did not start. Init scripts print it on the terminal; with systemd
   * it is at the end of the journal.
   */
  const reasonOf = async (ran: { stdout: string; stderr: string }): Promise<string> =>
    init === 'sysv' ? ran.stdout + ran.stderr : (await host.log()).trim().split('\n').slice(-8).join('\n');

  const pidOfServer = async (): Promise<string> => {
    const { pid } = JSON.parse(await host.machine.must('klatch status --json')) as { pid: number };
    return String(pid);
  };

  test('install.sh installs it, tells the commands that come next, and starts nothing', async () => {
    const ran = await host.install(repository, '--embedded');
    expect(ran).toMatchObject({ code: 0 });
    expect(ran.stdout).toContain('klatch setup');
    expect(ran.stdout).toContain('service klatch start');
    expect(await host.service('status', 'not configured')).toMatchObject({ code: 3 });
    expect((await host.machine.sh('grep -lx klatch /proc/[0-9]*/comm')).stdout).toBe('');
  });

  test('installing it again changes nothing', async () => {
    const list =
      'find /etc/apt /etc/klatch /usr/share/keyrings /var/lib/dpkg/info/klatch* -type f | sort | xargs md5sum';
    const before = await host.machine.must(list);
    expect(await host.install(repository, '--embedded')).toMatchObject({ code: 0 });
    expect(await host.machine.must(list)).toBe(before);
  });

  test('an unconfigured server does not start, and says which keys lack a value, in which lines', async () => {
    const ran = await host.service('start', 'not configured');
    expect(ran).toMatchObject({ code: codes.unconfigured });
    const lineOf = async (text: string): Promise<string> =>
      (await host.machine.must(`grep -n '${text}' ${CONFIG}`)).split(':')[0]!;
    const reason = await reasonOf(ran);
    for (const [key, placeholder] of [
      ['secret', '"<SERVER_SECRET>"'],
      ['http.base-uri', '"<BASE_URI>"'],
      ['services.postgresql.password', '"<DB_PASSWORD>"'],
    ] as const) {
      expect(reason).toMatch(
        new RegExp(`${CONFIG}:${await lineOf(placeholder)}\\b.*${key}|${key}.*:${await lineOf(placeholder)}\\b`),
      );
    }
    expect(await host.service('status', 'not configured')).toMatchObject({ code: 3 });
  });

  test('klatch setup by flags configures it, and a second time changes nothing', async () => {
    expect(await host.act('klatch setup --embedded', `${SETUP} --embedded`)).toMatchObject({ code: 0 });
    const before = await host.machine.must(`md5sum ${CONFIG}; stat -c '%a %U:%G' ${CONFIG}`);
    expect(before).toContain('640 root:klatch');
    expect(await host.act('klatch setup --embedded, again', `${SETUP} --embedded`)).toMatchObject({ code: 0 });
    expect(await host.machine.must(`md5sum ${CONFIG}; stat -c '%a %U:%G' ${CONFIG}`)).toBe(before);
  });

  test('start returns when it is ready to work', async () => {
    expect(await host.service('start')).toMatchObject({ code: 0 });
    expect((await fetch(`${BASE_URI}/v1/ready`)).status).toBe(200);
    expect(await host.service('status', 'running')).toMatchObject({ code: 0 });
    expect(await host.service('start', 'running')).toMatchObject({ code: 0 });
    expect(await host.act('klatch status, running', 'klatch status')).toMatchObject({ code: 0 });
    expect(await host.act('klatch doctor, running', 'klatch doctor')).toMatchObject({ code: 0, stderr: '' });
    expect(await host.machine.must(`stat -c %U /proc/${await pidOfServer()}`)).toBe('klatch\n');
  });

  test('admin-link opens the browser client in a first group, which shows what is posted', async () => {
    const ran = await host.act('klatch admin-link', 'klatch admin-link --json');
    expect(ran).toMatchObject({ code: 0 });
    await openFirstPage(ran.stdout);
  });

  test('a message that is posted from outside is forwarded', async () => {
    conversation = await Conversation.open(host);
    await conversation.say();
  });

  test('a restart forgets nothing', async () => {
    const before = await pidOfServer();
    expect(await host.service('restart', 'running')).toMatchObject({ code: 0 });
    expect(await pidOfServer()).not.toBe(before);
    await conversation.say();
  });

  test('stop ends it with its database, and is no error when it does not run', async () => {
    expect(await host.service('stop', 'running')).toMatchObject({ code: 0 });
    expect(await host.service('status', 'stopped')).toMatchObject({ code: 3 });
    expect((await host.machine.sh('grep -lxE "klatch|postgres" /proc/[0-9]*/comm')).stdout).toBe('');
    expect(await host.service('stop', 'stopped')).toMatchObject({ code: 0 });
    expect(await host.service('restart', 'stopped')).toMatchObject({ code: 0 });
    await conversation.say();
  });

  test('a server that is killed has lost nothing when it runs again', async () => {
    const killed = await pidOfServer();
    await host.machine.must(`kill -9 ${killed}`);
    if (init === 'sysv') {
      await eventually(
        () => host.machine.sh('service klatch status'),
        ({ code }) => code !== 0,
      );
      expect(await host.service('status', 'killed')).toMatchObject({ code: codes.killed });
      expect(await host.service('start', 'killed')).toMatchObject({ code: 0 });
    } else {
      // systemd restarts the killed server automatically.
      await eventually(
        async () => (await host.machine.sh('klatch ready && klatch status --json')).stdout,
        (status) => status.includes('"pid"') && !status.includes(`"pid": ${killed},`),
      );
      // systemd calls the service active only after ExecStartPost, which may see the server ready later than this test.
      await eventually(
        async () => (await host.machine.sh('systemctl is-active klatch')).stdout.trim(),
        (state) => state === 'active',
      );
      expect(await host.service('status', 'killed')).toMatchObject({ code: 0 });
    }
    await conversation.say();
  });

  test('a mistake in the configuration is told with its line, and when it is mended the server starts', async () => {
    await host.machine.must(`cp -p ${CONFIG} /root/kept && echo 'http.port = many' >>${CONFIG}`);
    const line = (await host.machine.must(`wc -l <${CONFIG}`)).trim();
    const ran = await host.service('restart', 'broken configuration');
    expect(ran).toMatchObject({ code: codes.unconfigured });
    expect(await reasonOf(ran)).toContain(`${CONFIG}:${line}`);
    expect((await host.act('klatch status, broken configuration', 'klatch status')).code).not.toBe(0);
    await host.machine.must(`cp -p /root/kept ${CONFIG}`);
    expect(await host.service('start', 'mended')).toMatchObject({ code: 0 });
    await conversation.say();
  });

  test('a port that somebody else has is told, with whose it is', async () => {
    await host.service('stop');
    const other = createServer().listen(9090, '127.0.0.1');
    await once(other, 'listening');
    try {
      const ran = await host.service('start', 'port taken');
      expect(ran).toMatchObject({ code: 1 });
      expect(await reasonOf(ran)).toMatch(/127\.0\.0\.1:9090/);
    } finally {
      other.close();
    }
    // systemd repeats the start until it is told to stop the service.
    await host.machine.must('service klatch stop');
    expect(await host.service('start', 'port free again')).toMatchObject({ code: 0 });
    await conversation.say();
  });

  test('the server refuses to run by hand as root on the configuration of the service', async () => {
    await host.service('stop');
    const ran = await host.act('klatch serve, as root', 'klatch serve', { timeoutMs: 20_000 });
    expect(ran).toMatchObject({ code: 77 });
    expect(ran.stderr).toMatch(/service klatch start/);
    expect(await host.service('start')).toMatchObject({ code: 0 });
  });

  test('what root does with its database by hand is done as its user, who may not touch what is not its own', async () => {
    await host.machine.must('klatch backup /root/backup.tar.gz');
    await host.service('stop');
    const kept = ['new', 'old'].map((what) => `/var/lib/klatch/postgresql.${what}-0`);
    for (const folder of kept) await host.machine.must(`mkdir ${folder} && touch ${folder}/file`);
    const restored = await host.act('klatch restore, a database with rows', 'klatch restore /root/backup.tar.gz');
    expect(restored).toMatchObject({ code: 1, stderr: expect.stringContaining('not empty') });
    const upgraded = await host.act('klatch db upgrade --remove-old', 'klatch db upgrade --remove-old');
    expect(upgraded).toMatchObject({ code: 73, stderr: expect.stringContaining('postgresql.old-0') });
    for (const folder of kept) await host.machine.must(`test -e ${folder}/file && rm -r ${folder}`);
    expect(await host.act('klatch db upgrade', 'klatch db upgrade')).toMatchObject({ code: 0, stderr: '' });
    expect(await host.service('start')).toMatchObject({ code: 0 });
    await conversation.say();
  });

  test('every message arrived, in the order in which it was posted', () => {
    const texts = conversation.texts();
    expect(texts).toEqual(texts.map((_, index) => `message ${index + 1}`));
    expect(texts.length).toBeGreaterThanOrEqual(5);
  });
});
