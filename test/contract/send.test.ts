import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';

describe('POST /v1/webhooks/<token>', () => {
  let server: TestServer;
  let group: TestGroup;
  beforeAll(async () => {
    server = await TestServer.start();
    group = await server.createGroup();
  });
  afterAll(() => server.stop());

  test('answers 200 with the message id after the commit', async () => {
    const answer = await postJson(group.webhook, { text: 'hello' });
    expect(answer.body).toEqual({ status: 'Ok', ok: true, success: true, id: `${group.id}:1` });
    expect(answer.status).toBe(200);
  });
});
