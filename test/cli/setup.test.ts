import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readConfigText } from '../../src/cli/configure.ts';
import { Prompt } from '../../src/cli/prompt.ts';
import { askMissing, findMissing } from '../../src/cli/setup-questions.ts';
import { loadConfig } from '../../src/config/load.ts';
import { Workspace } from './program.ts';

let workspace: Workspace;

beforeEach(async () => {
  workspace = await Workspace.create();
});

afterEach(async () => workspace.remove());

const load = () => loadConfig(workspace.file, { env: {} });

describe('klatch setup', () => {
  test('makes a complete configuration with a secret, server keys and comments', async () => {
    const flags = [
      '--embedded',
      '--base-uri',
      'https://chat.example.org',
      '--allow',
      'loopback',
      '--allow',
      '10.1.0.0/16',
    ];
    const { code, stdout, stderr } = await workspace.run([
      'setup',
      ...flags,
      '--port',
      '7071',
      '--data-dir',
      workspace.dataDir,
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { config, warnings } = load();
    expect(warnings).toEqual([]);
    expect(config).toMatchObject({
      dataDir: workspace.dataDir,
      http: { baseUri: 'https://chat.example.org', port: 7071 },
      postgresql: { embedded: true },
      delivery: { allow: ['loopback', '10.1.0.0/16'] },
      serverKeys: [{ private: join(workspace.folder, 'server-key.private.pem') }],
    });
    expect(Buffer.from(config.secret, 'base64url')).toHaveLength(32);
    expect(await readFile(workspace.file, 'utf8')).toContain('# Where the server listens');
    expect((await stat(workspace.file)).mode & 0o777).toBe(0o640);
    expect((await stat(config.serverKeys[0]!.private)).mode & 0o777).toBe(0o600);
    expect(stdout).toContain('http.port = 7071');
    expect(stdout).toMatch(/Next: start the server with "klatch serve --config/);
    expect(stdout).not.toContain(config.secret);
  });

  test('run again changes nothing, and says that answers were kept', async () => {
    await workspace.run(['setup', '--embedded', '--base-uri', 'https://one.example']);
    const before = await readFile(workspace.file, 'utf8');
    const again = await workspace.run(['setup', '--db-host', 'db.example', '--base-uri', 'https://two.example']);
    expect(again.code).toBe(0);
    expect(await readFile(workspace.file, 'utf8')).toBe(before);
    expect(again.stdout).toMatch(/Nothing to write/);
    expect(again.stdout).toMatch(/Kept[^]*http\.base-uri = "https:\/\/one\.example"/);
  });

  test('fills the open answers of a file that an administrator began, and leaves the rest as it was', async () => {
    const begun = [
      '# ours',
      'project-name = "Ours" # keep',
      'secret = "<SERVER_SECRET>"',
      'http.base-uri = "<BASE_URI>"',
    ];
    await workspace.write(begun);
    const flags = ['--db-host', '/run/postgresql', '--base-uri', 'https://one.example', '--project-name', 'Other'];
    expect(await workspace.run(['setup', ...flags])).toMatchObject({ code: 0 });
    const text = await readFile(workspace.file, 'utf8');
    expect(text.split('\n').slice(0, 2)).toEqual(begun.slice(0, 2));
    expect(load().config).toMatchObject({
      projectName: 'Ours',
      postgresql: { embedded: false, host: '/run/postgresql', password: '' },
    });
  });

  test('takes the database password from a file or the environment, and never shows it', async () => {
    const secretFile = join(workspace.folder, 'password');
    await writeFile(secretFile, 'hunter2 with "quotes"\n');
    const flags = ['setup', '--db-host', 'db.example', '--base-uri', 'https://one.example'];
    const fromFile = await workspace.run([...flags, '--db-password-file', secretFile]);
    expect(fromFile.code).toBe(0);
    expect(load().config.postgresql).toMatchObject({ host: 'db.example', password: 'hunter2 with "quotes"' });
    const other = await Workspace.create();
    try {
      const fromEnvironment = await other.run(flags, { KLATCH_DB_PASSWORD: 'hunter3' });
      expect(fromEnvironment.code).toBe(0);
      expect(loadConfig(other.file, { env: {} }).config.postgresql.password).toBe('hunter3');
      expect(fromFile.stdout + fromFile.stderr + fromEnvironment.stdout + fromEnvironment.stderr).not.toMatch(/hunter/);
    } finally {
      await other.remove();
    }
  });

  test('without a terminal lists what is missing, writes nothing and ends with 64', async () => {
    const nothing = await workspace.run(['setup']);
    expect(nothing).toMatchObject({ code: 64, stdout: '' });
    expect(nothing.stderr).toMatch(/--base-uri[^]*--embedded/);
    const password = await workspace.run(['setup', '--db-host', 'db.example', '--base-uri', 'https://one.example']);
    expect(password).toMatchObject({ code: 64, stderr: expect.stringContaining('KLATCH_DB_PASSWORD') });
    await expect(stat(workspace.file)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('refuses flags that the server would refuse, and flags that contradict each other', async () => {
    const flags = ['setup', '--embedded', '--base-uri', 'https://one.example'];
    const port = await workspace.run([...flags, '--port', '99999']);
    expect(port).toMatchObject({ code: 64, stderr: expect.stringMatching(/^klatch: --port: /) });
    const both = await workspace.run([...flags, '--db-host', 'db.example']);
    expect(both).toMatchObject({ code: 64, stderr: expect.stringContaining("cannot be used with option '--db-host") });
    const allow = await workspace.run([...flags, '--allow', 'everything!']);
    expect(allow).toMatchObject({ code: 78, stderr: expect.stringContaining('delivery.allow') });
    await expect(stat(workspace.file)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('the questions of klatch setup', () => {
  async function converse(lines: readonly string[]) {
    const input = new PassThrough();
    const output = new PassThrough();
    const prompt = new Prompt(input, output);
    const source = readConfigText(workspace.file);
    const database = { embedded: false };
    const missing = findMissing(source, {}, database);
    const answering = askMissing(source, { answers: {}, database, missing }, prompt);
    // Each answer is typed when its question is on the screen.
    let shown = '';
    const rest = [...lines];
    output.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
      if (!text.endsWith(': ')) return;
      const line = rest.shift();
      if (line === undefined) input.end();
      else input.write(`${line}\n`);
    });
    try {
      return { answers: await answering, shown };
    } finally {
      prompt.stop();
    }
  }

  test('have defaults: Enter takes an embedded database on this machine', async () => {
    const { answers } = await converse(['', '']);
    expect(answers).toEqual({ baseUri: 'http://127.0.0.1:9090', database: { embedded: true } });
  });

  test('are asked again with the reason after an answer that cannot be used', async () => {
    const { answers, shown } = await converse(['ftp://one.example', 'https://one.example', 'perhaps', 'yes']);
    expect(answers).toEqual({ baseUri: 'https://one.example', database: { embedded: true } });
    expect(shown).toMatch(/expected an absolute http:[^]*answer yes or no/);
  });

  test('go on to a database of yours', async () => {
    const { answers } = await converse(['', 'no', 'db.example', '5433', '', '', 'hunter2']);
    const database = { host: 'db.example', port: 5433, db: 'klatch', user: 'klatch', password: 'hunter2' };
    expect(answers.database).toEqual(database);
  });

  test('end with a sentence when nobody answers', async () => {
    await expect(converse([''])).rejects.toThrow('left without an answer; nothing was written');
  });
});
