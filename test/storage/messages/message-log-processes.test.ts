import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import type { PostingPlan } from '../../support/posting-node.ts';
import { makeGroups, post, readWholeLog } from '../fixture.ts';

const SCRIPT = fileURLToPath(new URL('../../support/posting-node.ts', import.meta.url));

let database: TestDatabase;
const children: ChildProcess[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await database.drop();
});

/** A process that posts, with the answers that it got. */
class Poster {
  readonly acknowledged: string[] = [];
  /** Resolves to the exit code or the signal, after all output was read. */
  readonly ended: Promise<number | string>;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  #line: () => void = () => {};

  constructor(plan: PostingPlan) {
    this.#child = spawn(process.execPath, [SCRIPT, JSON.stringify(plan)], { stdio: ['pipe', 'pipe', 'inherit'] });
    children.push(this.#child);
    this.ended = this.#read();
  }

  /** Resolves when this many posts were answered. */
  async reaches(count: number): Promise<void> {
    while (this.acknowledged.length < count) await new Promise<void>((resolve) => (this.#line = resolve));
  }

  finish(): void {
    this.#child.stdin.end();
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  async #read(): Promise<number | string> {
    const exited = once(this.#child, 'exit');
    for await (const line of createInterface({ input: this.#child.stdout })) {
      this.acknowledged.push(line);
      this.#line();
    }
    const [code, signal] = (await exited) as [number | null, string | null];
    return code ?? signal!;
  }
}

describe('two processes on one database', () => {
  // Different statements write posts with and without keys. The cases combine each kind with itself and with the other.
  test.each([
    [false, false],
    [true, true],
    [false, true],
    [true, false],
  ])('leave no gap and lose no acknowledged post, though one is killed -9 (keys: %s, %s)', async (kept, killed) => {
    const groups = await makeGroups(database, 5);
    const shared = { target: database.target, templates: groups.map((group) => post(group, '')), callers: 32 };
    const survivor = new Poster({ ...shared, name: 'survivor', keyed: kept });
    const victim = new Poster({ ...shared, name: 'victim', keyed: killed });
    await Promise.all([survivor.reaches(500), victim.reaches(500)]);
    victim.kill();
    expect(await victim.ended).toBe('SIGKILL');
    await survivor.reaches(survivor.acknowledged.length + 500);
    survivor.finish();
    expect(await survivor.ended).toBe(0);

    const acknowledged = [...survivor.acknowledged, ...victim.acknowledged];
    const stored = await readWholeLog(database);
    expect(new Set(stored.map((message) => message.text)).size).toBe(stored.length);
    const lines = new Set(stored.map(({ group, seq, text }) => `${group} ${seq} ${text}`));
    expect(acknowledged.filter((line) => !lines.has(line))).toEqual([]);
    // For each of its callers, a killed process may have one post whose outcome it does not know.
    expect(stored.length - acknowledged.length).toBeLessThanOrEqual(shared.callers);
  });
});
