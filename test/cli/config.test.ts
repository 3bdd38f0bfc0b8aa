import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SECRET, Workspace } from './program.ts';

let workspace: Workspace;

beforeEach(async () => {
  workspace = await Workspace.create();
});

afterEach(async () => workspace.remove());

const complete = [`secret = "${SECRET}"`, 'http.base-uri = "http://klatch.example"'];

describe('klatch config check', () => {
  test('says OK, and what is odd', async () => {
    await workspace.write([...complete, 'htpp.port = 1']);
    const { code, stdout, stderr } = await workspace.run(['config', 'check']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^warning: \S+server\.conf:3:\d+: htpp.*\n\S+server\.conf: OK\n$/);
  });

  test('names every mistake with its position and its line, and ends with 78', async () => {
    await workspace.write([
      `secret = "${SECRET}"`,
      'http.base-uri = "<BASE_URI>"',
      'http.port = 99999',
      'log.level = loud',
    ]);
    const { code, stdout, stderr } = await workspace.run(['config', 'check']);
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^klatch: .*server\.conf has 3 problems$/),
      expect.stringMatching(/server\.conf:2:17: http\.base-uri: still holds its placeholder/),
      '    http.base-uri = "<BASE_URI>"',
      '                    ^',
      expect.stringMatching(/server\.conf:3:13: http\.port: /),
      '    http.port = 99999',
      '                ^',
      expect.stringMatching(/server\.conf:4:13: log\.level: /),
      '    log.level = loud',
      '                ^',
    ]);
    const json = await workspace.run(['config', 'check', '--json']);
    expect(json.code).toBe(78);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, problems: { length: 3 } });
    expect(json.stdout).not.toContain('^');
  });

  test('never repeats a secret that it refuses', async () => {
    await workspace.write(['secret = "aaaaaaaaaaaahunter2aaaa"', 'services.postgresql.password = [hunter3]']);
    const { code, stdout, stderr } = await workspace.run(['config', 'check']);
    expect(code).toBe(78);
    expect(stdout + stderr).not.toMatch(/hunter/);
  });

  test('says where it looked when the named file is not there', async () => {
    const { code, stderr } = await workspace.run(['config', 'check']);
    expect(code).toBe(78);
    expect(stderr).toContain(workspace.file);
    expect(stderr).toContain('klatch setup');
  });
});

describe('klatch config show', () => {
  test('prints what is in force and where it comes from, without secrets', async () => {
    await workspace.write([...complete, 'http.port = 7070', 'services.postgresql.password = "hunter2hunter2"']);
    const text = await workspace.run(['config', 'show']);
    expect(text.code).toBe(0);
    expect(text.stdout).toMatch(/^http\.port = 7070 +# .*server\.conf:3$/m);
    expect(text.stdout).toMatch(/^http\.interface = "127\.0\.0\.1" +# default$/m);
    expect(text.stdout).not.toContain(SECRET);
    const json = await workspace.run(['config', 'show', '--json']);
    const { settings } = JSON.parse(json.stdout) as { settings: { key: string; value: unknown }[] };
    expect(settings).toContainEqual({ key: 'secret', value: '(hidden)', source: expect.stringMatching(/:1$/) });
    expect(json.stdout + text.stdout).not.toMatch(/hunter2/);
  });
});
