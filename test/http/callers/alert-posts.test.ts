import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { callAs } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { Receiver } from '../../support/receiver.ts';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { LiveClient } from '../../live/client.ts';
import { joined } from '../../operations/conversation-calls.ts';
import { storedMessages } from '../wire.ts';

let server: TestServer;
let group: TestGroup;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.stop());
beforeEach(async () => {
  group = await server.createGroup();
});

interface Sent {
  readonly query?: string;
  readonly headers?: Record<string, string>;
  readonly to?: TestGroup;
}

/** Posts to a group. Resolves to the answer. */
async function send(body: unknown, { query = '', headers = {}, to = group }: Sent = {}) {
  const answer = await fetch(`${to.webhook}${query}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

/** Posts to a group. Resolves to the seq of the message in the answer. */
async function tell(body: unknown, sent: Sent = {}): Promise<number> {
  const answer = await send(body, sent);
  expect([answer.status, answer.body]).toEqual([
    200,
    { status: 'Ok', ok: true, success: true, id: expect.stringMatching(`^${(sent.to ?? group).id}:\\d+$`) },
  ]);
  return Number(String(answer.body['id']).split(':')[1]);
}

const texts = async (of = group): Promise<string[]> => (await storedMessages(server, of)).map(({ text }) => text);

/** Moves the recorded times of alerts back by this many minutes. */
const makeQuiet = (minutes: number): Promise<unknown> =>
  server.database.query(
    (sql) => sql`
      update alert set posted_at = posted_at - ${minutes}::int * interval '1 minute' where conversation_id = ${group.id}`,
  );

type Instance = readonly [name: string, start: string, end?: string];
const DAY = '2026-11-22';

/** The post of an Alertmanager about its group HighCPU. An instance with an end is resolved. */
const alertmanager = (...instances: readonly Instance[]): object => ({
  version: '4',
  receiver: 'klatch',
  status: instances.some(([, , end]) => end === undefined) ? 'firing' : 'resolved',
  groupKey: '{}:{alertname="HighCPU"}',
  groupLabels: { alertname: 'HighCPU' },
  alerts: instances.map(([name, start, end]) => ({
    status: end === undefined ? 'firing' : 'resolved',
    labels: { alertname: 'HighCPU', instance: name },
    annotations: {},
    startsAt: `${DAY}T${start}:00Z`,
    endsAt: end === undefined ? '0001-01-01T00:00:00Z' : `${DAY}T${end}:00Z`,
    fingerprint: `f-${name}`,
  })),
});

const kuma = (status: 0 | 1, time: string, msg: string, name = 'web'): object => ({
  heartbeat: { monitorID: 7, status, time: `${DAY} ${time}:00`, msg },
  monitor: { id: 7, name, url: 'https://web.example' },
  msg: `[web] ${msg}`,
});

describe('a group of Alertmanager', () => {
  test('is one message from its first alert to its end, and lines for what is new', async () => {
    expect(await tell(alertmanager(['web-1', '10:02']))).toBe(1);
    expect(await tell(alertmanager(['web-1', '10:02']))).toBe(1);
    expect(await texts()).toEqual(['🔴 HighCPU (1 firing)\ninstance=web-1 · since 10:02 UTC']);
    expect(await tell(alertmanager(['web-1', '10:02'], ['web-2', '10:05']))).toBe(1);
    const two = '🔴 HighCPU (2 firing)\ninstance=web-1 · since 10:02 UTC\ninstance=web-2 · since 10:05 UTC';
    const line = '🔴 HighCPU (2 firing)\ninstance=web-2 · since 10:05 UTC';
    expect(await texts()).toEqual([two, line]);
    // When one of the instances is resolved, the server only edits the message.
    expect(await tell(alertmanager(['web-1', '10:02'], ['web-2', '10:05', '10:10']))).toBe(1);
    const mixed =
      '🔴 HighCPU (1 firing, 1 resolved)\n🔴 instance=web-1 · since 10:02 UTC\n🟢 instance=web-2 · 10:05 to 10:10 UTC';
    expect(await texts()).toEqual([mixed, line]);
    expect(await tell(alertmanager(['web-1', '10:02', '10:20']))).toBe(1);
    const over = '🟢 HighCPU resolved (2 alerts)\ninstance=web-1 · 10:02 to 10:20 UTC';
    expect(await texts()).toEqual([over, line, '🟢 HighCPU resolved (2 alerts)']);
    expect(await tell(alertmanager(['web-1', '10:02', '10:20']))).toBe(1);
    expect(await tell(alertmanager(['web-1', '11:00']))).toBe(4);
    expect(await texts()).toEqual([
      over,
      line,
      '🟢 HighCPU resolved (2 alerts)',
      '🔴 HighCPU (1 firing)\ninstance=web-1 · since 11:00 UTC',
    ]);
  });

  test('is counted by all that is known of it where a node of a pair knows a part', async () => {
    await tell(alertmanager(['web-1', '10:02']));
    await tell(alertmanager(['web-2', '10:05']));
    expect(await texts()).toEqual([
      '🔴 HighCPU (2 firing)\ninstance=web-2 · since 10:05 UTC\n… and 1 more',
      '🔴 HighCPU (2 firing)\ninstance=web-2 · since 10:05 UTC',
    ]);
    // The sender of this post does not know that web-1 is resolved.
    await tell(alertmanager(['web-1', '10:02', '10:20'], ['web-2', '10:05']));
    await tell(alertmanager(['web-1', '10:02'], ['web-2', '10:05'], ['web-3', '10:25']));
    expect((await texts())[0]).toBe(
      '🔴 HighCPU (2 firing, 1 resolved)\n🔴 instance=web-2 · since 10:05 UTC\n🔴 instance=web-3 · since 10:25 UTC\n' +
        '🟢 instance=web-1',
    );
  });

  test('that two senders report at once is one message', async () => {
    const reported = alertmanager(['web-1', '10:02'], ['web-2', '10:05']);
    expect(await Promise.all([tell(reported), tell(reported)])).toEqual([1, 1]);
    expect(await texts()).toHaveLength(1);
    const ends = alertmanager(['web-1', '10:02', '10:20'], ['web-2', '10:05', '10:20']);
    expect(await Promise.all([tell(ends), tell(ends), tell(reported)])).toEqual([1, 1, 1]);
    expect(await texts()).toEqual([
      '🟢 HighCPU resolved (2 alerts)\ninstance=web-1 · 10:02 to 10:20 UTC\ninstance=web-2 · 10:05 to 10:20 UTC',
      '🟢 HighCPU resolved (2 alerts)',
    ]);
  });

  test('that still fires is told again after an hour without a message, and not before', async () => {
    await tell(alertmanager(['web-1', '10:02']));
    await makeQuiet(59);
    expect(await tell(alertmanager(['web-1', '10:02']))).toBe(1);
    expect(await texts()).toHaveLength(1);
    await makeQuiet(1);
    const repeat = (): Promise<number> => tell(alertmanager(['web-1', '10:02']));
    expect(await Promise.all([repeat(), repeat()])).toEqual([1, 1]);
    expect((await texts()).slice(1)).toEqual([`🔴 HighCPU (1 firing) · still firing since ${DAY} 10:02 UTC`]);
  });

  test('is another one in another group', async () => {
    const other = await server.createGroup('Other');
    await tell(alertmanager(['web-1', '10:02']));
    expect(await tell(alertmanager(['web-1', '10:02', '10:20']), { to: other })).toBe(1);
    expect(await texts(other)).toEqual(['🟢 HighCPU resolved\ninstance=web-1 · 10:02 to 10:20 UTC']);
    expect(await texts()).toEqual(['🔴 HighCPU (1 firing)\ninstance=web-1 · since 10:02 UTC']);
  });
});

test('a group of Grafana with a title of its own is said to be resolved', async () => {
  const titled = (reported: object): object => ({
    ...reported,
    orgId: 1,
    title: 'web-1 is busy',
    message: 'Call somebody.',
  });
  await tell(titled(alertmanager(['web-1', '10:02'])));
  expect(await tell(titled(alertmanager(['web-1', '10:02', '10:20'])))).toBe(1);
  expect(await texts()).toEqual(['🟢 resolved · web-1 is busy\nCall somebody.', '🟢 resolved · web-1 is busy']);
});

test('a monitor of Uptime Kuma keeps the moment at which it went down, and its end is told with what it says', async () => {
  expect(await tell(kuma(0, '10:02', 'ECONNREFUSED'))).toBe(1);
  expect(await tell(kuma(0, '10:30', 'timeout'))).toBe(1);
  const down = 'web is down\nhttps://web.example\ntimeout · since 10:02 UTC';
  expect(await texts()).toEqual([`🔴 ${down}`]);
  expect(await tell(kuma(1, '10:40', '200 - OK'))).toBe(1);
  const up = '🟢 web is up\nhttps://web.example\n200 - OK · since 10:40 UTC';
  expect(await tell(kuma(1, '10:41', '200 - OK'))).toBe(1);
  expect(await texts()).toEqual([`🟢 resolved · ${down}`, up]);
  expect(await tell(kuma(0, '11:00', 'timeout'))).toBe(3);
});

test('monitors of two installations of Uptime Kuma with one number are two alerts', async () => {
  expect(await tell(kuma(0, '10:02', 'ECONNREFUSED'))).toBe(1);
  expect(await tell(kuma(0, '10:03', 'timeout', 'mail'))).toBe(2);
  expect(await tell(kuma(1, '10:04', '200 - OK', 'mail'))).toBe(2);
  expect(await texts()).toEqual([
    expect.stringMatching(/^🔴 web is down/),
    expect.stringMatching(/^🟢 resolved · mail is down/),
    expect.stringMatching(/^🟢 mail is up/),
  ]);
});

describe('a post of ours with key and state', () => {
  const disk = (state: unknown, text: string, key: unknown = 'disk'): object => ({ text, key, state });

  test('is edited while it fires, and its end is a message with the text as it came', async () => {
    expect(await tell(disk('firing', 'Disk 91 % full'))).toBe(1);
    expect(await tell(disk('firing', ' Disk 95 % full\n'))).toBe(1);
    expect(await texts()).toEqual([' Disk 95 % full\n']);
    await makeQuiet(60);
    await tell(disk('firing', 'Disk 96 % full'));
    expect((await texts())[1]).toMatch(/^Disk 96 % full · still firing since (?:\S+ )?\d\d:\d\d UTC$/);
    expect(await tell(disk('resolved', 'Disk  is &lt; 80 %\n'))).toBe(1);
    expect(await tell(disk('resolved', 'Disk 70 %'))).toBe(1);
    expect((await texts()).filter((_, n) => n !== 1)).toEqual(['🟢 resolved · Disk 96 % full', 'Disk  is &lt; 80 %\n']);
    expect(await tell(disk('firing', 'Disk 99 % full'))).toBe(4);
    expect(await tell(disk('resolved', 'never seen', 'other'))).toBe(5);
  });

  test.each<[string, object]>([
    ['another state', disk('warning', 'x')],
    ['no state', { text: 'x', key: 'disk' }],
    ['a key that is no text', disk('firing', 'x', 7)],
    ['an empty key', disk('firing', 'x', ' ')],
  ])('is a message like any other with %s', async (_name, body) => {
    expect([await tell(body), await tell(body)]).toEqual([1, 2]);
    expect(await texts()).toEqual(['x', 'x']);
  });

  test('is a message like any other where a form carries files', async () => {
    for (const seq of [1, 2]) {
      const form = new FormData();
      form.set('payload', JSON.stringify(disk('firing', 'with a file')));
      form.set('file', new Blob(['graph']), 'graph.txt');
      const answer = await fetch(group.webhook, { method: 'POST', body: form });
      expect(await answer.json()).toMatchObject({ id: `${group.id}:${seq}` });
    }
    const form = new FormData();
    form.set('payload', JSON.stringify(disk('firing', 'without')));
    for (const seq of [3, 3])
      expect(await (await fetch(group.webhook, { method: 'POST', body: form })).json()).toMatchObject({
        id: `${group.id}:${seq}`,
      });
  });

  test('is told once with its idempotency key, and its hops are counted', async () => {
    const keyed = { headers: { 'idempotency-key': 'k', 'klatch-hops': '1' } };
    await tell(disk('firing', 'full'));
    expect(await tell(disk('resolved', 'over'), keyed)).toBe(1);
    expect(await tell(disk('firing', 'full again'))).toBe(3);
    expect(await tell(disk('resolved', 'over'), keyed)).toBe(1);
    expect((await send(disk('resolved', 'another'), keyed)).status).toBe(422);
    expect((await storedMessages(server, group)).map(({ text, hops }) => [text, hops])).toEqual([
      ['🟢 resolved · full', 0],
      ['over', 2],
      ['full again', 0],
    ]);
    expect((await send(disk('resolved', 'x'), { headers: { 'klatch-hops': '99' } })).status).toBe(508);
  });

  test('whose message was deleted gets a new one at its next change', async () => {
    const owner = await joined(server, `owner${group.id}`, group.id, 'owner');
    await tell(disk('firing', 'full'));
    await callAs(server, owner, 'messages.delete', { conversation: group.id, seq: 1 });
    expect(await tell(disk('resolved', 'over'))).toBe(2);
    expect(await texts()).toEqual(['', 'over']);
  });

  test('cannot be posted with a token that was rotated', async () => {
    await tell(disk('firing', 'x'));
    await server.operate('groups.rotate-token', { group: group.id });
    expect((await send(disk('firing', 'y'))).status).toBe(404);
  });
});

describe('the parameter updates', () => {
  const firing = alertmanager(['web-1', '10:02']);
  const both = alertmanager(['web-1', '10:02'], ['web-2', '10:05']);
  const over = alertmanager(['web-1', '10:02', '10:20'], ['web-2', '10:05', '10:20']);

  test('edit leaves out every line', async () => {
    for (const body of [firing, both, both, over]) {
      await makeQuiet(60);
      expect(await tell(body, { query: '?updates=edit' })).toBe(1);
    }
    expect(await texts()).toEqual([
      '🟢 HighCPU resolved (2 alerts)\ninstance=web-1 · 10:02 to 10:20 UTC\ninstance=web-2 · 10:05 to 10:20 UTC',
    ]);
  });

  test('new edits nothing, and posts what is news', async () => {
    const query = '?updates=new';
    const seqs: number[] = [];
    for (const body of [firing, both, both, over, over]) seqs.push(await tell(body, { query }));
    expect(seqs).toEqual([1, 2, 2, 3, 3]);
    expect((await texts()).map((text) => text.split('\n')[0])).toEqual([
      '🔴 HighCPU (1 firing)',
      '🔴 HighCPU (2 firing)',
      '🟢 HighCPU resolved (2 alerts)',
    ]);
  });

  test.each<[string, number[], string[]]>([
    ['edit', [1, 1, 1, 1, 1], ['🟢 resolved · 95 %']],
    ['new', [1, 1, 2, 3, 3], ['91 %', '95 %', '70 %']],
  ])('%s holds for posts of ours too', async (mode, expected, stored) => {
    const seqs: number[] = [];
    for (const [state, text] of [
      ['firing', '91 %'],
      ['firing', '91 %'],
      ['firing', '95 %'],
      ['resolved', '70 %'],
      ['resolved', '71 %'],
    ])
      seqs.push(await tell({ text, key: 'disk', state }, { query: `?updates=${mode}` }));
    expect(seqs).toEqual(expected);
    expect(await texts()).toEqual(stored);
  });

  test('with another value is refused in a sentence', async () => {
    expect(await send(firing, { query: '?updates=often' })).toEqual({
      status: 400,
      body: { message: 'updates: must be both, edit or new' },
    });
    expect(await texts()).toEqual([]);
  });
});

test('a run that succeeds is told only where it failed before', async () => {
  const run = (conclusion: string, number: number): object => ({
    action: 'completed',
    workflow_run: { id: number, name: 'Tests', run_number: number, workflow_id: 4, conclusion, head_branch: 'main' },
    repository: { full_name: 'analytical/engine', default_branch: 'main' },
  });
  const headers = { 'x-github-event': 'workflow_run' };
  const ignored = { status: 'Ok', ok: true, success: true, ignored: 'a success that no failure came before' };
  expect((await send(run('success', 1), { headers })).body).toEqual(ignored);
  expect(await tell(run('failure', 2), { headers })).toBe(1);
  expect(await tell(run('failure', 3), { headers })).toBe(1);
  expect(await tell(run('success', 4), { headers })).toBe(1);
  expect((await send(run('success', 5), { headers })).body).toEqual(ignored);
  expect(await texts()).toEqual([
    '🟢 resolved · [analytical/engine:main] workflow Tests #3 failed',
    '🟢 [analytical/engine:main] workflow Tests #4 succeeded again',
  ]);
});

test('a success that is repeated under its key is answered as at first', async () => {
  const run = (conclusion: string): object => ({
    action: 'completed',
    workflow_run: { id: 1, name: 'Tests', run_number: 1, workflow_id: 4, conclusion, head_branch: 'main' },
    repository: { full_name: 'analytical/engine', default_branch: 'main' },
  });
  const headers = { 'x-github-event': 'workflow_run' };
  const keyed = { headers: { ...headers, 'idempotency-key': 'the-end' } };
  expect(await tell(run('failure'), { headers })).toBe(1);
  expect(await tell(run('success'), keyed)).toBe(1);
  expect(await tell(run('success'), keyed)).toBe(1);
  expect((await send({ ...run('success'), sender: { login: 'ada' } }, keyed)).status).toBe(422);
  expect((await send(run('success'), { headers: { ...headers, 'idempotency-key': 'another' } })).body).toMatchObject({
    ignored: expect.any(String),
  });
  expect((await texts()).length).toBe(2);
});

test('a sequence of ntfy edits its message, and nothing else', async () => {
  const progress = (percent: number): object => ({
    topic: 't',
    message: `Backup: ${percent} %`,
    sequence_id: 'backup-7',
  });
  for (const percent of [40, 80]) expect(await tell(progress(percent))).toBe(1);
  await makeQuiet(60);
  for (const percent of [80, 100]) expect(await tell(progress(percent))).toBe(1);
  expect(await texts()).toEqual(['Backup: 100 %']);
});

test('live clients and hooks that ask for events see the edit', async () => {
  const person = await joined(server, `person${group.id}`, group.id);
  const client = await LiveClient.signIn(server.liveUrl, person.token);
  const receiver = await Receiver.start();
  try {
    await client.call('live.subscribe');
    const registered = await fetch(`${group.webhook}/reverse`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ url: receiver.url(), events: ['message.updated'] }),
    });
    expect(registered.status).toBe(201);
    await tell(kuma(0, '10:02', 'timeout'));
    await receiver.received(1);
    await tell(kuma(0, '10:30', 'refused'));
    await receiver.received(2);
    const edited = '🔴 web is down\nhttps://web.example\nrefused · since 10:02 UTC';
    expect(receiver.arrivals.map(({ body }) => [body.type, body.data.message.text])).toEqual([
      ['message.created', edited.replace('refused', 'timeout')],
      ['message.updated', edited],
    ]);
    const isShown = (): boolean =>
      client.changes(group.id).some(({ message }) => message?.seq === 1 && message.text === edited);
    await eventually(isShown, (isTrue) => isTrue);
  } finally {
    client.socket.destroy();
    await receiver.stop();
  }
});
