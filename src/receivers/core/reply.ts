import type { ForeignHookFormat } from '../../model/hook-format.ts';
import type { ConversationId, HookId, LogEpoch, Seq } from '../../model/ids.ts';

/** What a receiver wants to have posted in the group; as it came. */
export interface ReceiverReply {
  readonly text: string;
  /** Its cards as they are stored; null: none. */
  readonly cardsJson: string | null;
  readonly label: string | null;
  readonly iconUrl: string | null;
}

/** What the receiver of a hook answered to one message. */
export interface ReceivedAnswer {
  readonly conversationId: ConversationId;
  readonly hookId: HookId;
  readonly format: ForeignHookFormat;
  /** The message that it answers. */
  readonly seq: Seq;
  readonly logEpoch: LogEpoch;
  /** Of that message. */
  readonly hops: number;
  readonly body: Buffer;
}

/** Why a reply is not posted, and never will be: the category of its delivery in the log. */
export type ReplyProblem =
  'reply too large' | 'reply incomplete' | 'reply unreadable' | 'reply refused' | 'reply hop limit' | 'group archived';

/**
 * Posts the reply that an answer holds, once for each message. Resolves after the commit; null: it is posted, or there is
 * none. Rejects where a later call can post it.
 */
export type PostReply = (answer: ReceivedAnswer) => Promise<ReplyProblem | null>;
