import { spawn } from 'node:child_process';
import { chmod, mkdir, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { callServer } from '../../src/cli/core/control-client.ts';
import { exitCodes } from '../../src/cli/core/exit-codes.ts';
import { serverStatus } from '../../src/operations/server/server-status.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { postJson } from '../support/server.ts';
import { Workspace } from './program.ts';

describe('commands to the running server', () => {
  let database: TestDatabase;
  let workspace: Workspace;
  let url: string;

  beforeAll(async () => {
    database = await createTestDatabase();
    workspace = await Workspace.create();
    await workspace.configure(database.target);
    ({ url } = await workspace.serve());
  });

  afterAll(async () => {
    await workspace.remove();
    await database.drop();
  });

  const path = (webhook: string): string => url + new URL(webhook).pathname;

  async function json<Result>(...args: string[]): Promise<Result> {
    const { code, stdout, stderr } = await workspace.run([...args, '--json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout) as Result;
  }

  test('user create makes an account, for people to read and for scripts', async () => {
    const { code, stdout } = await workspace.run(['user', 'create', 'Alice', '--name', 'Alice Example', '--admin']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^id: {3}\d+\nnick: alice\nname: Alice Example\nrole: admin\n$/);
    expect(await json('user', 'create', 'bob')).toMatchObject({ nick: 'bob', name: 'bob', role: 'user' });
  });

  test('status says which server runs and that its database answers; ready ends with 0', async () => {
    const status = await workspace.run(['status']);
    expect(status).toMatchObject({ code: 0, stderr: '' });
    expect(status.stdout).toMatch(
      /^server: +Klatch \S+, pid \d+, ready\nup: +\d+ s, since \S+\nheap: +at most \d+ MiB\nlistens: +http:\/\/127\.0\.0\.1:\d+, public as \S+\n/,
    );
    expect(status.stdout).toMatch(
      /\ndatabase: +PostgreSQL \S+, answers\nwaiting posts: +0\nin flight: +0 deliveries\n/,
    );
    expect(status.stdout).toMatch(/\nhooks: +0 active, 0 failing, 0 parked, 0 paused\npending: +nothing\n$/);
    expect(await json('status')).toMatchObject({ state: 'ready', ready: true, waiting_posts: 0 });
    expect(await workspace.run(['ready'])).toMatchObject({ code: 0, stdout: '', stderr: '' });
    expect(await workspace.run(['ready', '--wait', 'soon'])).toMatchObject({ code: 64 });
  });

  test('group list has every group with what is in it', async () => {
    const { id } = await json<{ id: number }>('group', 'create', 'Listed');
    const listed = await json<{ groups: unknown[]; next: null }>('group', 'list');
    expect(listed.groups).toContainEqual(
      expect.objectContaining({ id, title: 'Listed', members: 0, hooks: 0, messages: 0, archived: false }),
    );
    expect(listed.next).toBeNull();
    const { stdout } = await workspace.run(['group', 'list']);
    expect(stdout).toMatch(/^GROUP +MEMBERS +HOOKS +MESSAGES +ARCHIVED +TITLE\n/);
    expect(stdout).toMatch(new RegExp(`^${id} +0 +0 +0 +no +Listed$`, 'm'));
  });

  test('what the server refuses ends with 1 and its sentence', async () => {
    await workspace.run(['user', 'create', 'carol']);
    const taken = await workspace.run(['user', 'create', 'carol']);
    expect(taken).toMatchObject({ code: 1, stdout: '', stderr: 'klatch: This nick is taken\n' });
    const unknown = await workspace.run(['group', 'info', 'Nowhere']);
    const absent = 'klatch: There is no group Nowhere: look at the list of groups\n';
    expect(unknown).toMatchObject({ code: 1, stderr: absent });
    const owner = await workspace.run(['group', 'create', 'Orphan', '--owner', 'nobody']);
    expect(owner).toMatchObject({ code: 1, stderr: expect.stringContaining('no user with the nick nobody') });
  });

  test('group create and group info show the group, its URL and the health of its hooks', async () => {
    await workspace.run(['user', 'create', 'dora']);
    const about = 'first line\nsecond \u001b[31mline';
    const created = await json<{ id: number; webhook: string }>(
      'group',
      'create',
      'Ops',
      '--about',
      about,
      '--owner',
      'dora',
    );
    const receiver = createHttpServer((request, response) => request.resume().on('end', () => response.end()));
    receiver.listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    try {
      const target = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
      const registered = await postJson(`${path(created.webhook)}/reverse`, { url: target });
      expect(registered.status).toBe(201);
      const { code, stdout } = await workspace.run(['group', 'info', 'Ops']);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^id: +\d+\ntitle: +Ops\nabout: +first line second {2}\[31mline\n/);
      expect(stdout).toMatch(/\nmembers: +1\nmessages: +0\n/);
      expect(stdout).toContain(`webhook:  ${created.webhook}\n`);
      expect(stdout).toMatch(/\nHOOK +STATE +PENDING +URL\n\d+ +active +0 +http:\/\/127\.0\.0\.1:\d+\/hook\n$/);
      expect(await json('group', 'info', String(created.id))).toMatchObject({ about, hooks: [{ url: target }] });
    } finally {
      receiver.close();
      receiver.closeAllConnections();
    }
  });

  test('group token rotate stops the old URL and opens the new one at once', async () => {
    const { webhook } = await json<{ webhook: string }>('group', 'create', 'Rotating');
    // The server has cached the old token after this post.
    expect(await postJson(path(webhook), { text: 'old' })).toMatchObject({ status: 200 });
    const shown = await workspace.run(['group', 'token', 'show', 'Rotating']);
    expect(shown.stdout).toContain(webhook);
    const rotated = await workspace.run(['group', 'token', 'rotate', 'Rotating']);
    expect(rotated.code).toBe(0);
    expect(rotated.stdout).toMatch(/The old URL has stopped working/);
    const fresh = /^webhook: +(\S+)$/m.exec(rotated.stdout)![1]!;
    expect(fresh).not.toBe(webhook);
    expect(await postJson(path(webhook), { text: 'old again' })).toMatchObject({ status: 404 });
    expect(await postJson(path(fresh), { text: 'new' })).toMatchObject({ status: 200 });
  });

  test('they need the data directory alone: mistakes elsewhere in the configuration do not stop them', async () => {
    const broken = await Workspace.create();
    try {
      await broken.write([
        `data-dir = ${JSON.stringify(workspace.dataDir)}`,
        'http.port = wrong',
        'secret = "<SECRET>"',
      ]);
      expect(await broken.run(['user', 'create', 'erin'])).toMatchObject({ code: 0 });
    } finally {
      await broken.remove();
    }
  });

  test('migrate refuses while the server runs, and names it', async () => {
    const { code, stderr } = await workspace.run(['migrate']);
    expect(code).toBe(75);
    expect(stderr).toMatch(
      /^klatch: The data directory .* is in use by another Klatch process \(pid \d+, the user \S+\)/,
    );
  });
});

describe('commands without a server', () => {
  let workspace: Workspace;

  beforeEach(async () => {
    workspace = await Workspace.create();
    await workspace.write([`data-dir = ${JSON.stringify(workspace.dataDir)}`]);
  });

  afterEach(async () => workspace.remove());

  test('end with 69 and say how to start it', async () => {
    const { code, stderr } = await workspace.run(['user', 'create', 'alice']);
    const sentence = `no Klatch runs with the data directory ${workspace.dataDir}: start it with \`klatch serve\``;
    expect({ code, stderr }).toEqual({ code: 69, stderr: `klatch: ${sentence}\n` });
  });

  test('say the same where a killed server has left its socket', async () => {
    await mkdir(workspace.dataDir);
    const left = join(workspace.dataDir, 'control.sock');
    const script = `require('net').createServer().listen(${JSON.stringify(left)}, () => process.kill(process.pid, 'SIGKILL'))`;
    await once(spawn(process.execPath, ['-e', script], { stdio: 'ignore' }), 'exit');
    expect(await workspace.run(['group', 'info', '1'])).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('no Klatch runs'),
    });
  });
});

describe('the control client', () => {
  let workspace: Workspace;
  let server: Server;

  /**
   * Serves a control socket in place of the server. `onRequest` returns the answer to a request. Null: no answer. `hang
   * up`: the connection ends.
   */
  async function serve(onRequest: (line: string) => string | null): Promise<void> {
    await mkdir(workspace.dataDir);
    server = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.once('data', (line) => {
        const answer = onRequest(line.toString());
        if (answer === 'hang up') socket.end();
        else if (answer !== null) socket.write(answer);
      });
    });
    server.listen(join(workspace.dataDir, 'control.sock'));
    await once(server, 'listening');
  }

  beforeEach(async () => {
    workspace = await Workspace.create();
  });

  afterEach(async () => {
    server.close();
    await workspace.remove();
  });

  const call = (timeoutMs: number) =>
    callServer({ dataDir: workspace.dataDir, operation: serverStatus, input: {}, timeoutMs });

  test('gives up on a server that does not answer in time', async () => {
    await serve(() => null);
    await expect(call(50)).rejects.toMatchObject({
      exitCode: exitCodes.unavailable,
      message: expect.stringMatching(/did not answer within 0\.05 s$/),
    });
  });

  test('says so when the server hangs up, or sends without an end', async () => {
    await serve(() => 'hang up');
    await expect(call(5_000)).rejects.toThrow(/ended the connection without an answer$/);
    server.close();
    await rm(workspace.dataDir, { recursive: true });
    await serve(() => 'x'.repeat(2 * 1024 * 1024));
    await expect(call(5_000)).rejects.toThrow(/sent an answer that is too long$/);
  });

  test('reads an answer that comes in pieces', async () => {
    const result = {
      version: '1',
      started_at: 'now',
      pid: 7,
      heap_limit_bytes: 4_496_293_888,
      listeners: ['http://127.0.0.1:9090'],
      metrics_url: null,
      base_uri: 'https://chat.example.org',
      database: 'PostgreSQL',
      database_servers: [],
      ready: true,
      waiting_posts: 0,
      deliveries_in_flight: 0,
      loops: [],
      deliveries: null,
    };
    const answer = `${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n`;
    await serve(() => answer.slice(0, 10));
    server.on('connection', (socket) => socket.once('data', () => setImmediate(() => socket.write(answer.slice(10)))));
    expect(await call(5_000)).toEqual(result);
  });

  test('says what to do when the server is of another version', async () => {
    await serve(() => `${JSON.stringify({ jsonrpc: '2.0', id: 1, result: { version: '0.0.1' } })}\n`);
    await expect(call(5_000)).rejects.toMatchObject({
      exitCode: exitCodes.unavailable,
      message: expect.stringContaining('answers as another version of Klatch does: restart the server'),
    });
  });

  test.each([
    ['database_unavailable', exitCodes.unavailable],
    ['overloaded', exitCodes.unavailable],
    ['stopping', exitCodes.unavailable],
    ['not_member', exitCodes.operationFailed],
  ])('tells "later" from an operation that was refused: %s', async (code, exitCode) => {
    const error = { code: -32032, message: 'The sentence', data: { code } };
    await serve(() => `${JSON.stringify({ jsonrpc: '2.0', id: 1, error })}\n`);
    await expect(call(5_000)).rejects.toMatchObject({ exitCode, message: 'The sentence' });
  });

  test('has a sentence for users who may not speak to the server', async () => {
    await serve(() => null);
    await chmod(workspace.folder, 0o711);
    await chmod(workspace.dataDir, 0o711);
    await chmod(join(workspace.dataDir, 'control.sock'), 0);
    // Root may connect whatever the mode of the socket is, so root becomes another user here. `call` connects in the
    // same tick, so no other code runs as that user.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    const calling = call(5_000);
    if (isRoot) process.seteuid?.(0);
    await expect(calling).rejects.toMatchObject({
      exitCode: exitCodes.notPermitted,
      message: expect.stringMatching(/may not speak to the Klatch with the data directory .*: run the command as root/),
    });
  });
});
