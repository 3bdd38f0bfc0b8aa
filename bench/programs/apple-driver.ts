/**
 * Runs only the driver for Apple's service, for the push benchmark. Arguments: port of the sink, file of its
 * certificate authority, file of a .p8 key, requests in flight.
 */
import { createInterface } from 'node:readline';
import type { ConversationId, Seq } from '../../src/model/ids.ts';
import { AppleVendor } from '../../src/push/vendors/apple.ts';

const [port, authority, path, streams] = process.argv.slice(2);
const key = { keyId: 'KEY1234567', teamId: 'TEAM123456', path: path!, bundleId: 'org.example.chat', sandbox: false };
const vendor = new AppleVendor(
  { keys: [key], applePushEndpoint: `https://127.0.0.1:${port}`, extraAppleCaFile: authority! },
  { timeoutMs: 10_000, maxInFlight: Number(streams), userAgent: 'Klatch/0' },
);
let sent = 0;

async function send(n: number): Promise<void> {
  const outcome = await vendor.send(
    { token: n.toString(16).padStart(64, '0'), app: null },
    {
      conversationId: 1 as ConversationId,
      firstSeq: n as Seq,
      lastSeq: n as Seq,
      title: 'Group 1',
      text: `Webhook: message ${n}: load on web-1 is above its threshold`,
      accountUnreadCount: 1,
      urgent: false,
      expiresAt: new Date(1_900_000_000_000),
    },
  );
  if (outcome.outcome !== 'delivered') throw new Error(`a push was ${outcome.outcome}: ${outcome.category}`);
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
console.log(vendor.problem ?? 'ready');
process.on('SIGTERM', () => process.exit(0));
