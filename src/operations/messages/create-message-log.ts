import type { Bus } from '../../bus/bus.ts';
import type { LimitsConfig } from '../../config/config.ts';
import type { Database } from '../../storage/database.ts';
import { MessageLog } from '../../storage/messages/message-log.ts';

/**
 * Makes the message log of this node, with the limits of the configuration. It announces on the bus what it commits.
 */
export function createMessageLog(database: Database, bus: Bus, limits: LimitsConfig): MessageLog {
  return new MessageLog(database.intake, {
    maxUnansweredPosts: limits.intakePosts,
    maxUnansweredBytes: limits.intakeBytes,
    maxFlushPosts: limits.maxFlushPosts,
    maxFlushBytes: limits.maxFlushBytes,
    maxQueueWaitMs: limits.intakeTimeoutMs,
    onCommitted: (lastSeqByConversation) => bus.publish('messagesCommitted', lastSeqByConversation),
  });
}
