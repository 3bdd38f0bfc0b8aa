import type { Bus } from '../bus/bus.ts';
import { LogFollower } from '../bus/log-follower.ts';
import type { PushConfig } from '../config/services.ts';
import type { Log } from '../log.ts';
import type { DeviceKind } from '../model/device.ts';
import type { AccountId, ConversationId } from '../model/ids.ts';
import type { Pool } from '../storage/db/pool.ts';
import { fanOut, findUnpushedConversations } from '../storage/push/push-fan-out.ts';
import type { AnyDeviceCheck } from './any-device-check.ts';
import { FOREGROUND_HOLD_MS } from './vendor-queue.ts';

/** While no device is registered, the fan-out queries the database at most once in this time. */
const NO_DEVICES_POLL_MS = 1_000;
/**
 * The most conversations in one transaction. The first transaction after a pause has only one, since push senders are
 * idle and wait for its commit.
 */
const MAX_BATCH_CONVERSATIONS = 100;
/**
 * After each turn the fan-out pauses for the duration of the turn, times PAUSE_FACTOR. While posts wait to be written,
 * the factor is BUSY_PAUSE_FACTOR.
 */
const PAUSE_FACTOR = 0.5;
const BUSY_PAUSE_FACTOR = 4;
const SWEEP_INTERVAL_MS = 5 * 60_000;
const DATABASE_RETRY_DELAY_MS = 2_000;

interface PushFanOutDeps {
  readonly pool: Pool;
  readonly bus: Bus;
  readonly config: PushConfig;
  readonly deviceKinds: readonly DeviceKind[];
  readonly anyDeviceCheck: AnyDeviceCheck;
  readonly foreground: () => Iterable<AccountId>;
  readonly postsWaiting: () => number;
  /** Called when rows of `push_pending` were inserted or changed. */
  readonly onPendingRows: () => void;
  readonly log: Log;
}

/**
 * Creates the fan-out: it reads the new messages of each conversation after a cursor, and writes a row of
 * `push_pending` for each device to notify. While no device is registered, it only checks for one.
 */
export function createPushFanOut(deps: PushFanOutDeps): LogFollower {
  const { pool, bus, config, anyDeviceCheck, postsWaiting, log } = deps;
  const { pushDebounceMs, pushExpiresAfterMs: maxAgeMs } = config;
  return new LogFollower({
    bus,
    log,
    events: ['messagesCommitted'],
    findConversations: ({ after: afterId, limit }) =>
      pool.run((sql) => findUnpushedConversations(sql, { afterId, limit, maxAgeMs })),
    process: (conversations) => writePendingRows(deps, conversations),
    maxBatchSize: MAX_BATCH_CONVERSATIONS,
    // Conversations are processed in turn. So each one is processed, even if messages come faster than the fan-out can
    // process them.
    notifiedBeforeSwept: false,
    beforeTurn: () => anyDeviceCheck.isAnyDeviceRegistered(),
    debounceMs: () =>
      anyDeviceCheck.hadDeviceAtLastCheck ? pushDebounceMs : Math.max(pushDebounceMs, NO_DEVICES_POLL_MS),
    pauseFactor: () => (postsWaiting() > 0 ? BUSY_PAUSE_FACTOR : PAUSE_FACTOR),
    sweepIntervalMs: SWEEP_INTERVAL_MS,
    databaseRetryDelayMs: DATABASE_RETRY_DELAY_MS,
    texts: {
      waitsForDatabase: 'messages wait to be turned into pushes',
      conversationSkipped: 'messages could not be turned into pushes',
    },
  });
}

/**
 * Writes rows of `push_pending` for these conversations. Resolves to those conversations that have further new
 * messages, for which no rows were written yet.
 */
async function writePendingRows(
  { pool, config, deviceKinds: kindsToNotify, foreground, onPendingRows }: PushFanOutDeps,
  conversations: readonly ConversationId[],
): Promise<readonly ConversationId[]> {
  const { writtenPushes: rows, conversationsWithMore } = await fanOut(pool, conversations, {
    kindsToNotify,
    foregroundAccounts: [...foreground()],
    foregroundDelayMs: FOREGROUND_HOLD_MS,
    maxAgeMs: config.pushExpiresAfterMs,
  });
  if (rows > 0) onPendingRows();
  return conversationsWithMore;
}
