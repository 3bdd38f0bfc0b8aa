import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/ports.ts';
import { readRecipe } from '../../support/recipes.ts';
import { postJson, readJson, type TestGroup } from '../../support/server.ts';
import { ServerProcess } from '../../support/server-process.ts';
import { endSessions, holdOpen } from '../../storage/fixture.ts';
import { programEnv } from '../callers/program-env.ts';
import { describeWith } from '../callers/programs.ts';

const WEBHOOK = '/usr/bin/webhook';

describeWith(WEBHOOK, "Debian's webhook 2.8 as a bot of the format mattermost", () => {
  let database: TestDatabase;
  let server: ServerProcess;
  let folder: string;
  const bots: ChildProcess[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
    folder = await mkdtemp(join(tmpdir(), 'klatch-webhook-'));
    const { host, port, user, database: db } = database.target;
    server = await ServerProcess.create(`
      services.postgresql { embedded = false, host = "${host}", port = ${port}, user = "${user}", db = "${db}", unsafe = true }
      services.file-storage.location = "${database.filesFolder}"
      delivery.retry = [300ms]`);
    await server.start();
  });
  afterAll(async () => {
    await server.discard();
    await database.drop();
    await rm(folder, { recursive: true, force: true });
  });
  afterEach(async () => {
    for (const child of bots.splice(0)) {
      if (child.exitCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  });

  interface Bot {
    readonly id: number;
    readonly url: string;
  }

  /** Registers a hook for a bot, and starts the bot with the configuration that the documents show. */
  async function startBot(group: TestGroup, options: object, configure = (text: string) => text): Promise<Bot> {
    const port = await freePort();
    const address = `http://127.0.0.1:${port}/hooks/ping`;
    const { status, body } = await postJson(`${group.webhook}/reverse`, {
      url: address,
      format: 'mattermost',
      ...options,
    });
    expect(status).toBe(201);
    const config = join(folder, `${port}.json`);
    const recipe = readRecipe('reverse-webhooks.md', 'webhook-bot').replace('<token of the hook>', body.token);
    await writeFile(config, configure(recipe));
    const child = spawn(WEBHOOK, ['-hooks', config, '-ip', '127.0.0.1', '-port', String(port)], {
      stdio: 'ignore',
      env: programEnv(),
    });
    bots.push(child);
    await eventually(
      () =>
        fetch(`http://127.0.0.1:${port}/`).then(
          ({ status: code }) => code,
          () => null,
        ),
      (code) => code !== null,
    );
    return { id: body.id, url: `${group.webhook}/reverse/${body.id}` };
  }

  const textsOf = async (group: TestGroup): Promise<string[]> => {
    const rows = await database.query(
      (sql) => sql<{ text: string }[]>`select text from message where conversation_id = ${group.id} order by seq`,
    );
    return rows.map(({ text }) => text);
  };

  /** Resolves once each of these bots has handled all messages of its group. */
  async function settled(...hooks: readonly Bot[]): Promise<void> {
    for (const { id } of hooks)
      await eventually(
        () => server.operate<{ pending: number }>('hooks.info', { hook: id }),
        ({ pending }) => pending === 0,
      );
  }

  test('answers !ping with pong, once, and says nothing to the rest', async () => {
    const group = await server.createGroup('Ops');
    const bot = await startBot(group, { skip: [], triggers: ['!'] });
    for (const text of ['hello', '!ping', '!pong', 'ping']) await postJson(group.webhook, { text });
    await eventually(
      () => textsOf(group),
      (texts) => texts.includes('pong'),
    );
    await settled(bot);
    expect((await textsOf(group)).toSorted()).toEqual(['!ping', '!pong', 'hello', 'ping', 'pong']);
    expect((await postJson(`${bot.url}/ping`, {})).body).toMatchObject({ delivered: true, code: 200 });
  });

  test('answers once where Klatch is killed after the reply and before it counts the delivery', async () => {
    const group = await server.createGroup('Ops');
    const bot = await startBot(group, { skip: [], triggers: ['!'] });
    for (let n = 1; n <= 3; n += 1) {
      const hook = await holdOpen(
        database.target,
        (tx) => tx`select from reverse_hook where id = ${bot.id} for update`,
      );
      await postJson(group.webhook, { text: '!ping' });
      await eventually(
        () => textsOf(group),
        (texts) => texts.length === 2 * n,
      );
      await server.end('SIGKILL');
      await endSessions(database, 'settle');
      await hook.release();
      await server.start();
      await settled(bot);
    }
    expect(await textsOf(group)).toEqual(['!ping', 'pong', '!ping', 'pong', '!ping', 'pong']);
  });

  test('two of them that answer everything do not answer each other', async () => {
    const group = await server.createGroup('Ops');
    const answersAll = (text: string): string => text.replace('^!ping\\\\b', '.');
    const first = await startBot(group, {}, answersAll);
    const second = await startBot(group, {}, answersAll);
    await postJson(group.webhook, { text: 'hello' });
    await settled(first, second);
    expect(await textsOf(group)).toEqual(['hello']);
    // Bots whose hooks also get the posts of bots answer each other without end; the limit on hops ends that.
    const talkative = await server.createGroup('Loud');
    const loud = [
      await startBot(talkative, { skip: [] }, answersAll),
      await startBot(talkative, { skip: [] }, answersAll),
    ];
    await postJson(talkative.webhook, { text: 'hello' });
    await eventually(
      () => textsOf(talkative),
      (texts) => texts.length === 15,
    );
    await settled(...loud);
    expect(await textsOf(talkative)).toEqual(['hello', ...Array(14).fill('pong')]);
  });

  test('gets no stale command', async () => {
    const group = await server.createGroup('Ops');
    const bot = await startBot(group, { skip: [] });
    await readJson(await fetch(bot.url, { method: 'PATCH', body: '{"paused":true}' }));
    await postJson(group.webhook, { text: '!ping' });
    await database.query(
      (sql) => sql`update message set sent_at = sent_at - interval '301 seconds' where conversation_id = ${group.id}`,
    );
    await readJson(await fetch(bot.url, { method: 'PATCH', body: '{"paused":false}' }));
    await settled(bot);
    const log = await readJson(await fetch(`${bot.url}/deliveries`));
    expect(log.body).toMatchObject([{ outcome: 'skipped', category: 'too old', seq: 1 }]);
    expect(await textsOf(group)).toEqual(['!ping']);
  });
});
