import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { Receiver } from '../../support/receiver.ts';
import { postJson } from '../../support/server.ts';
import { Workspace } from '../program.ts';

interface Group {
  readonly id: number;
  readonly url: string;
}

describe('the commands about reverse webhooks', () => {
  let database: TestDatabase;
  let workspace: Workspace;
  let receiver: Receiver;
  let url: string;
  let status: number;

  beforeAll(async () => {
    database = await createTestDatabase();
    workspace = await Workspace.create();
    await workspace.configure(database.target, ['delivery.retry = [1h]']);
    ({ url } = await workspace.serve());
    receiver = await Receiver.start(() => status);
  });
  afterAll(async () => {
    await workspace.remove();
    await database.drop();
    await receiver.stop();
  });

  async function createGroup(title: string): Promise<Group> {
    const { stdout } = await workspace.run(['group', 'create', title, '--json']);
    const { id, webhook } = JSON.parse(stdout) as { id: number; webhook: string };
    return { id, url: url + new URL(webhook).pathname };
  }

  async function register(group: Group, query: string): Promise<number> {
    const { body } = await postJson(`${group.url}/reverse`, { url: receiver.url(`/hook?${query}`) });
    return body.id as number;
  }

  /** Runs the program until its output matches the pattern. Resolves with that output. */
  async function shows(pattern: RegExp, ...args: string[]): Promise<string> {
    const { stdout } = await eventually(
      () => workspace.run(args),
      (ended) => pattern.test(ended.stdout),
    );
    return stdout;
  }

  test('show a failing hook in the list by its host, and in its information with everything', async () => {
    status = 503;
    const group = await createGroup('Failing');
    const id = await register(group, 'key=hidden');
    await postJson(group.url, { text: 'lost' });
    await postJson(group.url, { text: 'waiting' });
    const list = await shows(/ failing /, 'hook', 'list', '--group', 'Failing');
    expect(list).toMatch(/^HOOK +GROUP +STATE +PENDING +OLDEST +HOST +LAST ERROR\n/);
    const line = `^${id} +${group.id} +failing +2 +\\d+ s +127\\.0\\.0\\.1:${receiver.port} +the target answered 503, \\d+ s ago$`;
    expect(list).toMatch(new RegExp(line, 'm'));
    expect(list).not.toContain('hidden');

    const { stdout } = await workspace.run(['hook', 'info', String(id)]);
    const lines = [
      `id: +${id}`,
      `group: +${group.id} \\(Failing\\)`,
      `url: +${receiver.url('/hook').replaceAll('.', '\\.')}\\?key=hidden`,
      'format: +klatch',
      'order: +strict',
      'batch: +1',
      'signature: +v1',
      'skip: +nothing',
      'state: +failing',
      'start: +0',
      'cursor: +0 of 2',
      'pending: +2',
      'oldest pending: +\\S+Z, \\d+ s ago',
      'failing since: +\\S+Z, \\d+ s ago',
      'failures: +1',
      'next attempt: +\\S+Z',
      'last success: +-',
      'last error: +the target answered 503, \\d+ s ago',
      'error details: +\\S+Z, status 503',
      `\\S+Z +${group.id}:1 +1 +failed +status 503 +\\d+ ms`,
    ];
    for (const each of lines) expect(stdout).toMatch(new RegExp(`^${each}$`, 'm'));
    expect(stdout).not.toContain('whsec_');
  });

  test('restore what a 410 removed, and say what is being sent', async () => {
    status = 410;
    const group = await createGroup('Gone');
    const id = await register(group, 'a');
    await postJson(group.url, { text: 'gone' });
    const removed = await shows(/ removed /, 'hook', 'list', '--group', 'Gone', '--state', 'removed');
    expect(removed).toMatch(new RegExp(`^${id} +${group.id} +removed +1 .*the target answered 410`, 'm'));
    const information = await workspace.run(['hook', 'info', String(id)]);
    expect(information.stdout).toMatch(/^removed: +\S+Z, by a 410 of its target\nrestorable: +until \S+Z$/m);
    expect(information.stdout).toMatch(/ unregistered +status 410 /);
    const listed = await workspace.run(['hook', 'list', '--group', 'Gone']);
    expect(listed).toMatchObject({ code: 0, stdout: 'There is no such reverse webhook.\n' });
    status = 200;
    const sent = receiver.arrivals.length;
    const restored = await workspace.run(['hook', 'restore', String(id)]);
    const sentence = `Reverse webhook ${id} of group ${group.id} is back: 1 message that it has missed is being sent to 127.0.0.1:${receiver.port}.\n`;
    expect(restored).toMatchObject({ code: 0, stdout: sentence, stderr: '' });
    await receiver.received(sent + 1);
    const again = await workspace.run(['hook', 'restore', String(id)]);
    const refusal = `klatch: Reverse webhook ${id} is not removed: there is nothing to restore\n`;
    expect(again).toMatchObject({ code: 1, stdout: '', stderr: refusal });
  });

  test('are paged, and say when there is more', async () => {
    status = 200;
    const group = await createGroup('Many');
    const ids = [await register(group, '1'), await register(group, '2'), await register(group, '3')];
    const first = await workspace.run(['hook', 'list', '--group', 'Many', '--limit', '2']);
    expect(first.stdout).toMatch(new RegExp(`\n\nThere are more: repeat the command with --after ${ids[1]}\n$`));
    const rest = ['hook', 'list', '--group', 'Many', '--after', String(ids[1]), '--json'];
    const { hooks, next } = JSON.parse((await workspace.run(rest)).stdout) as { hooks: { id: number }[]; next: null };
    expect({ ids: hooks.map(({ id }) => id), next }).toEqual({ ids: ids.slice(2), next: null });
  });

  test.each([
    [['hook', 'info', 'five'], 'Give a whole number from 1 to 2147483647'],
    [['hook', 'list', '--limit', '1001'], 'Give a whole number from 1 to 1000'],
    [['hook', 'list', '--after', '-1'], 'Give a whole number from 0 on'],
    [['hook', 'list', '--state', 'odd'], 'Allowed choices are active, failing, parked, paused, removed'],
    [['hook', 'restore'], "missing required argument 'hook'"],
  ])('end with 64 for what they cannot read: %j', async (args, sentence) => {
    const { code, stdout, stderr } = await workspace.run(args);
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toContain(sentence);
  });

  test('end with 1 for a hook that there is not', async () => {
    const stderr = 'klatch: There is no reverse webhook 77777: look at the list of them\n';
    const unknown = { code: 1, stdout: '', stderr };
    expect(await workspace.run(['hook', 'info', '77777'])).toMatchObject(unknown);
    expect(await workspace.run(['hook', 'restore', '77777'])).toMatchObject(unknown);
  });
});
