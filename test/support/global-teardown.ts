import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { HANDLE, type TestPostgres } from './global-setup.ts';

/** Stops the server of global-setup.ts and removes its folder. */
// oxlint-disable-next-line import/no-default-export -- jest calls the default export.
export default async function globalTeardown(): Promise<void> {
  const handle = Reflect.get(globalThis, HANDLE) as TestPostgres | undefined;
  if (handle === undefined) return;
  const { dataDir, server, watchdog } = handle;
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
  // Last, so that it still cleans up when stopping fails.
  const exited = once(watchdog, 'exit');
  watchdog.kill('SIGKILL');
  await exited;
}
