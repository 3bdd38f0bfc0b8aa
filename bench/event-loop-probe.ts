/**
 * The server loads this file before its own code. Between two messages of the parent process, it measures:
 * - the CPU time of the main thread
 * - the longest time for which the event loop was held
 *
 * It writes the result into the file that the second message names.
 */
import { writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const RESOLUTION_MS = 1;

if (isMainThread && process.send !== undefined) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  let before = process.threadCpuUsage();
  process.on('message', ({ result }: { result: string }) => {
    const { user, system } = process.threadCpuUsage(before);
    // A timer of RESOLUTION_MS is late by the time for which the loop was held.
    writeFileSync(result, JSON.stringify({ holdMs: delay.max / 1e6 - RESOLUTION_MS, cpuMs: (user + system) / 1_000 }));
    delay.reset();
    before = process.threadCpuUsage();
    process.send!('measured');
  });
  // The channel to the parent process must not keep the server alive.
  process.channel?.unref();
}
