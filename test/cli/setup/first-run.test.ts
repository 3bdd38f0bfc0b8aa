import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../../src/config/load.ts';
import { callAs } from '../../support/call.ts';
import { postJson } from '../../support/server.ts';
import { Program, root } from '../program.ts';

/** The folder of a copy of the files that the first run needs: so ./var of the working tree stays untouched. */
let folder: string;
const started: Program[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'klatch-first-run-'));
  for (const name of ['src', 'client', 'packages', 'etc', 'package.json', 'scripts/first-run.ts']) {
    await cp(join(root, name), join(folder, name), { recursive: true });
  }
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
});

afterAll(async () => {
  for (const { process: wrapper } of started) if (wrapper.exitCode === null) wrapper.kill('SIGTERM');
  await Promise.all(started.map(({ ended }) => ended));
  await rm(folder, { recursive: true, force: true });
});

function firstRun(): Program {
  const run = new Program([process.execPath, join(folder, 'scripts/first-run.ts')], { cwd: '/' });
  started.push(run);
  return run;
}

describe('the first run', () => {
  test('sets up, takes the next port when its own is taken, and shows a webhook that works; the next start goes on', async () => {
    // Port 9090 is in use, by `taken` or by another program of the machine.
    const taken = createServer();
    taken.on('error', () => {});
    taken.listen(9090, '127.0.0.1');
    await Promise.race([once(taken, 'listening'), once(taken, 'error')]);
    try {
      const run = firstRun();
      const token = await run.text(/^Open http:\/\/127\.0\.0\.1:\d+\/#(kll_[\w-]{43})\n/m);
      const webhook = await run.text(/The webhook of the group Lobby:\n {2}(\S+)\n[^]*Stop with Ctrl-C/);
      const { config } = loadConfig(join(folder, 'var/server.conf'), { env: {} });
      expect(config.http.port).toBeGreaterThan(9090);
      expect(config).toMatchObject({ dataDir: join(folder, 'var'), delivery: { allow: ['loopback'] } });
      expect(config.metrics.metricsEnabled).toBe(false);
      expect(config.endpoints.map(({ type }) => type)).toEqual(['websocket', 'tcp']);
      expect(await readFile(config.file, 'utf8')).toMatch(/# .*receivers on this machine.*\n *allow = \["loopback"\]/);
      expect(await postJson(webhook, { text: 'one' })).toMatchObject({ status: 200, body: { id: '1:1' } });
      const { session } = await callAs({ url: config.http.baseUri }, null, 'auth.verify', { link: token });
      expect(session).toBeGreaterThan(0);
      run.process.kill('SIGTERM');
      const { code, stdout } = await run.ended;
      expect(code).toBe(0);
      expect(stdout).toMatch(/Klatch has stopped\.\n$/);
      // The output of the wrapper contains the token, the log of the server never does.
      const log = stdout.split('\n').filter((line) => line.startsWith('{'));
      expect(log.join('\n')).not.toContain(webhook.split('/').at(-1));
      expect(log.join('\n')).not.toContain(token);

      const again = firstRun();
      // The owner has already signed in, so the printed URL contains no token.
      await again.text(/^(Open http:\/\/127\.0\.0\.1:\d+\/)\n/m);
      expect(await again.text(/The webhook of the group Lobby:\n {2}(\S+)\n/)).toBe(webhook);
      expect(await postJson(webhook, { text: 'two' })).toMatchObject({ status: 200, body: { id: '1:2' } });
      again.process.kill('SIGINT');
      expect(await again.ended).toMatchObject({ code: 0 });
    } finally {
      taken.close();
    }
  });

  test("ends with the server's own status and sentence when the server cannot start", async () => {
    const file = join(folder, 'var/server.conf');
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replace(/^secret = .*$/m, 'secret = "Zx8wVb5nMq2rTk7yPl4jHs9dFg3cUa6o"'));
    const { code, stderr } = await firstRun().ended;
    expect(code).toBe(77);
    expect(stderr).toMatch(/secret differs/);
    await writeFile(file, text);
  });
});
