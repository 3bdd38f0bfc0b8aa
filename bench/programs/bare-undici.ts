/**
 * The baseline of the forward and backlog benchmarks: makes the same bodies, signs them (Standard Webhooks `v1`) and
 * posts them. Arguments: port of the sink, number of connections, and messages in a body (1 by default; more make an
 * array).
 */
import { createInterface } from 'node:readline';
import { bareDelivery, BareSender } from '../support/bare-delivery.ts';

const [port, connections, batch = 1] = process.argv.slice(2).map(Number);
const sender = new BareSender(port!, connections!);
let sent = 0;

function delivery(n: number): object {
  return bareDelivery(1, n, `message ${n}: load on web-1 is above its threshold`);
}

function send(first: number, last: number): Promise<void> {
  if (batch === 1) return sender.send(`1_1_${first}`, JSON.stringify(delivery(first)));
  const deliveries = Array.from({ length: last - first + 1 }, (_, n) => delivery(first + n));
  return sender.send(`1_1_${first}-${last}`, JSON.stringify(deliveries));
}

/**
 * For a line `send N` the program sends N messages, and answers with the seconds that they took. Message numbers
 * continue from line to line.
 */
createInterface({ input: process.stdin }).on('line', (line) => {
  const end = sent + Number(line.split(' ')[1]);
  const started = performance.now();
  const connection = async (): Promise<void> => {
    while (sent < end) {
      const first = sent + 1;
      sent = Math.min(end, sent + batch);
      await send(first, sent);
    }
  };
  void Promise.all(Array.from({ length: connections! }, connection)).then(() =>
    console.log((performance.now() - started) / 1000),
  );
});
console.log('ready');
process.on('SIGTERM', () => process.exit(0));
