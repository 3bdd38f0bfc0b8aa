import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { COMMAND_NAMES, neededCommands } from '../../src/cli/commands.ts';
import type { CommandContext } from '../../src/cli/core/context.ts';
import { createProgram } from '../../src/cli/program.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { Program, root, Workspace } from './program.ts';

/**
 * Source files and folders that only the server and its diagnosis need. LIBRARIES are the libraries that only they
 * need.
 */
const LAYERS = ['server.ts', 'http', 'live', 'delivery', 'doctor', 'push', 'log.ts'];
const LIBRARIES = ['undici', 'ws', 'express', 'pino', 'nodemailer', 'web-push'];

const context = { env: {}, programBinDir: '' } as unknown as CommandContext;

describe('the table of commands', () => {
  test.each(COMMAND_NAMES)('adds the command %s under its own name, alone', async (name) => {
    const program = await createProgram(context, [name]);
    expect(program.commands.map((each) => each.name())).toEqual([name]);
  });

  test('makes the whole program when no names are given, in its own order', async () => {
    const program = await createProgram(context);
    expect(program.commands.map((each) => each.name())).toEqual(COMMAND_NAMES);
  });

  test.each([
    [['status'], ['status']],
    [['--config', 'serve', 'status', '--json'], ['status']],
    [['--config=a.conf', 'group', 'list'], ['group']],
    [['group', '--help'], ['group']],
    [[], []],
    [['--config', 'a.conf'], []],
    [['--version'], []],
    [['--help'], 'all'],
    [['help', 'status'], 'all'],
    [['completion', 'bash'], 'all'],
    [['statsu'], 'all'],
    [['toString'], 'all'],
    [['--configure', 'status'], 'all'],
    [['--json', 'status'], 'all'],
  ])('for the command line %j adds %j', (args, names) => {
    expect(neededCommands(args)).toEqual(names === 'all' ? COMMAND_NAMES : names);
  });
});

describe('a command of the command line', () => {
  let folder: string;
  let database: TestDatabase;
  let workspace: Workspace;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klatch-modules-'));
    database = await createTestDatabase();
    workspace = await Workspace.create();
    await workspace.configure(database.target);
  });
  afterAll(async () => {
    await workspace.remove();
    await database.drop();
    await rm(folder, { recursive: true });
  });

  /** Libraries and folders of the sources that a command line loads. */
  async function loadedBy(args: readonly string[]): Promise<Set<string>> {
    const file = join(folder, 'modules');
    const preload = pathToFileURL(join(root, 'test/run/note-modules.ts')).href;
    const env = { NODE_OPTIONS: `--import=${preload}`, MODULES_FILE: file };
    // Runs the program from its sources: the bundle no longer has the names of the source files.
    const { code, stderr } = await new Program([process.execPath, join(root, 'src/main.ts'), ...args], { env }).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const urls = (await readFile(file, 'utf8')).split('\n').filter((url) => url.startsWith('file:'));
    const places = urls.map((url) => relative(root, fileURLToPath(url)));
    return new Set(places.map((place) => /^(?:.*node_modules|packages|src)\/([^/]+)/.exec(place)?.[1] ?? place));
  }

  test('loads the parser of command lines and nothing of the server for the version', async () => {
    const loaded = await loadedBy(['--version']);
    expect(loaded).toContain('commander');
    for (const part of [...LAYERS, 'hocon', 'operations', 'storage', 'zod', ...LIBRARIES])
      expect(loaded).not.toContain(part);
  });

  test('loads neither the server nor its libraries to show the status of a running one', async () => {
    await workspace.serve();
    const loaded = await loadedBy(['status', '--config', workspace.file]);
    expect([...loaded]).toEqual(expect.arrayContaining(['hocon', 'zod']));
    for (const part of [...LAYERS, ...LIBRARIES]) expect(loaded).not.toContain(part);
  });
});
