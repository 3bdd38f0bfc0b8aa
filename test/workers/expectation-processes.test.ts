import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { writePosts } from '../../src/storage/messages/write-posts.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { makeGroups, post, readWholeLog, type StoredGroup } from '../storage/fixture.ts';
import { HOUR_MS, passOpenTime } from './expectation-fixture.ts';

const SCRIPT = fileURLToPath(new URL('./telling-node.ts', import.meta.url));
const GROUPS = 12;
const KEYS = 25;
const KILLS = 6;

let database: TestDatabase;
let groups: StoredGroup[];
const nodes: TellingNode[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
  groups = await makeGroups(database, GROUPS);
});
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.kill();
  await database.drop();
});

/** A process that posts messages about overdue expectations, and that prints a line whenever a group got some. */
class TellingNode {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #exited: Promise<unknown>;
  /** How often a group got messages. */
  told = 0;

  constructor() {
    this.#child = spawn(process.execPath, [SCRIPT, JSON.stringify(database.target)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#exited = once(this.#child, 'exit');
    createInterface({ input: this.#child.stdout }).on('line', () => (this.told += 1));
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }
}

const linesByText = async (): Promise<Map<string, number>> => {
  const counts = new Map<string, number>();
  for (const { group, text } of await readWholeLog(database)) {
    if (!/^(?:🔴|🟢)/u.test(text)) continue;
    const line = `${group} ${text.replace(/ since .*/, '')}`;
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return counts;
};

describe('nodes that are killed -9 while they tell groups', () => {
  test('leave each line said once, what stayed away and what came again', async () => {
    await database.query(
      (sql) => sql`
        insert into expectation (conversation_id, key, within_s, due_ms)
        select h.conversation_id, 'key ' || n, 3600, 3600000 from conversation_head h, generate_series(1, ${KEYS}::int) n`,
    );
    await passOpenTime(database, 2 * HOUR_MS);
    for (let kills = 0; kills < KILLS; kills += 1) {
      const victim = new TellingNode();
      nodes.push(victim);
      await eventually(async () => victim.told > 0 || (await linesByText()).size === GROUPS * KEYS, Boolean);
      await victim.kill();
    }
    nodes.splice(0);
    nodes.push(new TellingNode(), new TellingNode());
    await eventually(linesByText, (lines) => lines.size === GROUPS * KEYS);
    const signs = groups.flatMap((group) =>
      Array.from({ length: KEYS }, (_, n) => post(group, 'done', { expectation: { key: `key ${n + 1}` } })),
    );
    await database.query((sql) => writePosts(sql, signs));
    const lines = await eventually(linesByText, ({ size }) => size === 2 * GROUPS * KEYS);
    expect([...lines].filter(([, count]) => count !== 1)).toEqual([]);
  });
});
