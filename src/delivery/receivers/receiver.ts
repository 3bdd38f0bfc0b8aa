import { setTimeout as wait } from 'node:timers/promises';
import type { Log } from '../../log.ts';
import { messageId, type LogEpoch, type Seq } from '../../model/ids.ts';
import { hookToken } from '../../model/hook-secret.ts';
import type { DeliveryClient, HttpAttemptOutcome } from '../../outbound/delivery-client.ts';
import type { ReceiverFormat, ReceiverHook } from '../../receivers/core/receiver-format.ts';
import type { PostReply, ReplyProblem } from '../../receivers/core/reply.ts';
import { findTrigger } from '../../receivers/triggers.ts';
import type { DeliveryMessage, LaneRow } from '../../storage/hooks/lanes.ts';
import type { SigningKeys } from '../headers.ts';
import type { CreateFileLink } from '../payload.ts';

interface ReceiverDeps {
  readonly client: DeliveryClient;
  readonly createFileLink: CreateFileLink;
  readonly postReply: PostReply;
  /** True once the lane is retired. Its successor then sends every message again that is not settled. */
  readonly isRetired: () => boolean;
  readonly log: Log;
}

/** The message that the receiver answered with a reply; `last` is its seq. */
interface DeliveredMessage {
  readonly last: Seq;
  readonly logEpoch: LogEpoch;
  readonly hops: number;
}

/** An answer of more bytes than this is not read as a reply. */
const MAX_ANSWER_BYTES = 256 * 1024;
/**
 * Pause between two tries to post a reply. A try fails while the database is unreachable or the group has too many
 * replies.
 */
const REPLY_RETRY_MS = 500;

/** The receiver of a hook with another product's format: it selects and encodes messages, and posts replies. */
export class Receiver {
  readonly #row: LaneRow;
  readonly #format: ReceiverFormat;
  readonly #hook: ReceiverHook;
  readonly #requestUrl: string;
  readonly #deps: ReceiverDeps;

  constructor(row: LaneRow, format: ReceiverFormat, keys: SigningKeys, deps: ReceiverDeps) {
    const url = new URL(row.url);
    this.#row = row;
    this.#format = format;
    this.#hook = { url, token: hookToken(keys.current) };
    this.#requestUrl = format.requestUrl(url);
    this.#deps = deps;
  }

  /** False for a message that the receiver does not get: it is deleted, or begins with none of the hook's triggers. */
  takes({ deliveredAsDeleted, text }: DeliveryMessage): boolean {
    const { triggers } = this.#row;
    return !deliveredAsDeleted && (triggers.length === 0 || findTrigger(text, triggers) !== null);
  }

  isTooOld({ sentAt }: DeliveryMessage): boolean {
    const { maxAgeS } = this.#row;
    return maxAgeS !== null && Date.now() - sentAt.getTime() > maxAgeS * 1_000;
  }

  encode(message: DeliveryMessage): Buffer {
    const { conversationId, triggers } = this.#row;
    const { seq, logEpoch, sentAt, text, title, label, iconUrl, senderId, senderName, senderNick, senderKind } =
      message;
    const files = (message.attachments ?? []).map((file) => {
      return { id: file.id, name: file.name, url: this.#deps.createFileLink(conversationId, file) };
    });
    const body = this.#format.body(
      {
        id: messageId(conversationId, seq, logEpoch),
        sentAt,
        text,
        trigger: findTrigger(text, triggers) ?? '',
        files,
        group: { id: conversationId, title },
        sender: { id: senderId, name: senderName, nick: senderNick, kind: senderKind, label, iconUrl },
      },
      this.#hook,
    );
    return Buffer.from(body);
  }

  post(headers: Record<string, string>, body: Buffer, beforeWrite: () => boolean): Promise<HttpAttemptOutcome> {
    const keptAnswerBytes = this.#format.readReply === null ? undefined : MAX_ANSWER_BYTES;
    const all = { ...headers, ...this.#format.headers };
    return this.#deps.client.post(this.#requestUrl, all, body, beforeWrite, keptAnswerBytes);
  }

  /**
   * Posts the reply in a delivery's answer into the group, and repeats failed tries. Otherwise the message would be
   * sent again, and its receiver would act twice. `unknown`: the lane was retired before the reply was posted, so the
   * delivery must not be settled.
   */
  async postReply(
    { last: seq, logEpoch, hops }: DeliveredMessage,
    { answer }: HttpAttemptOutcome,
  ): Promise<ReplyProblem | 'unknown' | null> {
    if (answer === undefined) return null;
    if (typeof answer === 'string') return `reply ${answer}`;
    const { id: hookId, conversationId } = this.#row;
    const received = { conversationId, hookId, format: this.#format.name, seq, logEpoch, hops, body: answer };
    for (;;) {
      try {
        return await this.#deps.postReply(received);
      } catch (error) {
        this.#deps.log.debug('a reply cannot be posted, repeating', { hook: hookId, error });
        if (this.#deps.isRetired()) return 'unknown';
      }
      await wait(REPLY_RETRY_MS);
    }
  }
}
