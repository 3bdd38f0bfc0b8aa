/**
 * For a line with a time in ms, requests `/v1/status` of a server every 20 ms for that time. Answers with the 99th
 * percentile of the durations, and the number of requests that got no answer.
 */
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
