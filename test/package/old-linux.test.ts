import { copyFileSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/receiver.ts';
import { addLookUps, makeCertificate, startBare, trialFile } from './support/bare.ts';
import { BASE_URI, post } from './support/conversation.ts';
import { ROOT, type InsideOptions, type Machine } from './support/machine.ts';

const UID = 1000;
const CONFIG = '/data/server.conf';

/**
 * A substitute for Ubuntu 14.04, which is not available here. It is an empty root with no C library except that of the
 * package, and with the system calls of an old kernel.
 */
describe.each(['', 'linux-3.13 '])('in an empty root, a command after "%s"', (within) => {
  let machine: Machine;
  let receiver: Receiver;
  let secure: Server;
  const secureHosts: (string | undefined)[] = [];

  beforeAll(async () => {
    const packages = [trialFile('klatch', 'deb'), trialFile('klatch-postgresql', 'deb')];
    machine = await startBare('old-linux', packages);
    const { key, cert } = await makeCertificate(join(ROOT, 'build/bare/certificate'), 'receiver.test');
    secure = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (req, res) => {
      secureHosts.push(req.headers.host);
      req.resume().on('end', () => res.end());
    });
    await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
    copyFileSync(cert, machine.path('/tmp/cert.pem'));
    receiver = await Receiver.start();
    await machine.must(`mkdir /data && chown ${UID}:${UID} /data`);
  });

  afterAll(async () => {
    await receiver?.stop();
    secure?.close();
    await machine?.stop();
  });

  const asUser = (line: string, options: InsideOptions = {}) =>
    machine.must(`${within}${line}`, { uid: UID, ...options, env: { HOME: '/data', ...options.env } });

  test('the program runs, with no user of its name and no host names', async () => {
    expect(await machine.must(`${within}klatch --version`)).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect((await machine.sh(`${within}klatch status`)).code).toBe(78);
  });

  test('the filter stands for Linux 3.13: what is newer is not there', async () => {
    const status = await machine.must(`${within}grep Seccomp: /proc/self/status`);
    expect(status).toMatch(within === '' ? /\b0\n/ : /\b2\n/);
  });

  test('a home folder is found by the users of the machine, where nobody says it', async () => {
    await addLookUps(machine, [`trial:x:${UID}:${UID}:Trial:/data:/bin/sh`], ['127.0.0.1 receiver.test']);
    await machine.must(`env -u HOME ${within}klatch --version`, { uid: UID });
  });

  test('klatch setup makes a private database, and the server is ready', async () => {
    const where = `--config ${CONFIG} --data-dir /data/state --base-uri ${BASE_URI} --allow loopback`;
    await asUser(`klatch setup --embedded ${where}`);
    await machine.must(`echo 'memory.heap = 333 MiB' >>${CONFIG}`);
    await machine.must(
      `env NODE_EXTRA_CA_CERTS=/tmp/cert.pem ${within}setsid klatch serve --config ${CONFIG} >/data/log 2>&1 </dev/null &`,
      { uid: UID, env: { HOME: '/data' } },
    );
    const ready = await machine.sh(`${within}klatch ready --wait 60 --config ${CONFIG}`, {
      uid: UID,
      timeoutMs: 70_000,
    });
    expect({ ...ready, log: await machine.must('cat /data/log') }).toMatchObject({ code: 0 });
    expect((await fetch(`${BASE_URI}/v1/ready`)).status).toBe(200);
  });

  test('the memory that the configuration allows is in effect', async () => {
    expect(await asUser(`klatch status --config ${CONFIG}`)).toMatch(/\b333\b/);
  });

  test('a message is forwarded over HTTP, and over TLS to a name that the machine knows', async () => {
    const group = JSON.parse(await asUser(`klatch group create Old --json --config ${CONFIG}`)) as { webhook: string };
    const { port } = secure.address() as AddressInfo;
    const hooks = [receiver.url(), `https://receiver.test:${port}/hook`];
    const ids: number[] = [];
    for (const url of hooks) {
      const answer = await post(`${group.webhook}/reverse`, { url });
      expect(answer.status).toBe(201);
      ids.push(((await answer.json()) as { id: number }).id);
    }
    expect((await post(group.webhook, { text: 'to both' })).status).toBe(200);
    const [arrival] = await receiver.received(1);
    expect(arrival!.body.data.message.text).toBe('to both');
    for (const id of ids) {
      // The settlement thread of the server has written this result, so that thread works on the old kernel too.
      const hook = await eventually(
        async () =>
          (await (await fetch(`${group.webhook}/reverse/${id}`)).json()) as {
            pending: number;
            last_success_at: string;
          },
        ({ pending, last_success_at }) => pending === 0 && last_success_at !== null,
      );
      expect(hook).toMatchObject({ status: 'Ok', state: 'active' });
    }
    expect(secureHosts).toEqual([`receiver.test:${port}`]);
  });

  test('it stops when it is told to, with its database', async () => {
    const { pid } = JSON.parse(await asUser(`klatch status --json --config ${CONFIG}`)) as { pid: number };
    await machine.must(`kill ${pid}`);
    await eventually(
      async () => machine.sh('grep -lxE "klatch|postgres" /proc/[0-9]*/comm'),
      ({ stdout }) => stdout === '',
    );
  });
});
