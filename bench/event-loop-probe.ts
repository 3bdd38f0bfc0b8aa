/**
 * A server loads this file first. From one message to the next, it measures two times: the CPU time of the main thread,
 * and the longest time for which the event loop was held. It writes the result into the file that the message names.
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
    // A timer of one millisecond fires as late as the loop was held.
    writeFileSync(result, JSON.stringify({ holdMs: delay.max / 1e6 - RESOLUTION_MS, cpuMs: (user + system) / 1_000 }));
    delay.reset();
    before = process.threadCpuUsage();
    process.send!('measured');
  });
  // The channel alone must not keep the process alive.
  process.channel?.unref();
}
