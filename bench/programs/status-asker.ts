/** Requests a server's `/v1/status` every 20 ms for the time that a line names, and answers with the durations. */
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { percentile } from '../support/report.ts';

const EVERY_MS = 20;
const GIVE_UP_MS = 15_000;
const url = `${process.argv[2]}/v1/status`;

async function measure(forMs: number): Promise<{ p99: number; unanswered: number }> {
  const times: number[] = [];
  const asked: Promise<void>[] = [];
  const ask = async (): Promise<void> => {
    const startedMs = performance.now();
    const isAnswered = await fetch(url, { signal: AbortSignal.timeout(GIVE_UP_MS) }).then(
      async (response) => (await response.text()) !== '',
      () => false,
    );
    times.push(isAnswered ? performance.now() - startedMs : GIVE_UP_MS);
  };
  const timer = setInterval(() => asked.push(ask()), EVERY_MS);
  await wait(forMs);
  clearInterval(timer);
  await Promise.all(asked);
  return { p99: percentile(times, 0.99), unanswered: times.filter((ms) => ms >= GIVE_UP_MS).length };
}

console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await measure(Number(line))));
}
