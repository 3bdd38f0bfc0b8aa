import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { Pool } from 'undici';

/** The JSON object of one message, as Klatch delivers it. */
export function bareDelivery(group: number, n: number, text: string): object {
  const sentAt = new Date().toISOString();
  return {
    type: 'message.created',
    timestamp: sentAt,
    data: {
      group: { id: group, title: 'Group 1' },
      message: { id: `${group}:${n}`, seq: n, rev: n, text, sent_at: sentAt, attachments: [] },
      sender: { id: 1, name: 'Webhook', nick: null, kind: 'webhook' },
    },
  };
}

/** Signs bodies (Standard Webhooks `v1`) and posts them with undici. */
export class BareSender {
  readonly #pool: Pool;
  readonly #key = createSecretKey(randomBytes(32));

  constructor(port: number, connections: number, host = '127.0.0.1') {
    this.#pool = new Pool(`http://${host}:${port}`, { connections, pipelining: 1 });
  }

  /** Signs and posts one body. Resolves when the receiver has answered. */
  async send(id: string, body: string): Promise<void> {
    const timestamp = Math.floor(Date.now() / 1000);
    const signature = createHmac('sha256', this.#key).update(`${id}.${timestamp}.${body}`).digest('base64');
    const response = await this.#pool.request({
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
}
