import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { startThread } from '../../../src/assets.ts';
import { silentLog, type Log } from '../../../src/log.ts';
import type { HookId, Seq } from '../../../src/model/ids.ts';
import type { ConnectionTarget } from '../../../src/storage/db/connection.ts';
import { DatabaseUnavailableError, CommitUnknownError, sqlState } from '../../../src/storage/db/database-error.ts';
import { claimPartitions } from '../../../src/storage/hooks/leases.ts';
import { SettlementWriter, type SettlementWriterOptions } from '../../../src/storage/hooks/settlement-writer.ts';
import type { AttemptRecord, Settlement } from '../../../src/storage/hooks/settlement.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { HalfOpenProxy } from '../../support/half-open-proxy.ts';
import { within } from '../../run/machine-speed.ts';
import { holdOpen, isWaiting, makeGroups, makeHook, UNTROUBLED, until, type Held } from '../fixture.ts';

const AT = new Date('2026-11-21T10:00:00.123Z');
/** A thread that never answers, since it runs an endless loop. */
const stuck: typeof startThread = () => new Worker('for (;;);', { eval: true });

let database: TestDatabase;
let proxy: HalfOpenProxy;
let hook: HookId;
let events: string[];
let opened: SettlementWriter[];
/** The real threads that were started; `stuck` ones are not among them. */
let threads: Worker[];
let log: Log;

beforeEach(async () => {
  database = await createTestDatabase();
  proxy = await HalfOpenProxy.start(database.target);
  await database.query((sql) => claimPartitions(sql, { holder: 'us', leaseMs: 60_000 }));
  hook = await makeHook(database, (await makeGroups(database, 1))[0]!);
  events = [];
  opened = [];
  threads = [];
  log = { ...silentLog(), error: (event) => events.push(event) };
});
afterEach(async () => {
  await Promise.all(opened.map((writer) => writer.stop()));
  await proxy.stop();
  await database.drop();
});

function open(
  changes: Partial<SettlementWriterOptions> = {},
  target: ConnectionTarget = database.target,
): SettlementWriter {
  const start: typeof startThread = (name, options) => {
    const thread = startThread(name, options);
    threads.push(thread);
    return thread;
  };
  const writer = new SettlementWriter(target, { timeoutMs: 10_000, log, start, ...changes });
  opened.push(writer);
  return writer;
}

const throughProxy = (): ConnectionTarget => ({ ...database.target, ...proxy.address });

function attempt(changes: Partial<AttemptRecord> = {}): AttemptRecord {
  const first = { firstSeq: 1 as Seq, lastSeq: 1 as Seq, rev: 0, lastRev: null, attempt: 1, at: AT } as const;
  return { ...first, outcome: 'delivered', category: null, code: 200, durationMs: 12, ...changes };
}

function settlement(changes: Partial<Settlement> = {}): Settlement {
  return { hookId: hook, generation: 0, epoch: 1, ...UNTROUBLED, cursor: 1 as Seq, attempts: [attempt()], ...changes };
}

/** Locks the hook's row, which blocks every settlement of the hook. */
const holdHook = (): Promise<Held> =>
  holdOpen(database.target, (tx) => tx`select from reverse_hook where id = ${hook} for update`);

const waits = (): Promise<void> => until(database, (sql) => isWaiting(sql, 'settle'));

const failure = (write: Promise<unknown>): Promise<unknown> =>
  write.then(
    () => null,
    (error: unknown) => error,
  );

/** Repeats the write until it succeeds, as the settler does. */
async function repeated(writer: SettlementWriter): Promise<void> {
  const write = (): Promise<unknown> => writer.write([settlement()]).catch(() => null);
  expect(await eventually(write, (taken) => taken !== null)).toEqual(new Set([hook]));
}

async function logged(): Promise<unknown[]> {
  const rows = await database.query(
    (sql) => sql`
    select a.at, a.outcome, a.category, a.code, r.cursor, r.failing_since, r.next_attempt_at
    from delivery_attempt a join reverse_hook r on r.id = a.hook_id`,
  );
  return [...rows];
}

