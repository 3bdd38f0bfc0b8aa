import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectResponseHeaders, request, storedMessages } from '../http/wire.ts';
import { postJson, TestServer, type TestGroup } from '../support/server.ts';

describe('klatch-hops', () => {
  let server: TestServer;
  let group: TestGroup;
  beforeAll(async () => {
    server = await TestServer.start();
    group = await server.createGroup();
  });
  afterAll(() => server.stop());

  test('that is absent makes a message with no hops', async () => {
    expect((await postJson(group.webhook, { text: 'x' })).status).toBe(200);
    expect((await storedMessages(server, group)).at(-1)?.hops).toBe(0);
  });

  test.each([
    ['0', 1],
    ['1', 2],
    ['2', 3],
    ['002', 3],
  ])('of %s gives the message one more', async (value, hops) => {
    expect((await postJson(group.webhook, { text: 'x' }, { 'klatch-hops': value })).status).toBe(200);
    expect((await storedMessages(server, group)).at(-1)?.hops).toBe(hops);
  });

  test.each(['3', '4', '99999', '9'.repeat(255)])('of %s is refused with 508', async (value) => {
    const answer = await postJson(group.webhook, { text: 'x' }, { 'klatch-hops': value });
    expect(answer.status).toBe(508);
    const message =
      'This message went round between webhooks too often (klatch-hops): take one of them out of the loop';
    expect(answer.body).toEqual({ message });
    expectResponseHeaders(answer);
  });

  test.each(['', 'x', '-1', '+1', '1.5', '1e1', '0x1', '1, 2', '\u00b2'])(
    'of %j is refused with 400',
    async (value) => {
      const path = `/v1/webhooks/${group.token}`;
      const answer = await request(server.port, { path, headers: { 'klatch-hops': value }, body: 'x' });
      expect(answer.status).toBe(400);
      expect(answer.body).toEqual({ message: 'klatch-hops: must be a whole number, as it was received' });
      expectResponseHeaders(answer);
    },
  );
});
