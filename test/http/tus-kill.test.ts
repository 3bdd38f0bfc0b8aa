import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Upload, type UploadOptions } from 'tus-js-client';
import { callAs } from '../support/call.ts';
import { ServerProcess } from '../support/server-process.ts';
import { bearer, noise } from './files-fixture.ts';

const MIB = 1024 * 1024;

let server: ServerProcess;
beforeAll(async () => {
  server = await ServerProcess.create();
  await server.start();
});
afterAll(() => server.discard());

test('an upload goes on behind a kill -9 of the server, and is whole in the end', async () => {
  await server.operate('accounts.create', { nick: 'anna', name: 'Anna' });
  const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'anna' });
  const { token } = await callAs<{ token: string }>(server, null, 'auth.verify', { link });
  const bytes = noise(24 * MIB);
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  const half = Promise.withResolvers<void>();
  const options: UploadOptions = {
    endpoint: `${server.url}/v1/files/uploads`,
    headers: bearer({ token }),
    chunkSize: 4 * MIB,
    // The client tries again until the server runs again, however busy the machine is.
    retryDelays: Array.from({ length: 120 }, () => 500),
    onChunkComplete: (_size, accepted) => {
      if (accepted >= 8 * MIB) half.resolve();
    },
    onSuccess: () => resolve(),
    onError: reject,
  };
  const upload = new Upload(bytes, options);
  upload.start();
  await half.promise;
  await server.end('SIGKILL');
  await server.start();
  await done;
  const { pathname } = new URL(upload.url!);
  const response = await fetch(`${server.url}/v1/files/${pathname.split('/').at(-1)}`, { headers: bearer({ token }) });
  expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
  const { files, usage } = await callAs(server, { token }, 'files.list');
  expect([files.length, files[0].complete, usage.bytes]).toEqual([1, true, bytes.length]);
});