describe('write()', () => {
  test('writes what was delivered and answers who took it', async () => {
    const gone = settlement({ hookId: 99 as HookId });
    expect(await open().write([settlement(), gone])).toEqual(new Set([hook]));
    const row = { at: AT, outcome: 'delivered', category: null, code: 200, cursor: 1 };
    expect(await logged()).toEqual([{ ...row, failing_since: null, next_attempt_at: null }]);
  });

  test('writes failures with what only they have to say', async () => {
    const nextAttemptAt = new Date(AT.getTime() + 5_000);
    const failed = attempt({ outcome: 'failed', category: 'timeout', code: null });
    const trouble = { cursor: 0 as Seq, failures: 1, failingSince: AT, nextAttemptAt, attempts: [failed] };
    expect(await open().write([settlement(trouble)])).toEqual(new Set([hook]));
    const row = { at: AT, outcome: 'failed', category: 'timeout', code: null, cursor: 0 };
    expect(await logged()).toEqual([{ ...row, failing_since: AT, next_attempt_at: nextAttemptAt }]);
  });

  test('takes one at a time', async () => {
    const writer = open();
    const first = writer.write([settlement()]);
    expect(writer.busyConnections).toBe(1);
    await expect(writer.write([settlement()])).rejects.toThrow(DatabaseUnavailableError);
    expect(await first).toEqual(new Set([hook]));
    expect([writer.busyConnections, writer.counts.refusedCalls]).toEqual([0, 1]);
  });
});

describe('a failure of the database', () => {
  test('keeps its SQLSTATE, and what was asked stays in the thread', async () => {
    const writer = open();
    const held = await holdHook();
    const error = await failure(writer.write([settlement()]));
    await held.release();
    expect(sqlState(error)).toBe('55P03');
    expect(error).toMatchObject({ message: expect.stringContaining('lock timeout'), severity: 'ERROR' });
    expect(Object.getOwnPropertyNames(error)).not.toEqual(expect.arrayContaining(['query', 'parameters']));
    await repeated(writer);
    expect(threads).toHaveLength(1);
  });

  test('is DatabaseAwayError with its reason where there is none', async () => {
    const error = await failure(open({}, { ...database.target, host: '127.0.0.1', port: 1 }).write([settlement()]));
    expect(error).toBeInstanceOf(DatabaseUnavailableError);
    expect(error).toMatchObject({ message: expect.stringContaining('ECONNREFUSED'), cause: { code: 'ECONNREFUSED' } });
  });

  test('is DatabaseLostError when the connection is cut, and the same thread makes another', async () => {
    const writer = open({}, throughProxy());
    await repeated(writer);
    proxy.mode = 'reset';
    await expect(writer.write([settlement()])).rejects.toThrow(CommitUnknownError);
    proxy.mode = 'pass';
    await repeated(writer);
    expect(threads).toHaveLength(1);
    expect(events).toEqual([]);
  });

  test('is DatabaseLostError after the deadline on a path that swallows packets; the connection is reset', async () => {
    // The thread's own deadline comes long before the deadline of its caller. At the latter the caller would end the
    // thread.
    const start: typeof startThread = (name, options) => {
      const data = { ...(options.workerData as object), timeoutMs: 2_000 };
      const thread = startThread(name, { ...options, workerData: data });
      threads.push(thread);
      return thread;
    };
    const writer = open({ timeoutMs: 20_000, start }, throughProxy());
    await repeated(writer);
    const before = proxy.ends.reset;
    proxy.mode = 'swallow';
    const started = performance.now();
    await expect(writer.write([settlement()])).rejects.toThrow(CommitUnknownError);
    expect(performance.now() - started).toBeLessThan(within(15_000));
    await eventually(
      async () => proxy.ends.reset,
      (count) => count === before + 1,
    );
    proxy.mode = 'pass';
    await repeated(writer);
    expect(threads).toHaveLength(1);
  });
});

