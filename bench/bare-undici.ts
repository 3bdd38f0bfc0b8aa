/** The baseline of forward: makes and signs (`v1`) the same bodies and posts them, nothing else. Arguments: sink port, connections. */
import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { Pool } from 'undici';

const [port, connections] = process.argv.slice(2).map(Number);
const pool = new Pool(`http://127.0.0.1:${port}`, { connections: connections!, pipelining: 1 });
const key = createSecretKey(randomBytes(32));

async function send(n: number): Promise<void> {
  const sentAt = new Date().toISOString();
  const body = JSON.stringify({
    type: 'message.created',
    timestamp: sentAt,
    data: {
      group: { id: 1, title: 'Group 1' },
      message: {
        id: `1:${n}`,
        seq: n,
        text: `message ${n}: load on web-1 is above its threshold`,
        sent_at: sentAt,
        attachments: [],
      },
      sender: { id: 1, name: 'Webhook', nick: null, kind: 'webhook' },
    },
  });
  const id = `1_1_${n}`;
  const timestamp = Math.floor(Date.now() / 1000);
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  const response = await pool.request({
    method: 'POST',
    path: '/hook/1',
    headers: {
      'content-type': 'application/json',
      'user-agent': 'Klatch/0',
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': `v1,${signature}`,
      'klatch-hops': '0',
    },
    body,
  });
  await response.body.dump();
}

/** Asked `send N`, it answers with the seconds that N requests took. */
createInterface({ input: process.stdin }).on('line', (line) => {
  const count = Number(line.split(' ')[1]);
  let next = 0;
  const started = performance.now();
  const connection = async (): Promise<void> => {
    while (next < count) await send(next++);
  };
  void Promise.all(Array.from({ length: connections! }, connection)).then(() =>
    console.log((performance.now() - started) / 1000),
  );
});
console.log('ready');
process.on('SIGTERM', () => process.exit(0));
