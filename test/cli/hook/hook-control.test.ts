import { PassThrough } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { CommandContext } from '../../../src/cli/core/context.ts';
import { runCommandLine } from '../../../src/cli/program.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { Receiver } from '../../support/receiver.ts';
import { postJson } from '../../support/server.ts';
import { Workspace } from '../program.ts';

let database: TestDatabase;
let workspace: Workspace;
let url: string;
let receiver: Receiver;
let group: { id: number; url: string };
let hook: string;
let secret: string;

beforeAll(async () => {
  database = await createTestDatabase();
  workspace = await Workspace.create();
  await workspace.configure(database.target, ['delivery.retry = [1h]']);
  ({ url } = await workspace.serve());
});
afterAll(async () => {
  await workspace.remove();
  await database.drop();
});
beforeEach(async () => {
  receiver = await Receiver.start();
  const { stdout } = await klatch(['group', 'create', 'Alerts', '--json']);
  const { id, webhook } = JSON.parse(stdout) as { id: number; webhook: string };
  group = { id, url: url + new URL(webhook).pathname };
  const { body } = await postJson(`${group.url}/reverse`, { url: receiver.url('/hook?key=hidden') });
  hook = String(body.id);
  secret = body.secret;
});
afterEach(() => receiver.stop());

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process, against the real server: forty processes would take two cores a minute. */
async function klatch(args: readonly string[]): Promise<Ended> {
  const output = new PassThrough();
  const errors = new PassThrough();
  const context = { env: {}, programBinDir: '/nowhere/bin', input: process.stdin, output, errorOutput: errors };
  const code = await runCommandLine([...args, '--config', workspace.file], context as unknown as CommandContext);
  const text = (stream: PassThrough): string => String(stream.read() ?? '');
  return { code, stdout: text(output), stderr: text(errors) };
}

/** Runs a command about the hook; checks that it prints no secret path. */
async function run(command: string, ...rest: string[]): Promise<Ended> {
  const ended = await klatch(['hook', command, hook, ...rest]);
  expect(ended.stdout + ended.stderr).not.toContain('hidden');
  return ended;
}

const says = (stdout: string) => ({ code: 0, stdout: `${stdout}\n`, stderr: '' });

/** Posts messages and waits until the delivery log of the hook has this many rows. */
async function deliver(texts: readonly string[], rows: number): Promise<void> {
  for (const text of texts) expect(await postJson(group.url, { text })).toMatchObject({ status: 200 });
  await eventually(
    () => database.query((sql) => sql`select from delivery_attempt where hook_id = ${hook}`),
    (found) => found.length === rows,
  );
}