describe('the thread', () => {
  test('that dies leaves its write in doubt, and the next write starts another', async () => {
    const writer = open();
    await repeated(writer);
    const held = await holdHook();
    const write = failure(writer.write([settlement()]));
    await waits();
    await threads[0]!.terminate();
    expect(await write).toBeInstanceOf(CommitUnknownError);
    expect(events).toEqual(['the thread that settles is lost, the next settlement starts another']);
    await held.release();
    await repeated(writer);
    expect(threads).toHaveLength(2);
    await until(database, async (sql) => {
      const sessions = await sql`select from pg_stat_activity
        where datname = current_database() and application_name = 'klatch settle'`;
      return sessions.length === 1;
    });
  });

  function brokenThreads(): { readonly start: typeof startThread; readonly count: () => number } {
    let starts = 0;
    const start: typeof startThread = () => {
      starts += 1;
      return new Worker('throw new Error("broken")', { eval: true });
    };
    return { start, count: () => starts };
  }

  test('that fails at its start is not tried again at once', async () => {
    const { start, count } = brokenThreads();
    const writer = open({ start, minRestartIntervalMs: 3_600_000 });
    const error = await failure(writer.write([settlement()]));
    expect(error).toBeInstanceOf(CommitUnknownError);
    expect(error).toMatchObject({ cause: { message: 'broken' } });
    await expect(writer.write([settlement()])).rejects.toThrow(DatabaseUnavailableError);
    expect(count()).toBe(1);
  });

  test('that fails at its start is tried again after a pause', async () => {
    const { start, count } = brokenThreads();
    const writer = open({ start });
    const write = (): Promise<unknown> => failure(writer.write([settlement()]));
    await write();
    await eventually(write, (again) => again instanceof CommitUnknownError);
    expect(count()).toBe(2);
  });

  test('that the system does not give is told and tried again', async () => {
    let refused = 0;
    const scarce: typeof startThread = (name, options) => {
      if (refused > 0) return startThread(name, options);
      refused += 1;
      throw new Error('no thread');
    };
    const writer = open({ start: scarce });
    await expect(writer.write([settlement()])).rejects.toThrow(DatabaseUnavailableError);
    expect(events).toEqual(['the thread that settles cannot be started']);
    await repeated(writer);
  });

  test('that is stuck is ended by the deadline', async () => {
    let thread: Worker | undefined;
    const writer = open({ timeoutMs: 500, start: (...args) => (thread = stuck(...args)) });
    const write = failure(writer.write([settlement()]));
    const exited = once(thread!, 'exit');
    expect(await write).toBeInstanceOf(CommitUnknownError);
    await exited;
  });
});

describe('stop()', () => {
  test('rejects what is under way, ends the session, and lets nothing begin', async () => {
    const writer = open();
    await repeated(writer);
    const held = await holdHook();
    const write = failure(writer.write([settlement()]));
    await waits();
    await Promise.all([writer.stop(), writer.stop()]);
    expect(await write).toBeInstanceOf(CommitUnknownError);
    await held.release();
    await expect(writer.write([settlement()])).rejects.toThrow(DatabaseUnavailableError);
    expect([threads.length, events]).toEqual([1, []]);
  });

  test('ends a thread that is starting, and one that is stuck', async () => {
    const exits: Promise<unknown>[] = [];
    const start: typeof startThread = (...args) => {
      const thread = (exits.length === 0 ? startThread : stuck)(...args);
      exits.push(once(thread, 'exit'));
      return thread;
    };
    for (const writer of [open({ start }), open({ start })]) {
      const write = failure(writer.write([settlement()]));
      await writer.stop();
      expect(await write).toBeInstanceOf(CommitUnknownError);
    }
    await Promise.all(exits);
    expect(exits).toHaveLength(2);
  });

  test('is not needed for the process to end', async () => {
    const module = resolve(import.meta.dirname, '../../../src/storage/hooks/settlement-writer.ts');
    const target = { ...database.target, host: '/nowhere' };
    const code = `
      void import(${JSON.stringify(module)}).then(({ SettlementWriter }) => {
        const writer = new SettlementWriter(${JSON.stringify(target)}, { timeoutMs: 20_000, log: console });
        return writer.write([]).catch((error) => console.log(error.name));
      });`;
    const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    expect(await once(child, 'close')).toEqual([0, null]);
    expect(output).toBe('DatabaseUnavailableError\n');
  });
});
