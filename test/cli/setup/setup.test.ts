import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readConfigOrTemplate } from '../../../src/cli/setup/configure.ts';
import { Prompt } from '../../../src/cli/core/prompt.ts';
import {
  askMissing,
  findMissing,
  answersWithDatabase,
  type DatabaseOffers,
} from '../../../src/cli/setup/setup-questions.ts';
import { nextStep } from '../../../src/cli/setup/setup-report.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { describeInstallation } from '../../../src/installation.ts';
import { MAIN } from '../../support/program-files.ts';
import { CertificateAuthority } from '../../support/certificate-authority.ts';
import { Program, Workspace } from '../program.ts';

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
      serverSigningKeys: [{ private: join(workspace.folder, 'server-key.private.pem') }],
    });
    expect(Buffer.from(config.secret, 'base64url')).toHaveLength(32);
    expect(await readFile(workspace.file, 'utf8')).toContain('# The address that the server listens on');
    expect((await stat(workspace.file)).mode & 0o777).toBe(0o640);
    expect((await stat(config.serverSigningKeys[0]!.private)).mode & 0o777).toBe(0o600);
    expect(stdout).toContain('http.port = 7071');
    expect(stdout).toMatch(/Next: start the server with "klatch serve --config/);
    expect(stdout).toMatch(/Then open the address that this prints: klatch admin-link --config \S+\n$/);
    expect(stdout).not.toContain(config.secret);
    expect(config.webPush).toMatchObject({ vapidSubject: 'https://chat.example.org' });
    expect(stdout).toContain(config.webPush!.public);
    expect(stdout).not.toContain(config.webPush!.private);
  });

  test('run again with the same answers changes nothing, and is content', async () => {
    const flags = ['setup', '--embedded', '--base-uri', 'https://one.example', '--port', '9191', '--allow', 'loopback'];
    await workspace.run(flags);
    const before = await readFile(workspace.file, 'utf8');
    for (const again of [flags, ['setup']]) {
      const { code, stdout } = await workspace.run(again);
      expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/Nothing to write/) });
    }
    expect(await readFile(workspace.file, 'utf8')).toBe(before);
  });

  test('run again with other answers writes nothing, names each with its line, and ends with 1', async () => {
    await workspace.run(['setup', '--embedded', '--base-uri', 'https://one.example', '--port', '9191']);
    const before = await readFile(workspace.file, 'utf8');
    const line = before.split('\n').findIndex((each) => each.includes('port = 9191')) + 1;
    const other = ['--port', '9192', '--base-uri', 'https://one.example', '--project-name', 'Ours'];
    const again = await workspace.run(['setup', ...other]);
    expect(again).toMatchObject({ code: 1, stdout: '' });
    expect(again.stderr.split('\n')).toEqual([
      expect.stringMatching(/^klatch: nothing was written: .* has other answers than these options/),
      `  line ${line}: http.port = 9191, and --port says 9192`,
      expect.stringMatching(/^Change them in the file/),
      '',
    ]);
    const moved = await workspace.run(['setup', '--db-host', 'db.example', '--base-uri', 'https://two.example']);
    expect(moved.code).toBe(1);
    expect(moved.stderr).toMatch(/http\.base-uri = https:\/\/one\.example[^]*services\.postgresql\.embedded is on/);
    expect(await readFile(workspace.file, 'utf8')).toBe(before);
  });

  test('takes whom push services may write to, and refuses another one than the file has', async () => {
    const flags = ['setup', '--embedded', '--base-uri', 'https://one.example'];
    const bad = await workspace.run([...flags, '--web-push-subject', 'ours@example.org']);
    expect(bad).toMatchObject({ code: 64, stderr: expect.stringContaining('--web-push-subject: ') });
    expect(await workspace.run([...flags, '--web-push-subject', 'mailto:ours@example.org'])).toMatchObject({ code: 0 });
    expect(load().config.webPush?.vapidSubject).toBe('mailto:ours@example.org');
    const { code, stderr } = await workspace.run(['setup', '--web-push-subject', 'mailto:others@example.org']);
    expect(code).toBe(1);
    expect(stderr).toContain('services.web-push.subject = mailto:ours@example.org, and --web-push-subject says');
  });

  test('makes keys of web push for a configuration that was complete before there were any, and once', async () => {
    await workspace.run(['setup', '--embedded', '--base-uri', 'https://one.example']);
    const without = (await readFile(workspace.file, 'utf8')).replace(/\n {4}(?:public|private|subject) = .*/g, '');
    await writeFile(workspace.file, without);
    expect(load().config.webPush).toBeNull();
    const { code, stdout } = await workspace.run(['setup', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).set).toEqual(['public', 'private', 'subject'].map((key) => `services.web-push.${key}`));
    const made = load().config.webPush;
    expect(made?.vapidSubject).toBe('https://one.example');
    await workspace.run(['setup']);
    expect(load().config.webPush).toEqual(made);
  });

  test('compares answers as the server understands them, and shows no password', async () => {
    const password = join(workspace.folder, 'password');
    await writeFile(password, 'hunter2\n');
    await workspace.write([
      'secret = "<SERVER_SECRET>"',
      'http { base-uri = "https://one.example", port = ${?NO_SUCH_VARIABLE} }',
      'data-dir = "data"',
      'services.postgresql { host = db.example, port = "5433", password = hunter1 }',
      'delivery.allow = [loopback, "10.0.0.0/8"]',
    ]);
    const same = ['--data-dir', workspace.dataDir, '--db-port', '5433', '--allow', 'loopback', '--allow', '10.0.0.0/8'];
    expect(await workspace.run(['setup', ...same])).toMatchObject({ code: 0, stderr: '' });
    const other = await workspace.run(['setup', '--db-password-file', password, '--port', '1', '--embedded']);
    expect(other.code).toBe(64);
    const { code, stderr } = await workspace.run(['setup', '--db-password-file', password, '--port', '1']);
    expect(code).toBe(1);
    expect(stderr).toContain('line 4: services.postgresql.password is set, and --db-password-file says something else');
    expect(stderr).toContain('elsewhere: http.port is set, and --port says something else');
    expect(stderr).not.toContain('hunter');
    const embedded = await workspace.run(['setup', '--embedded']);
    expect(embedded).toMatchObject({ code: 1, stderr: expect.stringContaining('services.postgresql.host is set') });
  });

  test('fills the open answers of a file that an administrator began, and leaves the rest as it was', async () => {
    const begun = [
      '# ours',
      'project-name = "Ours" # keep',
      'secret = "<SERVER_SECRET>"',
      'http.base-uri = "<BASE_URI>"',
    ];
    await workspace.write(begun);
    const flags = ['--db-host', '/run/postgresql', '--base-uri', 'https://one.example', '--metrics-port', '19191'];
    expect(await workspace.run(['setup', ...flags])).toMatchObject({ code: 0 });
    const text = await readFile(workspace.file, 'utf8');
    expect(text.split('\n').slice(0, 2)).toEqual(begun.slice(0, 2));
    expect(load().config).toMatchObject({
      projectName: 'Ours',
      metrics: { port: 19191 },
      postgresql: { embedded: false, host: '/run/postgresql', password: '' },
    });
  });

  test('takes how the database is spoken to, and refuses a mode that there is not', async () => {
    const authority = new CertificateAuthority();
    const flags = ['setup', '--db-host', 'db.example', '--base-uri', 'https://one.example', '--db-tls'];
    const refused = await workspace.run([...flags, 'maybe'], { KLATCH_DB_PASSWORD: 'hunter3' });
    expect(refused).toMatchObject({ code: 64, stderr: expect.stringContaining('"verify-full"') });
    const tls = ['verify-full', '--db-ca-file', authority.caFile];
    expect(await workspace.run([...flags, ...tls], { KLATCH_DB_PASSWORD: 'hunter3' })).toMatchObject({ code: 0 });
    expect(load().config.postgresql.tls).toMatchObject({ mode: 'verify-full', databaseCaFile: authority.caFile });
    const other = await workspace.run(['setup', '--db-tls', 'disable']);
    expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('services.postgresql.tls = verify-full') });
    authority.stop();
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

  test('says in a sentence that a password file cannot be read', async () => {
    const flags = ['setup', '--db-host', 'db.example', '--base-uri', 'https://one.example', '--db-password-file'];
    const missing = await workspace.run([...flags, join(workspace.folder, 'none')]);
    expect(missing).toMatchObject({ code: 64, stderr: expect.stringMatching(/none: there is no such file\n$/) });
    const folder = await workspace.run([...flags, workspace.folder]);
    expect(folder).toMatchObject({ code: 64, stderr: expect.stringMatching(/: it is a folder\n$/) });
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
  const cluster = { name: '15/main', socketDir: '/run', port: 5433, socketOwnerUid: 0, hbaFile: null };
  const none = { local: [], embeddedOffer: null, unusableReasons: [] };
  const offered = {
    none,
    embedded: { ...none, embeddedOffer: 'a private one' },
    all: {
      local: [{ cluster, text: 'PostgreSQL 15' }],
      embeddedOffer: 'a private one',
      unusableReasons: ['9.3 is too old'],
    },
  };

  async function converse(lines: readonly string[], offers: DatabaseOffers = offered.embedded) {
    const input = new PassThrough();
    const output = new PassThrough();
    const prompt = new Prompt(input, output);
    const source = readConfigOrTemplate(workspace.file);
    const database = { embedded: false };
    const missing = findMissing(source, {}, database);
    const given = { answers: {}, database, missing, offers: async () => offers };
    const answering = askMissing(source, given, prompt);
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
      const answered = await answering;
      return { answers: answersWithDatabase(source, answered), database: answered.database, shown };
    } finally {
      prompt.stop();
    }
  }

  test('have defaults: Enter takes an embedded database where no other server runs', async () => {
    const { answers } = await converse(['', '']);
    expect(answers).toEqual({ baseUri: 'http://127.0.0.1:9090', database: { embedded: true } });
  });

  test('offer a server of this machine first, and say what cannot be used', async () => {
    const { database, shown } = await converse(['', ''], offered.all);
    expect(database).toEqual({ embedded: false, createsLocalDatabase: true, clusterName: '15/main', port: 5433 });
    expect(shown).toMatch(/9\.3 is too old\n[^]*1 {2}PostgreSQL 15\n {2}2 {2}a private one\n {2}3 {2}another server/);
  });

  test('are asked again with the reason after an answer that cannot be used', async () => {
    const { answers, shown } = await converse(['ftp://one.example', 'https://one.example', '4', '2'], offered.all);
    expect(answers).toEqual({ baseUri: 'https://one.example', database: { embedded: true } });
    expect(shown).toMatch(/expected an absolute http:[^]*answer with a number from 1 to 3/);
  });

  test('go on to a database of yours', async () => {
    const { answers } = await converse(['', '1', 'db.example', '5433', '', '', 'hunter2'], offered.none);
    const database = { host: 'db.example', port: 5433, db: 'klatch', user: 'klatch', password: 'hunter2' };
    expect(answers.database).toEqual(database);
  });

  test('end with a sentence when nobody answers', async () => {
    await expect(converse([''])).rejects.toThrow('left without an answer; nothing was written: repeat the command');
  });
});

