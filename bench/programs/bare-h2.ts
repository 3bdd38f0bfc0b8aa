/**
 * The baseline of the push benchmark: makes the same payloads and posts them over one connection of node:http2.
 * Arguments: port of the sink, file of its certificate authority, requests in flight.
 */
import { readFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { createInterface } from 'node:readline';

const [port, authority, streams] = process.argv.slice(2);
const session = connect(`https://127.0.0.1:${port}`, { ca: readFileSync(authority!) });
// The value has the length of a header with a signed token.
const authorization = `bearer ${'t'.repeat(190)}`;
let sent = 0;

function send(n: number): Promise<void> {
  const body = JSON.stringify({
    aps: {
      alert: { title: 'Group 1', body: `Webhook: message ${n}: load on web-1 is above its threshold` },
      'thread-id': 'c1',
      'mutable-content': 1,
      badge: 1,
    },
    conversation: 1,
    first_seq: n,
    last_seq: n,
  });
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': `/3/device/${n.toString(16).padStart(64, '0')}`,
      'content-type': 'application/json',
      'apns-topic': 'org.example.chat',
      'apns-push-type': 'alert',
      'apns-priority': '5',
      'apns-expiration': '1900000000',
      'apns-collapse-id': 'c1',
      'user-agent': 'Klatch/0',
      authorization,
    });
    let status: number | undefined;
    stream.once('response', (headers) => (status = headers[':status']));
    stream.once('error', reject);
    stream.once('end', () => (status === 200 ? resolve() : reject(new Error(`status ${status}`))));
    stream.resume();
    stream.end(body);
  });
}

/** For a line `send N` the program sends N pushes, and answers with the seconds that they took. */
createInterface({ input: process.stdin }).on('line', (line) => {
  const end = sent + Number(line.split(' ')[1]);
  const started = performance.now();
  const stream = async (): Promise<void> => {
    while (sent < end) {
      sent += 1;
      await send(sent);
    }
  };
  void Promise.all(Array.from({ length: Number(streams) }, stream)).then(() =>
    console.log((performance.now() - started) / 1000),
  );
});
session.once('remoteSettings', () => console.log('ready'));
process.on('SIGTERM', () => process.exit(0));
