import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { Workspace } from '../program.ts';

/**
 * A waiting time in seconds, longer than any of these tests may take: a command that ends has not waited for all of it.
 */
const LONG_S = '300';

let database: TestDatabase;
let workspace: Workspace;

beforeEach(async () => {
  database = await createTestDatabase();
  workspace = await Workspace.create();
  await workspace.configure(database.target);
});

afterEach(async () => {
  await workspace.remove();
  await database.drop();
});

async function takePort(): Promise<{ port: number; taken: Server }> {
  const taken = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  await once(taken, 'listening');
  return { port: (taken.address() as AddressInfo).port, taken };
}

describe('klatch ready --wait --pid', () => {
  test('ends when that process is ready', async () => {
    const server = workspace.start(['serve'], { KLATCH_START_ID: 'one' });
    const ready = await workspace.run(['ready', '--wait', LONG_S, '--pid', String(server.pid)], {
      KLATCH_START_ID: 'one',
    });
    expect(ready).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });

  test('ends early with the sentence and the status that the server has failed with', async () => {
    const { port, taken } = await takePort();
    try {
      await workspace.configure(database.target, [`http.port = ${port}`]);
      const server = workspace.start(['serve'], { KLATCH_START_ID: 'one' });
      const ready = await workspace.run(['ready', '--wait', LONG_S, '--pid', String(server.pid)], {
        KLATCH_START_ID: 'one',
      });
      expect(ready.code).toBe(73);
      expect(ready.stderr).toMatch(
        new RegExp(`^klatch: another program listens on 127\\.0\\.0\\.1:${port}.*: node \\(pid ${process.pid}\\)`),
      );
    } finally {
      taken.close();
      await once(taken, 'close');
    }
  });

  test('names the keys and their lines when the server is not configured', async () => {
    await workspace.write(['secret = "<SERVER_SECRET>"', 'data-dir = "data"', 'http.base-uri = "<BASE_URI>"']);
    const server = workspace.start(['serve']);
    const { code, stderr } = await workspace.run(['ready', '--wait', LONG_S, '--pid', String(server.pid)]);
    expect(code).toBe(78);
    expect(stderr).toMatch(/server\.conf:1:\d+: secret: still holds its placeholder/);
    expect(stderr).toMatch(/server\.conf:3:\d+: http\.base-uri: still holds its placeholder/);
    expect(stderr.match(/-> /g)).toHaveLength(1);
  });

  test('takes no older failure for that of this start, be it of the same process id', async () => {
    const { port, taken } = await takePort();
    try {
      await workspace.configure(database.target, [`http.port = ${port}`]);
      const server = workspace.start(['serve'], { KLATCH_START_ID: 'old' });
      await server.ended;
      await workspace.configure(database.target, ['nobody-knows = 1', 'http.port = "<PORT>"']);
      const ready = await workspace.run(['ready', '--wait', LONG_S, '--pid', String(server.pid)], {
        KLATCH_START_ID: 'new',
      });
      expect(ready.code).toBe(78);
      expect(ready.stderr).not.toMatch(/another program listens/);
      const waiting = await workspace.run(['ready', '--wait', '1', '--pid', String(process.pid)]);
      expect(waiting).toMatchObject({ code: 69, stderr: expect.stringMatching(/no Klatch runs/) });
    } finally {
      taken.close();
      await once(taken, 'close');
    }
  });

  test('says that another process has the data directory', async () => {
    const { server } = await workspace.serve();
    const second = workspace.start(['serve']);
    const ready = await workspace.run(['ready', '--wait', LONG_S, '--pid', String(second.pid)]);
    expect(ready).toMatchObject({
      code: 75,
      stderr: expect.stringContaining(`in use by another process (pid ${server.pid})`),
    });
  });

  test('says that the server was killed before it was ready', async () => {
    const { server } = await workspace.serve();
    await server.stop();
    const { code, stderr } = await workspace.run(['ready', '--wait', LONG_S, '--pid', String(server.pid)]);
    expect({ code, stderr }).toEqual({ code: 69, stderr: 'klatch: the server was killed before it was ready\n' });
  });
});

describe('klatch ready --wait', () => {
  test('ends early when a server fails while it waits, and goes by no older failure', async () => {
    const { port, taken } = await takePort();
    try {
      await workspace.configure(database.target, [`http.port = ${port}`]);
      await workspace.run(['serve']);
      const old = await workspace.run(['ready', '--wait', '1']);
      expect(old).toMatchObject({ code: 69, stderr: expect.stringMatching(/no Klatch runs/) });
      const waiting = workspace.start(['ready', '--wait', LONG_S]);
      // `ready` ignores failures of servers from before its own start. So the test starts servers, which fail, until
      // `ready` ends.
      const end = waiting.ended.then(() => 'over' as const);
      while ((await Promise.race([workspace.run(['serve']), end])) !== 'over');
      expect(await waiting.ended).toMatchObject({ code: 73, stderr: expect.stringMatching(/another program listens/) });
    } finally {
      taken.close();
      await once(taken, 'close');
    }
  });
});
