import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newSessionToken } from '../../src/operations/core/session-cache.ts';
import { createPerson, type TestPerson } from '../support/people.ts';
import { recordingLog } from '../support/recording-log.ts';
import { TestServer } from '../support/server.ts';
import { request, type WireResponse } from './wire.ts';

const TEXT = 'a-private-text';
const wrong = newSessionToken('user').token;
const lines: string[] = [];
let server: TestServer;
let admin: TestPerson;
beforeAll(async () => {
  server = await TestServer.start({ log: { level: 'debug' } }, { log: recordingLog(lines) });
  admin = await createPerson(server, 'root', { admin: true });
});
afterAll(() => server.stop());

function callApi(name: string, body: string, token = admin.token): Promise<WireResponse> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  return request(server.port, { path: `/v1/api/${name}`, headers, body });
}

function expectNothingPrivate(text: string): void {
  for (const part of [admin.token, admin.token.slice(0, 12), wrong, TEXT]) expect(text).not.toContain(part);
}

test('an error shows neither the token nor a value that it was called with', async () => {
  for (const [status, response] of [
    [401, await callApi('accounts.list', `{"after":"${TEXT}"}`, wrong)],
    [400, await callApi('accounts.list', `{"after":"${TEXT.repeat(10)}"}`)],
    [400, await callApi('accounts.list', `{"role":"${TEXT}"}`)],
    [400, await callApi('accounts.list', `{"limit":"${TEXT}"}`)],
    [400, await callApi('accounts.list', `{"after": ${TEXT}}`)],
    [400, await callApi('accounts.list', `"${TEXT}"`)],
    [404, await callApi(TEXT, '{}')],
  ] as const) {
    expect(response.status).toBe(status);
    expectNothingPrivate([...response.headers].flat().join('\n') + response.text);
  }
});

test('a failure inside the server is a 500 that tells nothing, and its cause is in the log beside the operation', async () => {
  await server.database.query((sql) => sql`alter table account rename column name to name_away`);
  try {
    const response = await callApi('accounts.list', `{"after":"${TEXT}"}`);
    const body = { message: 'The server failed; its log has the cause', code: 'internal' };
    expect([response.status, response.body]).toEqual([500, body]);
  } finally {
    await server.database.query((sql) => sql`alter table account rename column name_away to name`);
  }
  expect(lines.join('\n')).toContain('42703');
  expect(lines.join('\n')).toContain('"operation":"accounts.list"');
});

test('nothing private comes into the log, at the lowest level', async () => {
  expect((await callApi('groups.create', `{"title":"${TEXT}","about":"${TEXT}"}`)).status).toBe(200);
  expect(lines.length).toBeGreaterThan(0);
  expectNothingPrivate(lines.join('\n'));
});
