import type { ForeignHookFormat } from '../../model/hook-format.ts';
import type { SenderKind } from '../../model/roles.ts';
import type { JsonObject } from '../../callers/core/values.ts';
import type { ReceiverReply } from './reply.ts';

/** A message on its way to a receiver. */
export interface ReceiverMessage {
  /**
   * The message's public id, such as `7:42`: group and seq. A message of a later log epoch than 0 has `.<epoch>` after
   * it.
   */
  readonly id: string;
  readonly sentAt: Date;
  readonly text: string;
  /** The trigger of the hook that the text begins with; empty if the hook has no triggers. */
  readonly trigger: string;
  readonly files: readonly ReceiverFile[];
  readonly group: { readonly id: number; readonly title: string };
  readonly sender: ReceiverSender;
}

interface ReceiverFile {
  readonly id: string;
  readonly name: string;
  /** A link that is valid for some days; anyone who has it can read the file. */
  readonly url: string;
}

interface ReceiverSender {
  readonly id: number;
  readonly name: string;
  readonly nick: string | null;
  readonly kind: SenderKind;
  /** The name and the picture that the post chose for itself. */
  readonly label: string | null;
  readonly iconUrl: string | null;
}

/** The hook that gets the message. */
export interface ReceiverHook {
  /** The hook's address: http or https, without a user name. */
  readonly url: URL;
  /** The token by which a receiver recognises our requests, in formats that have such a field. */
  readonly token: string;
}

/**
 * The format of one product that takes messages. Its functions are pure: they send, store and remember nothing, and
 * never throw.
 */
export interface ReceiverFormat {
  readonly name: ForeignHookFormat;
  /** The headers of the POST besides those of every delivery, keyed by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The problem with a hook's address, as a sentence for people, if no receiver of this format can have it; else null.
   */
  readonly urlProblem: (url: URL) => string | null;
  /** The URL that the POST goes to, for a hook with this address. */
  readonly requestUrl: (url: URL) => string;
  readonly body: (message: ReceiverMessage, hook: ReceiverHook) => string;
  /**
   * Reads the reply from the JSON object of an answer, and cuts its text at `maxTextLength` UTF-16 units. Returns null
   * if the answer holds no reply. The property itself is null in formats whose receivers do not reply.
   */
  readonly readReply: ((answer: JsonObject, maxTextLength: number) => ReceiverReply | null) | null;
}
