import type { ForeignHookFormat } from '../../model/hook-format.ts';
import type { SenderKind } from '../../model/roles.ts';
import type { JsonObject } from '../../callers/core/values.ts';
import type { ReceiverReply } from './reply.ts';

/** A message on its way to a receiver. */
export interface ReceiverMessage {
  /** The conversation's number and the message's seq: `7:42`. */
  readonly id: string;
  readonly sentAt: Date;
  readonly text: string;
  /** The trigger of the hook that it begins with; empty: the hook has none. */
  readonly trigger: string;
  readonly files: readonly ReceiverFile[];
  readonly group: { readonly id: number; readonly title: string };
  readonly sender: ReceiverSender;
}

interface ReceiverFile {
  readonly id: string;
  readonly name: string;
  /** Gives the file to whoever has it, for some days. */
  readonly url: string;
}

interface ReceiverSender {
  readonly id: number;
  readonly name: string;
  readonly nick: string | null;
  readonly kind: SenderKind;
  /** The name and the picture that its post gave itself. */
  readonly label: string | null;
  readonly iconUrl: string | null;
}

/** The hook that gets the message. */
export interface ReceiverHook {
  /** The hook's address, of http or https and without a user. */
  readonly url: URL;
  /** What a receiver recognises our requests by, in formats that have such a field. */
  readonly token: string;
}

/** The format of one product that takes messages. Pure: nothing is sent, stored or remembered, and nothing throws. */
export interface ReceiverFormat {
  readonly name: ForeignHookFormat;
  /** Headers of the POST besides those of every delivery, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** A sentence for people where the address can be none of such a receiver; null: it can. */
  readonly urlProblem: (url: URL) => string | null;
  /** Where the POST goes. */
  readonly requestUrl: (url: URL) => string;
  readonly body: (message: ReceiverMessage, hook: ReceiverHook) => string;
  /**
   * Reads the JSON object of an answer, whose text it cuts at so many UTF-16 units; null: it says nothing. Of formats whose
   * receivers do not reply, null itself.
   */
  readonly readReply: ((answer: JsonObject, maxTextLength: number) => ReceiverReply | null) | null;
}
