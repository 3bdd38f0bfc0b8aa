import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TestServer, type TestGroup } from '../../support/server.ts';
import { describeWith, messagesOf, runProgram, type ProgramOutcome } from './programs.ts';

const BORGMATIC = '/usr/bin/borgmatic';

describeWith(BORGMATIC, 'borgmatic 1.7', () => {
  let server: TestServer;
  let group: TestGroup;
  let folder: string;
  beforeAll(async () => {
    server = await TestServer.start();
    group = await server.createGroup();
    folder = await mkdtemp(join(tmpdir(), 'klatch-borgmatic-'));
  });
  afterAll(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test('posts by its ntfy hook that a backup failed', async () => {
    const config = join(folder, 'config.yaml');
    await writeFile(
      config,
      `location:
    source_directories: [${folder}]
    repositories: [${folder}/no-repository]
hooks:
    ntfy: { server: '${server.url}/v1/webhooks', topic: '${group.token}', states: [fail] }
`,
    );
    let outcome: ProgramOutcome | null = null;
    const posted = await messagesOf(server, group, async () => {
      outcome = await runProgram(BORGMATIC, ['-c', config, '-v', '1', '--syslog-verbosity', '-1', 'create'], {
        env: { HOME: folder },
      });
    });
    expect(posted.map(({ text }) => text)).toEqual(['A Borgmatic FAIL event happened\nTags: borgmatic']);
    // The exit code 1 is that of the failed backup. A refused notification would show only in the output.
    expect(outcome!.status).toBe(1);
    expect(outcome!.output).toContain('Pinging ntfy topic');
    expect(outcome!.output).not.toContain('Ntfy error');
  });
});