describe('klatch hook', () => {
  test('pause and resume say what waits, and do it', async () => {
    const paused = `Reverse webhook ${hook} of group ${group.id} is paused; 0 messages are waiting.`;
    expect(await run('pause')).toMatchObject(says(paused));
    await postJson(group.url, { text: 'waits' });
    expect(await run('pause')).toMatchObject(says(paused.replace('0 messages are', '1 message is')));
    expect((await klatch(['hook', 'list', '--state', 'paused'])).stdout).toMatch(new RegExp(`^${hook} `, 'm'));
    expect(receiver.arrivals).toHaveLength(0);
    const resumed = `Reverse webhook ${hook} of group ${group.id} goes on at once; 1 message is pending.`;
    expect(await run('resume')).toMatchObject(says(resumed));
    await receiver.received(1);
  });

  test('ping tells what the target answers, and ends with 1 when the ping was not delivered', async () => {
    const target = `127.0.0.1:${receiver.port}`;
    const { code, stdout, stderr } = await run('ping');
    const sentence = `^The target of reverse webhook ${hook}, ${target.replaceAll('.', '\\.')}, answered 200 within \\d+ ms\\.\\n$`;
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: expect.stringMatching(new RegExp(sentence)),
      stderr: '',
    });
    const soon =
      'klatch: A reverse webhook is pinged once in 5 seconds; this ping was not sent, please repeat it later\n';
    expect(await run('ping')).toMatchObject({ code: 1, stdout: '', stderr: soon });
    receiver.answer = () => 503;
    const forget = () => database.query((sql) => sql`update reverse_hook set pinged_at = null`);
    await forget();
    const why = `klatch: the ping of reverse webhook ${hook} to ${target} failed: the target answered 503\n`;
    expect(await run('ping')).toMatchObject({ code: 1, stdout: '', stderr: why });
    await forget();
    const asJson = await run('ping', '--json');
    expect(asJson).toMatchObject({ code: 1, stderr: why });
    expect(JSON.parse(asJson.stdout)).toEqual({
      id: Number(hook),
      group: group.id,
      host: target,
      delivered: false,
      category: 'status',
      code: 503,
      duration_ms: expect.any(Number),
    });
  });

  test('log is a table with ages and sentences, a page at a time', async () => {
    expect(await run('log')).toMatchObject(says('The delivery log has no attempts of it.'));
    await deliver(['one', 'two'], 2);
    receiver.answer = () => 503;
    await deliver(['three'], 3);
    const { stdout } = await run('log', '--limit', '2');
    const lines = [
      'WHEN +MESSAGE +ATTEMPT +TOOK +RESULT',
      `\\d+ s ago +${group.id}:3 +1 +\\d+ ms +failed: the target answered 503`,
      `\\d+ s ago +${group.id}:2 +1 +\\d+ ms +delivered, the target answered 200`,
      '',
      'There are more: repeat the command with --before (\\S+)',
    ];
    const page = new RegExp(`^${lines.join('\n')}\n$`);
    expect(stdout).toMatch(page);
    const rest = await run('log', '--before', page.exec(stdout)![1]!, '--json');
    expect(JSON.parse(rest.stdout)).toMatchObject({
      id: Number(hook),
      group: group.id,
      attempts: [{ message_id: `${group.id}:1`, outcome: 'delivered' }],
      next: null,
    });
    const seqsOf = async (...filter: string[]): Promise<number[]> => {
      const { attempts } = JSON.parse((await run('log', '--json', ...filter)).stdout) as {
        attempts: { seq: number }[];
      };
      return attempts.map(({ seq }) => seq);
    };
    expect(await seqsOf('--outcome', 'failed')).toEqual([3]);
    expect(await seqsOf('--outcome', 'failed,delivered', '--since', '1h')).toEqual([3, 2, 1]);
    expect(await seqsOf('--message', `${group.id}:2`)).toEqual([2]);
    expect((await run('discard-backlog')).stdout).toBe(
      `1 message is dropped: reverse webhook ${hook} of group ${group.id} goes on with the next one.\n`,
    );
    expect((await run('log')).stdout).toMatch(/ s ago +\d+:3 +0 +0 ms +dropped on request\n/);
    expect(await run('discard-backlog')).toMatchObject(
      says(`Reverse webhook ${hook} of group ${group.id} has nothing to drop.`),
    );
  });

  test('redeliver sends again from a message, a time or an age on, or single messages', async () => {
    await deliver(['one', 'two', 'three'], 3);
    const again = (from: number, count: string) =>
      says(
        `Reverse webhook ${hook} of group ${group.id} sends everything from ${group.id}:${from} on again; ${count} pending.`,
      );
    const preview = `Reverse webhook ${hook} of group ${group.id} would send 1 message from ${group.id}:3 on. Nothing was sent.`;
    expect(await run('redeliver', '--from', `${group.id}:3`, '--dry-run')).toMatchObject(says(preview));
    const none = `Reverse webhook ${hook} of group ${group.id} would send nothing.`;
    expect(await run('redeliver', '--from', '2099-01-01T00:00:00Z', '--dry-run')).toMatchObject(says(none));
    expect(receiver.seqs()).toEqual([1, 2, 3]);
    expect(await run('redeliver', '--from', `${group.id}:3`)).toMatchObject(again(3, '1 message is'));
    await receiver.received(4);
    expect(receiver.seqs()).toEqual([1, 2, 3, 3]);
    await eventually(
      () => klatch(['hook', 'info', hook]),
      ({ stdout }) => /^pending: +0$/m.test(stdout),
    );
    expect(await run('redeliver', '--from', '1h')).toMatchObject(again(1, '3 messages are'));
    await receiver.received(7);
    await run('pause');
    const late = `Group ${group.id} has no message so late: nothing is sent again.`;
    await eventually(
      () => klatch(['hook', 'info', hook]),
      ({ stdout }) => /^pending: +0$/m.test(stdout),
    );
    expect(await run('redeliver', '--from', '2099-01-01T00:00:00Z')).toMatchObject(says(late));
    const only = await run('redeliver', '--only', `${group.id}:1,${group.id}:3`);
    expect(only).toMatchObject(
      says(`Reverse webhook ${hook} of group ${group.id} sends them again; 2 messages are pending.`),
    );
  });

  test('rotate-secret shows the new secret once', async () => {
    const { code, stdout } = await run('rotate-secret');
    expect(code).toBe(0);
    const rotated = /^secret: +(whsec_\S+)$/m.exec(stdout)?.[1];
    expect(rotated).not.toBe(secret);
    expect(stdout).toContain('for 24 hours');
    const info = await klatch(['hook', 'info', hook]);
    expect(info.stdout).toMatch(/^old secret until: +\S+Z$/m);
    expect(info.stdout).not.toContain('whsec_');
    await database.query((sql) => sql`update reverse_hook set old_secret_until = now() - interval '1 second'`);
    expect((await klatch(['hook', 'info', hook])).stdout).not.toContain('old secret');
  });

  test('remove ends a hook for good', async () => {
    expect(await run('remove')).toMatchObject(
      says(`Reverse webhook ${hook} of group ${group.id} is removed: nothing is sent to it any more.`),
    );
    const removed = {
      code: 1,
      stdout: '',
      stderr: `klatch: Reverse webhook ${hook} is removed: restore it if a 410 of its target removed it, else register it again\n`,
    };
    for (const command of ['remove', 'pause', 'resume', 'ping', 'discard-backlog', 'rotate-secret']) {
      expect(await run(command)).toMatchObject(removed);
    }
    expect(await run('redeliver', '--from', '1h')).toMatchObject(removed);
    expect(await run('log')).toMatchObject({ code: 0 });
    expect((await klatch(['hook', 'info', hook])).stdout).toMatch(
      /^removed: +\S+Z, by its group or an administrator$/m,
    );
  });

  test.each([
    [['pause'], "missing required argument 'hook'"],
    [['ping', 'five'], 'Give a whole number from 1 to 2147483647'],
    [['log', '1', '--limit', '101'], 'Give a whole number from 1 to 100'],
    [['log', '1', '--outcome', 'odd'], 'It has to name some of delivered, failed'],
    [['log', '1', '--since', 'yesterday'], '--since: give a time with its zone'],
    [['redeliver', '1'], 'give one of --from and --only'],
    [['redeliver', '1', '--from', '1h', '--only', '1:1'], 'give one of --from and --only'],
    ...['yesterday', '90m', '2026-11-20', ''].map(
      (from) => [['redeliver', '1', '--from', from], 'or how long ago such as 1h (s, min, h or d)'] as const,
    ),
  ])('ends with 64 for what it cannot read: %j', async (args, sentence) => {
    const { code, stdout, stderr } = await klatch(['hook', ...args]);
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toContain(sentence);
  });

  test.each([
    [['pause', '77777'], 'There is no reverse webhook 77777: look at the list of them'],
    [['log', '77777'], 'There is no reverse webhook 77777: look at the list of them'],
    [
      ['log', 'HOOK', '--before', 'never'],
      'before: must be the place that the page before ended at, or a time such as "2026-11-20T08:00:00Z"',
    ],
    [
      ['redeliver', 'HOOK', '--only', '1000000:1'],
      'only: 1000000:1 is not the id of a message of this group; the delivery log shows such ids',
    ],
  ])('ends with 1 and the reason for what the server refuses: %j', async (args, sentence) => {
    const words = args.map((word) => (word === 'HOOK' ? hook : word));
    expect(await klatch(['hook', ...words])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `klatch: ${sentence}\n`,
    });
  });
});