describe('the unpacked archive', () => {
  test('is configured in its own folder, where its data goes too', async () => {
    const folder = join(workspace.folder, 'klatch-1.0.0');
    const launcher = join(folder, 'bin/klatch');
    await mkdir(join(folder, 'bin'), { recursive: true });
    await writeFile(launcher, '');
    const command = [process.execPath, MAIN, 'setup', '--embedded', '--base-uri', 'https://one.example'] as const;
    const { code, stdout } = await new Program(command, { env: { KLATCH_LAUNCHER: launcher } }).ended;
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringContaining(`nohup ${launcher} >> klatch.log 2>&1 &`),
    });
    expect(loadConfig(join(folder, 'conf/server.conf'), { env: {} }).config.dataDir).toBe(join(folder, 'data'));
  });
});

describe('what comes next', () => {
  const programBinDir = '/opt/klatch/bin';
  const source = describeInstallation({ execPath: '/usr/bin/node', archiveLauncher: undefined });
  const archive = describeInstallation({ execPath: '/x', archiveLauncher: '/opt/klatch 1/bin/klatch' });
  const system = '/etc/klatch/server.conf';

  test.each([
    ['the service', system, source, true, 'start the server: sudo service klatch start'],
    ['a package without a service', system, source, false, 'start the server with "klatch serve".'],
    [
      'the archive',
      '/opt/klatch/conf/server.conf',
      archive,
      true,
      "start the server: nohup '/opt/klatch 1/bin/klatch' >> klatch.log 2>&1 &",
    ],
    ['a file elsewhere', '/srv/k.conf', source, true, 'start the server with "klatch serve --config /srv/k.conf".'],
  ])('is told for %s', (_, file, installation, isService, told) => {
    expect(nextStep({ programBinDir }, file, { installation, isServiceInstalled: isService })).toBe(told);
  });
});
