import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Publisher, type MachineOptions, type Target } from './support/install-script.ts';
import type { Ran } from './support/run.ts';
import { klatch } from './support/stand-ins.ts';

/** A number greater than that of the steps of install.sh: the last steps are never reached. */
const MAX_STEPS = 120;
const PROGRAMS = ['apt-get', 'apt-cache', 'base64', 'chmod', 'cmp', 'cp', 'mkdir', 'mktemp', 'mv', 'rm'];

let publisher: Publisher;
let target: Target | null = null;

beforeAll(async () => {
  publisher = await Publisher.start();
});

afterEach(async () => {
  await target?.stop();
  target = null;
});

afterAll(() => publisher.stop());

async function machine(options: MachineOptions = {}): Promise<Target> {
  target = await publisher.machine(options);
  return target;
}

/** Runs install.sh with $SCRIPT set to its process id. */
function installTold(at: Target, args = '', env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  return at.install(args, { env, by: `sh -c 'SCRIPT=$$ exec "$@"' sh env` });
}

describe('install.sh that is killed', () => {
  test('at any step can be run again, and leaves apt working', async () => {
    const at = await machine({ distribution: 'old' });
    const { machine: host } = at;
    // This wrapper of each program counts its start and its end as steps, and kills the script at the given step.
    const wrapper = `#!/bin/sh
step() {
  [ -e /root/kill-at ] || return 0
  read -r left </root/kill-at
  echo $((left - 1)) >/root/kill-at
  [ "$left" -ne 1 ] || { /bin/rm /root/kill-at; kill -9 "$SCRIPT"; exit 137; }
}
step
PATH=/usr/sbin:/usr/bin:/sbin:/bin "\${0##*/}" "$@"
result=$?
step
exit $result
`;
    for (const name of PROGRAMS) await host.write(`/root/steps/${name}`, wrapper, '755');
    const env = { PATH: '/root/steps:/usr/sbin:/usr/bin:/sbin:/bin' };
    let step = 1;
    for (; step < MAX_STEPS; step++) {
      await host.write('/root/kill-at', `${step}\n`);
      const { code, stderr } = await installTold(at, '--version 0.2.0', env);
      expect({ step, update: (await at.userUpdate()).code }).toEqual({ step, update: 0 });
      if (code === 0) break;
      expect({ step, code, stderr }).toEqual({ step, code: 137, stderr: expect.anything() });
    }
    expect(step).toBeGreaterThan(30);
    expect(step).toBeLessThan(MAX_STEPS);
    await host.must('rm -f /root/kill-at');
    expect(await installTold(at, '--version 0.2.0')).toMatchObject({ code: 0, stderr: '' });
    expect(await at.installed()).toEqual(['klatch', 'klatch-postgresql']);
    expect(await host.must('dpkg --audit')).toBe('');
  });

  test.each(['preinst', 'postinst'])('with dpkg and apt, in the middle of %s, can be run again', async (script) => {
    const at = await machine();
    // Kills the script, apt and dpkg at once, as a loss of power does.
    const die = `#!/bin/sh
[ -e /root/died ] && exit 0
touch /root/died
kill -9 "$SCRIPT" $(sed -n 's/^PPid:\\t//p' /proc/$PPID/status) $PPID
`;
    await publisher.publish(klatch(`0.4.${script.length}`, { scripts: { [script]: die } }));
    expect((await installTold(at)).code).toBe(137);
    expect((await at.userUpdate()).code).toBe(0);
    const { code, stderr } = await installTold(at);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(await at.version('klatch')).toBe(`0.4.${script.length}`);
    expect(await at.machine.must('dpkg --audit')).toBe('');
  });

  test.each([
    ['INT', 130],
    ['TERM', 143],
    ['HUP', 129],
  ] as const)('by SIG%s says so and cleans up', async (signal, code) => {
    const at = await machine();
    await at.machine.write(
      '/usr/local/bin/cmp',
      `#!/bin/sh\nrm /usr/local/bin/cmp\nkill -${signal} "$SCRIPT"\nexit 1\n`,
      '755',
    );
    const ran = await installTold(at, '--version 0.2.0');
    expect(ran).toMatchObject({
      code,
      stderr: `install.sh: stopped by ${signal}. Run it again: it goes on from where it was.\n`,
    });
    expect(await at.machine.must('ls -A /tmp')).toBe('');
    expect((await at.userUpdate()).code).toBe(0);
    expect((await installTold(at, '--version 0.2.0')).code).toBe(0);
  });

  test('by a package that cannot be configured shows what it said, and goes on when that is mended', async () => {
    const at = await machine();
    const postinst = '#!/bin/sh\n[ -e /root/mended ] && exit 0\necho "klatch: the moon is full" >&2\nexit 3\n';
    // The version contains words that the script takes for the reason of a failure if an error of apt has them.
    await publisher.publish(klatch('0.5.404+gnutls.SSL.verified', { scripts: { postinst } }));
    const ran = await installTold(at);
    expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining('  | klatch: the moon is full\n') });
    expect(ran.stderr).toContain('/var/log/klatch-install.log');
    await at.machine.must('touch /root/mended');
    expect((await installTold(at)).code).toBe(0);
  });
});
