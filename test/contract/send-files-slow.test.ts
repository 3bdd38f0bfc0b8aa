import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { requestBytes, storedMessages, Wire } from '../http/wire.ts';
import { eventually } from '../support/eventually.ts';
import { TestServer, type TestGroup } from '../support/server.ts';

/** The timeout of all requests except files. */
const TIMEOUT_MS = 1_500;

let server: TestServer;
let group: TestGroup;

beforeAll(async () => {
  server = await TestServer.start({ http: { requestToResponseTimeoutMs: TIMEOUT_MS } });
  group = await server.createGroup('Ops');
});
afterAll(() => server.stop());

const messages = async (): Promise<number> => (await storedMessages(server, group)).length;

/** The number of files that belong to no message, in any state. */
const loose = (): Promise<number> =>
  server.database.query(async (sql) => {
    const [row] = await sql<{ count: number }[]>`select count(*)::int as count from file where seq is null`;
    return row!.count;
  });

/** Checks that no message was posted, and that no file remained. */
async function expectNothing(before: number): Promise<void> {
  await eventually(loose, (count) => count === 0);
  expect(await messages()).toBe(before);
}

describe('a form that stops coming', () => {
  const head = '--B\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n';

  async function begin(body: string): Promise<Wire> {
    const wire = await Wire.open(server.port);
    const headers = { 'content-type': 'multipart/form-data; boundary=B', 'content-length': '200000' };
    wire.write(requestBytes({ path: new URL(group.webhook).pathname, headers }));
    wire.write(body);
    return wire;
  }

  test('in a file, with its connection, leaves nothing behind', async () => {
    const before = await messages();
    const wire = await begin(`${head}${'x'.repeat(50_000)}`);
    await eventually(loose, (count) => count === 1);
    wire.close();
    await expectNothing(before);
  });

  test('behind a file is told so in the time of any other request, and leaves nothing behind', async () => {
    const before = await messages();
    const wire = await begin(`${head}small\r\n--B\r\nContent-Disposition: form-data; name="text"\r\n\r\nhel`);
    expect((await wire.response()).status).toBe(408);
    await expectNothing(before);
    // The server closes the connection and does not wait for the rest of the body.
    await wire.ended();
  });

  test('before its first file is told so as ever', async () => {
    const wire = await begin('--B\r\nContent-Disposition: form-data; name="text"\r\n\r\nhel');
    expect((await wire.response()).status).toBe(408);
    wire.close();
  });

  test('takes longer than other requests may while its file goes on', async () => {
    const wire = await begin(head);
    const size = 200_000 - head.length - '\r\n--B--\r\n'.length;
    // Sends for longer than twice the time-out of any other request.
    for (let sent = 0; sent < size;) {
      const next = Math.min(20_000, size - sent);
      wire.write('y'.repeat(next));
      sent += next;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    wire.write('\r\n--B--\r\n');
    expect((await wire.response()).status).toBe(200);
    const sizes = await server.database.query((sql) => sql`select size from file where seq is not null`);
    expect([...sizes]).toEqual([{ size }]);
    wire.close();
  });
});
