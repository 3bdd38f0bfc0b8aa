/**
 * Posts to a message log on the database of a server, without HTTP. Arguments: socket folder, port. For each line
 * `<alert posts in a hundred> <ms>` it posts for that time, and answers with the posts a second. It has as many callers
 * as the benchmark has connections.
 */
import { createInterface } from 'node:readline';
import { LocalBus } from '../../src/bus/bus.ts';
import { silentLog } from '../../src/log.ts';
import { AlertWriter } from '../../src/operations/messages/alert-writer.ts';
import type { PresentedToken } from '../../src/operations/messages/post-webhook.ts';
import type { Services } from '../../src/operations/core/services.ts';
import { Database } from '../../src/storage/database.ts';
import type { Integration } from '../../src/storage/groups/integrations.ts';
import { MessageLog } from '../../src/storage/messages/message-log.ts';
import { postgresqlConfig } from '../../test/support/config.ts';

const CALLERS = 64;
const TIMEOUT_MS = 10_000;
/** The number of alerts of each group. */
const ALERTS = 20;

const [host, port] = process.argv.slice(2);
const target = { host: host!, port: Number(port), database: 'klatch', user: 'klatch', password: '' };
const timeouts = { connectTimeoutMs: TIMEOUT_MS, lockTimeoutMs: TIMEOUT_MS };
const database = new Database({ ...target, ...timeouts }, { ...postgresqlConfig, ...target, ...timeouts }, silentLog());
const messageLog = new MessageLog(database.intake, {
  maxUnansweredPosts: 5_000,
  maxUnansweredBytes: 64 * 1024 * 1024,
  maxFlushPosts: 500,
  maxFlushBytes: 4 * 1024 * 1024,
  maxQueueWaitMs: TIMEOUT_MS,
  onCommitted: () => {},
});
const services = { database, messageLog, bus: new LocalBus(), config: { limits: { intakeTimeoutMs: TIMEOUT_MS } } };
const writer = new AlertWriter(services as unknown as Services);
const integrations = await database.general.run(
  (sql) => sql<Integration[]>`
    select conversation_id as "conversationId", account_id as "accountId", token_hash as "tokenHash",
      token_hash as admission, false as archived, null as "incomingSecretSealed", false as "signedOnly"
    from integration`,
);
const sender = { label: null, iconUrl: null, hops: 0, key: null, bodyHash: null };
const NO_CARDS = { cardsJson: null };

let sent = 0;

async function postPlain({ conversationId, accountId: senderId, tokenHash }: Integration, n: number): Promise<void> {
  const text = `message ${n}, as long as such messages are`;
  const posted = await messageLog.append({
    ...sender,
    ...NO_CARDS,
    conversationId,
    senderId,
    admission: tokenHash,
    text,
    attachments: [],
  });
  if (posted.outcome !== 'new') throw new Error(`a post was ${posted.outcome}`);
}

/**
 * Posts to the groups in turn, and within a group for its alerts in turn. Each alert is reported alternately as firing
 * and as resolved.
 */
async function postAlert(n: number): Promise<void> {
  const access: PresentedToken = { integration: integrations[n % integrations.length]!, token: '' };
  const round = Math.floor(n / integrations.length);
  const isFiring = Math.floor(round / ALERTS) % 2 === 0;
  await writer.post(access, {
    ...sender,
    source: 'bench',
    alertKey: `alert ${round % ALERTS}`,
    update: { state: isFiring ? 'firing' : 'resolved', senderAlerts: [], fallbackStartedAt: new Date() },
    writeTexts: ({ after }) => ({
      text: `alert ${after.state}, change ${n}`,
      ...NO_CARDS,
      followUp: isFiring ? null : { text: 'resolved', ...NO_CARDS },
    }),
  });
}

async function measure(alertsInHundred: number, durationMs: number): Promise<number> {
  const startedAt = performance.now();
  const first = sent;
  const call = async (): Promise<void> => {
    while (performance.now() < startedAt + durationMs) {
      const n = sent++;
      if (n % 100 < alertsInHundred) await postAlert(Math.floor(n / 100));
      else await postPlain(integrations[n % integrations.length]!, n);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
  return ((sent - first) / (performance.now() - startedAt)) * 1_000;
}

console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  const [alertsInHundred, durationMs] = line.split(' ').map(Number) as [number, number];
  console.log(await measure(alertsInHundred, durationMs));
}
