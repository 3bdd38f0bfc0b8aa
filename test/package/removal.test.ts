import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Conversation, SETUP } from './support/conversation.ts';
import { Host, suites } from './support/host.ts';
import { Repository } from './support/repository.ts';

const systems = [
  ...suites('bookworm', 'bullseye', 'trixie').map((suite) => [suite, 'sysv'] as const),
  ...suites('bookworm', 'trixie').map((suite) => [suite, 'systemd'] as const),
];
/** Lists all files of the machine, except those that no package owns: records of apt and dpkg, logs, caches. */
const EVERYTHING = `{ find / -xdev \\( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /root \\
  -o -path '/etc/*shadow-' -o -path '/etc/passwd-' -o -path '/etc/group-' -o -path '/var/lib/dpkg' -o -path '/var/lib/apt' -o -path '/var/cache' -o -path '/var/log' -o -path '/var/lib/systemd' \\) -prune \\
  -o -print; find /run /tmp /var/log /var/lib/systemd -iname '*klatch*' ! -name 'klatch-install.log*'; cat /etc/passwd /etc/group; } | sort`;

/** Each test continues from the state that the previous one left. */
describe.each(systems)('removing on %s with %s', (suite, init) => {
  let repository: Repository;
  let host: Host;
  let conversation: Conversation;
  let before: string;

  beforeAll(async () => {
    repository = await Repository.start();
    host = await Host.start(suite, init);
    before = await host.machine.must(EVERYTHING);
    await host.install(repository, '--embedded');
    await host.machine.must(`${SETUP} --embedded && service klatch start`);
    conversation = await Conversation.open(host);
    await conversation.say();
  });

  afterAll(async () => {
    await conversation?.stop();
    await host?.stop();
    await repository?.stop();
  });

  const apt = async (action: string, state: string): Promise<void> => {
    const ran = await host.act(`apt-get ${action}, ${state}`, `apt-get -y ${action}`, { timeoutMs: 300_000 });
    expect(ran).toMatchObject({ code: 0 });
  };

  /**
   * The processes of the server and its database. Zombies are left out: the init process of the machine will reap them.
   */
  const processes = async (): Promise<string> => {
    const living = 'grep -q "^State:.*Z" "/proc/$pid/status" || echo "$pid"';
    const named = 'grep -lxE "klatch|postgres" /proc/[0-9]*/comm | cut -d/ -f3';
    return (await host.machine.sh(`${named} | while read -r pid; do ${living}; done`)).stdout;
  };

  test('a removal stops the server and its database, and keeps configuration and data', async () => {
    await apt('remove klatch', 'running');
    expect(await processes()).toBe('');
    expect((await host.machine.sh('command -v klatch')).code).not.toBe(0);
    await host.machine.must('test -s /etc/klatch/server.conf && test -e /var/lib/klatch/postgresql/PG_VERSION');
    await host.service('start', 'removed');
    expect(await processes()).toBe('');
  });

  test('installed again, it goes on with the same data and delivers by the same hook', async () => {
    // The removal of klatch has also removed klatch-postgresql, which needs the C library of the server's package.
    expect(await host.install(repository, '--embedded')).toMatchObject({ code: 0 });
    await host.machine.must('service klatch start');
    await conversation.say();
    expect(conversation.texts()).toEqual(['message 1', 'message 2']);
  });

  test('a purge leaves nothing', async () => {
    await apt('purge klatch klatch-postgresql', 'running');
    await host.machine.must('rm /etc/apt/sources.list.d/klatch.list /usr/share/keyrings/klatch-archive-keyring.gpg');
    expect(await processes()).toBe('');
    const after = (await host.machine.must(EVERYTHING)).split('\n');
    const known = new Set(before.split('\n'));
    expect(after.filter((line) => !known.has(line))).toEqual([]);
    expect((await host.service('status', 'purged')).code).not.toBe(0);
  });
});
