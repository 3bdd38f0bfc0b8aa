import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { Connection } from '../../../src/storage/db/connection.ts';
import { SUPERUSER } from '../../../src/storage/embedded/cluster.ts';
import { SOCKET_PORT } from '../../../src/storage/embedded/socket-folder.ts';
import { eventually } from '../../support/eventually.ts';
import { MAIN } from '../../support/program-files.ts';
import { Receiver } from '../../support/receiver.ts';
import { postJson, type TestGroup } from '../../support/server.ts';
import { ServerProcess } from '../../support/server-process.ts';
import { Program, runKlatch, type Ended } from '../program.ts';

const OLD = 'a secret for tests that is long enough to be taken';
const NEW = 'Zx8wVb5nMq2rTk7yPl4jHs9dFg3cUa6o';

let server: ServerProcess;
let receiver: Receiver;
let group: TestGroup;
let hookSecret: string;
let link: string;

beforeEach(async () => {
  // The lock time-out is the longest allowed: the test kills the command while it waits for a lock.
  server = await ServerProcess.create('services.postgresql.lock-timeout = 1m');
  receiver = await Receiver.start();
  await server.start();
  group = await server.createGroup('Vault');
  hookSecret = (await postJson(`${group.webhook}/reverse`, { url: receiver.url() })).body.secret;
  link = (await server.operate<{ link: string }>('invites.create', { group: group.id })).link;
});

afterEach(async () => {
  await receiver.stop();
  await server.remove();
});

const config = (): string => join(server.dataDir, 'server.conf');

async function useSecret(secret: string): Promise<void> {
  const text = await readFile(config(), 'utf8');
  await writeFile(config(), text.replace(/secret = ".*"/, `secret = "${secret}"`));
}

/** Starts the rotation of the secret with the real program, which gets the old secret on standard input. */
function startReseal(oldSecret: string): Program {
  // A here-document instead of a pipe lets the shell exec the program, so that a signal reaches the program.
  const line = 'exec "$@" <<END\n$OLD\nEND';
  const command = [process.execPath, MAIN, 'keys', 'rotate-secret', '--old-secret-file', '-'];
  return new Program(['/bin/sh', '-c', line, 'sh', ...command, '--config', config()], { env: { OLD: oldSecret } });
}

const runReseal = (oldSecret: string): Promise<Ended> => startReseal(oldSecret).ended;

/** The exit code of `klatch migrate`: 77 if the secret in the configuration is not that of the database. */
const migrateCode = async (): Promise<number | null> => (await runKlatch(['migrate', '--config', config()])).code;

/**
 * Checks that the running server shows the old token and invitation, accepts posts with them, and signs with the hook's
 * old secret.
 */
async function expectEverythingWorks(): Promise<void> {
  const shown = await server.operate<{ token: string }>('groups.show-token', { group: group.id });
  expect(shown.token).toBe(group.token);
  const { invites } = await server.operate<{ invites: unknown[] }>('invites.list', { group: group.id });
  expect(invites).toMatchObject([{ link }]);
  const count = receiver.arrivals.length;
  expect((await postJson(group.webhook, { text: 'still here' })).status).toBe(200);
  const arrival = (await receiver.received(count + 1)).at(-1)!;
  const verified = new Webhook(hookSecret).verify(arrival.raw, arrival.headers as Record<string, string>);
  expect(verified).toEqual(arrival.body);
}

describe('klatch keys rotate-secret', () => {
  test('moves a database to the new secret, after which tokens work and hooks sign as before', async () => {
    await expectEverythingWorks();
    const busy = await runReseal(OLD);
    expect(busy).toMatchObject({ code: 75, stdout: '', stderr: expect.stringContaining('Stop that process') });
    expect(await server.end('SIGTERM')).toBe(0);

    await useSecret(NEW);
    const refused = await runKlatch(['serve', '--config', config()]);
    expect(refused).toMatchObject({ code: 77, stderr: expect.stringContaining('"klatch keys rotate-secret"') });

    const wrong = await runReseal('not the secret that it was');
    expect(wrong).toMatchObject({ code: 77, stdout: '', stderr: expect.stringMatching(/nothing was changed\n$/) });
    await useSecret(OLD);
    expect(await migrateCode()).toBe(0);

    await useSecret(NEW);
    const moved = await runReseal(OLD);
    expect(moved).toMatchObject({ code: 0, stderr: '' });
    expect(moved.stdout).toBe(
      'Moved 1 invitation, 1 integration token and 1 hook secret: the database opens with the secret in server.conf.\n',
    );
    expect(await runReseal(OLD)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Nothing to do/) });
    await useSecret(OLD);
    expect(await migrateCode()).toBe(77);
    await useSecret(NEW);
    await server.start();
    await expectEverythingWorks();
  });

  test('killed in the middle leaves everything to the old secret, and can be run again', async () => {
    // SIGKILL leaves the embedded database running, so that a session of the test can block the rotation.
    await server.end('SIGKILL');
    await useSecret(NEW);
    const socket = { host: join(server.dataDir, 'postgresql.run'), port: SOCKET_PORT };
    const target = { ...socket, database: 'klatch', user: SUPERUSER, password: '' };
    const holder = new Connection({ ...target, connectTimeoutMs: 2_000, lockTimeoutMs: 2_000 }, 'test');
    try {
      await holder.run(async (sql) => {
        await sql`begin`;
        await sql`select from reverse_hook for update`;
        // When the rotation waits for this lock, it has resealed the canary and the tokens.
        const resealing = startReseal(OLD);
        const waiting = eventually(
          () => sql`select pid from pg_locks where not granted`,
          (sessions) => sessions.length > 0,
        );
        const early = resealing.ended.then((end) => {
          throw new Error(`it did not wait for the lock: ${JSON.stringify(end)}`);
        });
        early.catch(() => {});
        await Promise.race([waiting, early]);
        const exited = once(resealing.process, 'exit');
        resealing.process.kill('SIGKILL');
        await exited;
        await sql`rollback`;
      }, 60_000);
    } finally {
      holder.close();
    }
    await useSecret(OLD);
    await server.start();
    await expectEverythingWorks();
    expect(await server.end('SIGTERM')).toBe(0);

    await useSecret(NEW);
    expect(await runReseal(OLD)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Moved 1 /) });
    await server.start();
    await expectEverythingWorks();
  });
});
