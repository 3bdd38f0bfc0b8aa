import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { exitCodes } from '../../src/cli/core/exit-codes.ts';
import { expectedFailures } from '../../src/cli/core/explain-failure.ts';
import { checkNames } from '../../src/doctor/finding.ts';
import { errorKinds } from '../../src/errors.ts';
import { embeddedErrorCodes } from '../../src/storage/embedded/embedded-error.ts';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { root, SECRET } from '../cli/program.ts';

const page = readFileSync(join(root, 'docs/operations.md'), 'utf8');

/** The text of the page from one heading up to another. */
const part = (from: string, to: string): string => page.slice(page.indexOf(from), page.indexOf(to));

/** The cells of each row of every table in a text, without the code marks. */
const rowsOf = (text: string): string[][] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim().replace(/^`(.*)`$/, '$1')),
    );
const rowOf = (text: string, first: string): string[] | undefined => rowsOf(text).find(([cell]) => cell === first);
const failuresPart = part('## Why it does not start', '### Exit statuses');
const doctorPart = part('## What is wrong?', '## Five situations');
const errorsPart = part('## What callers were told', '## Sizing');

/** The sources of the program as one text. */
const sources = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
  .join('\n')
  // Joins sentences that the source splits over two lines.
  .replace(/['`] \+\s*['`]/g, '');

describe('docs/operations.md', () => {
  test('gives a second server on the same machine ports of its own', async () => {
    const example = /```hocon\n(# The second server[^]*?)```/.exec(page)![1]!;
    const folder = await mkdtemp(join(tmpdir(), 'klatch-second-'));
    try {
      const [first, second] = [join(folder, 'server.conf'), join(folder, 'second.conf')];
      await writeFile(first, `secret = "${SECRET}"\nhttp.base-uri = "http://klatch.example"\n`);
      await writeFile(second, example.replace('/etc/klatch/server.conf', first));
      const [one, two] = [first, second].map((file) => loadConfig(file, { env: {} }).config) as [Config, Config];
      const ports = [one, two].flatMap(({ http, metrics, endpoints }) => [http, metrics, ...endpoints]);
      expect(new Set(ports.map(({ port }) => port)).size).toBe(8);
      expect(two.dataDir).not.toBe(one.dataDir);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  test("says how a hook's secret is changed, without registering it anew", () => {
    const [, , change] = rowOf(part('## Secrets', 'Klatch writes none of them'), "a hook's secret")!;
    expect(change).toMatch(/^`klatch hook rotate-secret`, or .*rotate_secret/);
  });

  test.each(Object.entries(errorKinds))('explains the error %s', (code, { status, sentence }) => {
    const row = rowOf(errorsPart, code);
    expect(row?.slice(0, 3)).toEqual([code, String(status), sentence]);
    expect(row?.[3]).toMatch(/\S/);
  });

  test('explains every exit status, those of signals too, and no other', () => {
    const table = part('### Exit statuses', '## What callers were told');
    const told = [...table.matchAll(/^\| (\d+) /gm)].map(([, status]) => Number(status));
    expect(told).toEqual([...Object.values(exitCodes), 130, 143].sort((a, b) => a - b));
  });

  /** By class of failure: its sentence, as the page quotes it. */
  const words: Readonly<Record<string, string>> = {
    NotConfiguredError: 'Klatch is not configured yet',
    ConfigError: 'server.conf:12:8: http.port: expected …',
    ConfigNotFoundError: 'There is no configuration file',
    DataDirLockedError: 'is in use by another Klatch process',
    DatabaseInUseError: 'uses this database. Stop it first',
    IncompatibleSchemaError: 'and this Klatch knows',
    MigrationFailedError: 'nothing was changed, the database is at schema',
    WrongSecretError: 'secret differs from the one this database was made with',
    ControlFolderError: 'The control socket of the data directory',
    DatabaseUnavailableError: 'cannot connect to the database',
    CommitUnknownError: 'the connection to the database was lost',
    DatabaseTooOldError: 'is too old: Klatch needs 11 or newer',
    DatabaseUnsafeError: 'PostgreSQL runs with fsync = off',
    TransactionPoolingError: 'A pooler in transaction mode stands before PostgreSQL',
    ListenError: 'another program listens on',
    DataDirError: 'cannot be made or reached',
    StoreMismatchError: "is not the store of this database's files",
  };
  const failures = expectedFailures.flatMap(([status, kinds]) => kinds.map(({ name }) => ({ name, status })));

  test.each(failures.filter(({ name }) => name !== 'EmbeddedError'))('explains $name', ({ name, status }) => {
    const quoted = words[name];
    expect(quoted).toBeDefined();
    expect(rowOf(failuresPart, quoted!)?.[1]).toBe(String(status));
  });

  test('quotes what the program really says', () => {
    const assembled = ['server.conf:12:8', 'is in use by another Klatch process'];
    const quotes = Object.values(words).filter((quote) => !assembled.some((begin) => quote.startsWith(begin)));
    expect(quotes.filter((quote) => !sources.includes(quote))).toEqual([]);
  });

  test.each(embeddedErrorCodes)('explains the failure %s of the embedded database', (code) => {
    const row = rowOf(failuresPart, code);
    expect(row).toHaveLength(3);
    expect(row![1]!.split('…').filter((part) => !sources.includes(part.trim()))).toEqual([]);
  });

  test('explains every error and no other', () => {
    // Leaves out the heading of the table and the line below it.
    const [, , ...told] = rowsOf(errorsPart);
    expect(told.map(([code]) => code)).toEqual(Object.keys(errorKinds));
  });

  test('explains every row of doctor', () => {
    for (const name of checkNames) expect(rowOf(doctorPart, name)?.[1]).toMatch(/\S/);
  });
});
