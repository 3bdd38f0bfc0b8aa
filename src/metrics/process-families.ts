import { readdir, readFile } from 'node:fs/promises';
import { parseDescriptorLimit } from '../connection-limit.ts';
import type { EventLoopDelay } from './event-loop-delay.ts';
import { counter, gauge, histogram, singleSample, type MetricFamily, type MetricSample } from './family.ts';

/** Metrics of any Node.js process, under the names that common dashboards use. */
export function processFamilies(eventLoop: EventLoopDelay): MetricFamily[] {
  const startedAtS = Date.now() / 1_000 - process.uptime();
  return [
    histogram(
      { name: 'klatch_event_loop_delay_seconds', help: 'How late the event loop came to a timer that was due.' },
      () => singleSample(eventLoop.delayS.read()),
    ),
    counter(
      { name: 'process_cpu_seconds_total', help: 'CPU time of the process, user and system, without PostgreSQL.' },
      () => {
        const { user, system } = process.cpuUsage();
        return singleSample((user + system) / 1e6);
      },
    ),
    gauge({ name: 'process_start_time_seconds', help: 'When the process was started, in seconds since 1970.' }, () =>
      singleSample(startedAtS),
    ),
    gauge({ name: 'process_resident_memory_bytes', help: 'Memory of the process, without PostgreSQL.' }, () =>
      singleSample(process.memoryUsage.rss()),
    ),
    gauge({ name: 'process_open_fds', help: 'Open files and sockets (on Linux).' }, openFileCount),
    gauge({ name: 'process_max_fds', help: 'Files and sockets that may be open (on Linux).' }, openFileLimit),
    gauge({ name: 'nodejs_heap_size_used_bytes', help: 'Memory that objects of the program take.' }, () =>
      singleSample(process.memoryUsage().heapUsed),
    ),
    gauge({ name: 'nodejs_external_memory_bytes', help: 'Memory of buffers and other things outside the heap.' }, () =>
      singleSample(process.memoryUsage().external),
    ),
  ];
}

async function openFileCount(): Promise<readonly MetricSample<number>[]> {
  try {
    return singleSample((await readdir('/proc/self/fd')).length);
  } catch {
    // The system is not Linux, or /proc is not mounted: the value is unknown.
    return [];
  }
}

async function openFileLimit(): Promise<readonly MetricSample<number>[]> {
  try {
    const limit = parseDescriptorLimit(await readFile('/proc/self/limits', 'utf8'));
    return limit === null ? [] : singleSample(limit);
  } catch {
    return [];
  }
}
