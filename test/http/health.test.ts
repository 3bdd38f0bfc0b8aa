import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readVersion } from '../../src/version.ts';
import { readJson, TestServer } from '../support/server.ts';
import { expectAnswerHeaders } from './wire.ts';

describe('the health of a server', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start();
  });
  afterAll(() => server.stop());

  test.each([
    ['/v1/status', { status: 'Ok' }],
    ['/v1/ready', { status: 'Ok' }],
    [
      '/v1/about',
      { projectName: 'Klatch under test', endpoints: ['ws://klatch.example:9080'], version: readVersion() },
    ],
  ])('%s is 200', async (path, body) => {
    for (const spelling of [path, `${path}/`, `${path}?x=1`]) {
      const answer = await readJson(await fetch(`${server.url}${spelling}`));
      expect([answer.status, answer.body]).toEqual([200, body]);
      expectAnswerHeaders(answer);
    }
  });

  test('is asked of the database once, however many ask', async () => {
    const asked = async (): Promise<number> => {
      const [row] = await server.database.query(
        (sql) => sql<{ count: number }[]>`
          select xact_commit::int as count from pg_stat_database where datname = current_database()`,
      );
      return row!.count;
    };
    const before = await asked();
    const answers = await Promise.all(Array.from({ length: 300 }, () => fetch(`${server.url}/v1/ready`)));
    await Promise.all(answers.map((answer) => answer.text()));
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
    expect((await asked()) - before).toBeLessThan(100);
  });
});
