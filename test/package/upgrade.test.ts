import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Conversation, SETUP } from './support/conversation.ts';
import { Host, isQuick, suites } from './support/host.ts';
import { Repository } from './support/repository.ts';
import { underLoad } from './support/under-load.ts';

const CONFIG = '/etc/klatch/server.conf';
const DEFAULTS = '/etc/default/klatch';
const ONLY = 'apt-get -y install --only-upgrade klatch';
const ALL = 'apt-get -y upgrade';

const systems = [
  ...suites('bookworm', 'bullseye', 'trixie').map((suite) => [suite, 'sysv'] as const),
  ...suites('bookworm', 'trixie').map((suite) => [suite, 'systemd'] as const),
];

/** Each test continues from the previous one: all of them use one installation and its upgrades. */
describe.each(systems)('upgrading on %s with %s', (suite, init) => {
  let repository: Repository;
  let host: Host;
  let conversation: Conversation;
  let first: string;
  let settingsBefore: string;

  beforeAll(async () => {
    repository = await Repository.start();
    host = await Host.start(suite, init);
    await host.install(repository, '--embedded');
    await host.machine.must(`${SETUP} --embedded`);
    await host.machine.must(`echo '# edited' | tee -a ${CONFIG} >>${DEFAULTS}`);
    await host.machine.must('service klatch start');
    first = await host.version();
    settingsBefore = await settings();
    conversation = await Conversation.open(host);
    await conversation.say();
  });

  afterAll(async () => {
    await conversation?.stop();
    await host?.stop();
    await repository?.stop();
  });

  const settings = (): Promise<string> =>
    host.machine.must(`md5sum ${CONFIG} ${DEFAULTS}; stat -c '%a %U:%G' ${CONFIG}`);

  const isEnabled = async (): Promise<boolean> => {
    const line = init === 'sysv' ? 'ls /etc/rc2.d/S*klatch' : 'systemctl is-enabled klatch';
    return (await host.machine.sh(line)).code === 0;
  };

  const upgrade = async (line: string, state: string): Promise<void> => {
    expect(await host.act(`${line}, ${state}`, line, { timeoutMs: 300_000 })).toMatchObject({ code: 0 });
  };

  /** Returns to the first version by the steps of docs/install.md. */
  const goBack = async (state: string): Promise<void> => {
    const line = `apt-get -y install --allow-downgrades klatch=${first}`;
    const action = `apt-get install klatch=<version before>, ${state}`;
    expect(await host.act(action, line, { timeoutMs: 300_000 })).toMatchObject({ code: 0 });
    expect(await host.version()).toBe(first);
  };

  test('under load, no message is lost, and the hook gets all of them in order', async () => {
    repository.publication = 'same-schema';
    await host.update();
    const survival = await underLoad(host, () => upgrade(ONLY, 'running, under load'));
    expect(survival.lost).toEqual([]);
    expect(survival.seqs).toEqual(survival.seqs.map((_, index) => index + 1));
    expect(await host.version()).not.toBe(first);
    expect(await host.service('status', 'upgraded')).toMatchObject({ code: 0 });
    expect(await settings()).toBe(settingsBefore);
    await conversation.say();
  });

  test('back to a version of the same schema, it goes on', async () => {
    await goBack('same schema');
    expect(await host.service('status', 'version before')).toMatchObject({ code: 0 });
    await conversation.say();
  });

  test('a server that is stopped stays stopped, through a plain upgrade too', async () => {
    await host.machine.must('service klatch stop');
    await upgrade(ALL, 'stopped');
    expect(await host.version()).not.toBe(first);
    expect(await host.service('status', 'upgraded while stopped')).toMatchObject({ code: 3 });
    expect(await isEnabled()).toBe(true);
    await host.machine.must('service klatch start');
    await conversation.say();
  });

  test('a server that is disabled and running is restarted, brings the schema up to date, and stays disabled', async () => {
    const disable = init === 'sysv' ? 'update-rc.d klatch disable' : 'systemctl disable klatch';
    expect(await host.act(disable, disable)).toMatchObject({ code: 0 });
    repository.publication = 'new-schema';
    await host.update();
    const survival = await underLoad(host, () => upgrade(ALL, 'disabled, running, under load'));
    expect(survival.lost).toEqual([]);
    expect(survival.seqs).toEqual(survival.seqs.map((_, index) => index + 1));
    expect(await host.service('status', 'upgraded while disabled')).toMatchObject({ code: 0 });
    expect(await isEnabled()).toBe(false);
    expect(await host.log()).toContain('the database schema was brought up to date');
    expect(await settings()).toBe(settingsBefore);
    await conversation.say();
  });

  test('back to a version that does not know the schema, it refuses before it touches data', async () => {
    await goBack('newer schema');
    const ran = await host.service('start', 'newer schema');
    expect(ran).toMatchObject({ code: 1 });
    expect(await host.log()).toMatch(/the database is at schema \d+ and this Klatch knows \d+/);
    const status = await host.act('klatch status, newer schema', 'klatch status');
    expect(status).toMatchObject({ code: 69 });
    expect(status.stdout).toMatch(/the database is at schema \d+ and this Klatch knows \d+/);
    await upgrade(ONLY, 'start refused');
    expect(await host.service('start', 'newer version again')).toMatchObject({ code: 0 });
    await conversation.say();
  });

  // Quick runs skip this: only the full tests make a version whose migration fails.
  (isQuick ? () => {} : test)('a migration that fails leaves the data usable, and says what to do', async () => {
    const before = await host.version();
    repository.publication = 'failing';
    await host.update();
    const ran = await host.act(`${ONLY}, failing migration`, ONLY, { timeoutMs: 300_000 });
    expect(ran).toMatchObject({ code: 0 });
    // apt combines both outputs of a package's scripts.
    const said = ran.stdout + ran.stderr;
    expect(said).toMatch(/migration \d+ trial failed/);
    expect(said).toContain(`apt-get install klatch=${before}`);
    expect((await host.service('status', 'failing migration')).code).toBe(3);
    const line = `apt-get -y install --allow-downgrades klatch=${before}`;
    const back = await host.act('apt-get install klatch=<version before>, failed migration', line, {
      timeoutMs: 300_000,
    });
    expect(back).toMatchObject({ code: 0 });
    await host.machine.must('service klatch start');
    await conversation.say();
  });

  test('every message of the whole story arrived, in the order in which it was posted', () => {
    const texts = conversation.texts();
    expect(texts).toEqual(texts.map((_, index) => `message ${index + 1}`));
    expect(texts.length).toBeGreaterThanOrEqual(6);
  });
});
