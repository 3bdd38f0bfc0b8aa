import type { ForeignHookFormat } from '../../model/hook-format.ts';
import type { ConversationId, HookId, LogEpoch, Seq } from '../../model/ids.ts';

/** The message that a receiver wants to have posted in the group, as the receiver sent it. */
export interface ReceiverReply {
  readonly text: string;
  /** The message's cards, as the database stores them; null: none. */
  readonly cardsJson: string | null;
  readonly label: string | null;
  readonly iconUrl: string | null;
}

/** The answer of a hook's receiver to one message. */
export interface ReceivedAnswer {
  readonly conversationId: ConversationId;
  readonly hookId: HookId;
  readonly format: ForeignHookFormat;
  /** The message that the receiver answers. */
  readonly seq: Seq;
  readonly logEpoch: LogEpoch;
  /** The hop count of the answered message. */
  readonly hops: number;
  readonly body: Buffer;
}

/**
 * The reasons why a reply can never be posted. The delivery log shows the reason as the category of the reply's
 * delivery.
 */
export type ReplyProblem =
  'reply too large' | 'reply incomplete' | 'reply unreadable' | 'reply refused' | 'reply hop limit' | 'group archived';

/**
 * Posts the reply in an answer, once for each answered message. Resolves after the commit: to null if the reply was
 * posted or the answer holds none, else to the problem. Rejects if a later call may succeed.
 */
export type PostReply = (answer: ReceivedAnswer) => Promise<ReplyProblem | null>;
