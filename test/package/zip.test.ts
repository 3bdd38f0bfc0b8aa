import { spawn, type ChildProcess } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { addLookUps, startBare, trialFile } from './support/bare.ts';
import { BASE_URI, Conversation } from './support/conversation.ts';
import { openFirstPage } from './support/first-page.ts';
import { Host, suites } from './support/host.ts';
import type { InsideOptions, Machine } from './support/machine.ts';
import { mustRun } from './support/run.ts';

const UID = 1000;
const HOME = '/srv/with a space';
const SETUP = `bin/klatch setup --embedded --base-uri ${BASE_URI} --allow loopback`;

/** Unpacks the zips of Klatch and its PostgreSQL for an ordinary account, by the steps of INSTALL.txt. */
async function unpack(machine: Machine): Promise<void> {
  await machine.must(`mkdir -p '${HOME}'`);
  const home = machine.path(HOME);
  await mustRun('unzip', ['-q', trialFile('klatch', 'zip'), '-d', home]);
  await machine.must(`cd '${HOME}' && ln -s klatch-* klatch`);
  await mustRun('unzip', ['-q', trialFile('klatch-postgresql', 'zip'), '-d', `${home}/klatch/`]);
  await machine.must(`chown -R ${UID}:${UID} '${HOME}'`);
}

/** The running processes of Klatch and PostgreSQL. */
const servers = (machine: Machine) => machine.sh('grep -lxE "klatch|postgres" /proc/[0-9]*/comm');

/** Opens a terminal with a shell. Closing the terminal has the effect of closing an ssh session. */
function openTerminal(machine: Machine): ChildProcess {
  const enter = ['-t', String(machine.pid), '-m', '-p', '-u', '-i', '-r', '-w', '-S', String(UID), '-G', String(UID)];
  const shell = ['script', '--quiet', '--command', 'bash --norc -i', '/dev/null'];
  return spawn('nsenter', [...enter, '--', ...shell], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { ...process.env, HOME },
  });
}

describe.each(suites('bookworm', 'bullseye', 'trixie'))('the release zip on %s', (suite) => {
  let host: Host;
  let conversation: Conversation;

  beforeAll(async () => {
    host = await Host.start(suite);
    await host.machine.must(`useradd --uid ${UID} --no-create-home --home-dir '${HOME}' trial`);
    await unpack(host.machine);
  });

  afterAll(async () => {
    await conversation?.stop();
    await host?.stop();
  });

  const act = (action: string, line: string, options: InsideOptions = {}) =>
    host.act(`zip: ${action}`, line, { uid: UID, ...options, env: { HOME, ...options.env } });

  test('is configured where it was unpacked', async () => {
    expect(await act('bin/klatch, not configured', `cd '${HOME}/klatch' && bin/klatch`)).toMatchObject({ code: 78 });
    expect(await act('bin/klatch setup', `cd '${HOME}/klatch' && ${SETUP}`)).toMatchObject({ code: 0 });
    expect(await host.machine.must(`ls '${HOME}/klatch/conf'`)).toMatch(/^server\.conf$/m);
  });

  test('survives the loss of the terminal that it was started from', async () => {
    const terminal = openTerminal(host.machine);
    terminal.stdin!.write(`cd '${HOME}/klatch'\nnohup bin/klatch >>klatch.log 2>&1 &\n`);
    expect(
      await act('bin/klatch ready', `'${HOME}/klatch/bin/klatch' ready --wait 60`, { timeoutMs: 70_000 }),
    ).toMatchObject({
      code: 0,
    });
    // Kills the terminal. The kernel then sends SIGHUP to its shell, which has the server as a job.
    await host.machine.must('pkill -KILL -x script || kill -9 $(grep -lx script /proc/[0-9]*/comm | cut -d/ -f3)');
    await eventually(
      () => host.machine.sh('grep -lx bash /proc/[0-9]*/comm'),
      ({ stdout }) => stdout === '',
    );
    expect(await act('bin/klatch status, terminal lost', `'${HOME}/klatch/bin/klatch' status`)).toMatchObject({
      code: 0,
    });
  });

  test('works from any folder, by a link and from PATH', async () => {
    await host.machine.must(`ln -s '${HOME}/klatch/bin/klatch' /usr/local/bin/klatch`);
    expect(await act('klatch status, by a link', 'cd / && klatch status')).toMatchObject({ code: 0 });
    expect(
      await act('klatch status, from PATH', 'cd /tmp && klatch status', {
        env: { PATH: `${HOME}/klatch/bin:/usr/bin:/bin` },
      }),
    ).toMatchObject({ code: 0 });
  });

  test('admin-link opens the browser client in a first group, which shows what is posted', async () => {
    const ran = await act('klatch admin-link', 'klatch admin-link --json');
    expect(ran).toMatchObject({ code: 0 });
    await openFirstPage(ran.stdout);
  });

  test('forwards what is posted', async () => {
    conversation = await Conversation.open(host);
    await conversation.say();
  });

  test('stops with its database when it is told to', async () => {
    const { pid } = JSON.parse(await host.machine.must('klatch status --json')) as { pid: number };
    await host.machine.must(`kill ${pid}`);
    await eventually(
      () => servers(host.machine),
      ({ stdout }) => stdout === '',
    );
    expect(await act('klatch status, stopped', 'klatch status')).toMatchObject({ code: 69 });
  });
});

describe.each(['', 'linux-3.13 '])('the release zip in an empty root, after "%s"', (within) => {
  let machine: Machine;

  beforeAll(async () => {
    machine = await startBare('zip');
    await unpack(machine);
    await addLookUps(machine, [`trial:x:${UID}:${UID}:Trial:${HOME}:/bin/sh`], []);
  });

  afterAll(() => machine?.stop());

  test('is ready to work, and stops', async () => {
    const inside = { uid: UID, env: { HOME } };
    const folder = `cd '${HOME}/klatch' &&`;
    await machine.must(`${folder} ${within}${SETUP}`, inside);
    await machine.must(`${folder} { ${within}setsid bin/klatch >klatch.log 2>&1 </dev/null & }`, inside);
    await machine.must(`${folder} ${within}bin/klatch ready --wait 60`, { ...inside, timeoutMs: 70_000 });
    expect((await fetch(`${BASE_URI}/v1/ready`)).status).toBe(200);
    const { pid } = JSON.parse(await machine.must(`${folder} ${within}bin/klatch status --json`, inside)) as {
      pid: number;
    };
    await machine.must(`kill ${pid}`);
    await eventually(
      () => servers(machine),
      ({ stdout }) => stdout === '',
    );
  });
});
