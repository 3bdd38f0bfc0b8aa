import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { Conversation, SETUP } from './support/conversation.ts';
import { Host, suites } from './support/host.ts';
import { Repository } from './support/repository.ts';

/** The worst exposure rating by systemd that the unit may get; a unit without any protection has 10. */
const MOST_EXPOSURE = 2.0;

/**
 * Tests only what is special to systemd; service.test.ts tests the rest of the service. Each test continues from the
 * previous one.
 */
describe.each(suites('bookworm', 'trixie'))('the unit of systemd on %s', (suite) => {
  let repository: Repository;
  let host: Host;
  let conversation: Conversation;

  beforeAll(async () => {
    repository = await Repository.start();
    host = await Host.start(suite, 'systemd');
    await host.install(repository, '--embedded');
  });

  afterAll(async () => {
    await conversation?.stop();
    await host?.stop();
    await repository?.stop();
  });

  const isReady = () =>
    eventually(
      () => host.machine.sh('klatch ready'),
      ({ code }) => code === 0,
    );

  test('is one that systemd has nothing to say about', async () => {
    const ran = await host.act('systemd-analyze verify', 'systemd-analyze verify --man=no klatch.service');
    expect(ran).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  test(`exposes no more than ${MOST_EXPOSURE}`, async () => {
    const ran = await host.act('systemd-analyze security', 'systemd-analyze security --no-pager klatch.service');
    const [, level] = /Overall exposure level for klatch\.service: ([\d.]+)/.exec(ran.stdout) ?? [];
    expect(Number(level)).toBeLessThanOrEqual(MOST_EXPOSURE);
  });

  test('ends the journal with the sentence that says why it did not start', async () => {
    expect(await host.service('start', 'not configured')).toMatchObject({ code: 1 });
    const lines = (await host.log()).trim().split('\n');
    const own = lines.filter((line) => !/klatch\.service|^systemd/.test(line));
    expect(own.at(-1)).toMatch(/setup/);
    expect(own.join('\n')).toMatch(/server\.conf:\d+/);
    const status = await host.act('klatch status, not configured', 'klatch status');
    expect(status).toMatchObject({ code: 69 });
    expect(status.stdout).toMatch(/server\.conf:\d+/);
  });

  test('is not started again and again while it is not configured', async () => {
    const state = await host.machine.must('systemctl show -p NRestarts -p ActiveState --value klatch');
    expect(state.trim().split('\n').sort()).toEqual(['0', 'failed']);
  });

  test('starts with the machine', async () => {
    await host.machine.must(`${SETUP} --embedded && service klatch start`);
    conversation = await Conversation.open(host);
    await conversation.say();
    await host.machine.reboot();
    await isReady();
    expect(await host.service('status', 'power lost, booted')).toMatchObject({ code: 0 });
    await conversation.say();
  });

  test('does not start with the machine when it is disabled', async () => {
    await host.machine.must('systemctl disable klatch');
    await host.machine.reboot();
    expect(await host.service('status', 'disabled, booted')).toMatchObject({ code: 3 });
    expect(await host.service('start', 'disabled')).toMatchObject({ code: 0 });
    await conversation.say();
  });

  test('ends its private database with it, also when it was killed', async () => {
    await host.machine.must('systemctl kill -s KILL klatch; service klatch stop');
    expect((await host.machine.sh('grep -lxE "klatch|postgres" /proc/[0-9]*/comm')).stdout).toBe('');
    await host.machine.must('service klatch start');
    await conversation.say();
  });
});
