/**
 * The baseline of the latency benchmark: Express parses the same body, sends the same delivery and answers. It stores
 * nothing. Arguments: port of the sink, number of connections to it.
 */
import express from 'express';
import type { AddressInfo } from 'node:net';
import { bareDelivery, BareSender } from '../support/bare-delivery.ts';

const [port, connections] = process.argv.slice(2).map(Number);
const sender = new BareSender(port!, connections!);
let n = 0;

const app = express();
app.post('/v1/webhooks/:group', express.json({ limit: '1mb' }), (req, res) => {
  const { text } = req.body as { text: string };
  const group = Number(req.params['group']);
  n += 1;
  // Nothing handles a rejection here: a failure ends the process, and with it the benchmark.
  void sender.send(`1_${group}_${n}`, JSON.stringify(bareDelivery(group, n, text)));
  res.json({ status: 'Ok', ok: true, success: true, id: `${group}:${n}` });
});
const server = app.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.on('SIGTERM', () => process.exit(0));
