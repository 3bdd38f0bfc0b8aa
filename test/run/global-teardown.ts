import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { HANDLE, type TestRun } from './global-setup.ts';

/** Stops the server of global-setup.ts, and removes its folder and that of the program. */
// oxlint-disable-next-line import/no-default-export -- jest calls the default export.
export default async function globalTeardown(): Promise<void> {
  const handle = Reflect.get(globalThis, HANDLE) as TestRun | undefined;
  if (handle === undefined) return;
  const { dataDir, programDir, server, watchdog } = handle;
  await server.stop();
  for (const folder of [dataDir, programDir]) await rm(folder, { recursive: true, force: true });
  // The watchdog ends last, so that it still cleans up when the stop fails.
  const exited = once(watchdog, 'exit');
  watchdog.kill('SIGKILL');
  await exited;
}
