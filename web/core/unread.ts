import type { Conversation, LastMessage, Message } from '../../client/core/shapes.ts';

/** As many characters of the newest message as the server lists. */
const PREVIEW_LENGTH = 200;

/** A conversation with what this page knows of it: from the list, and from what came since. */
export interface ConversationEntry {
  readonly info: Conversation;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly lastAt: string | null;
  /** The newest message as the list shows it; null: there is none, or the server does not say. */
  readonly lastMessage: LastMessage | null;
  readonly readSeq: number;
  /** Unread messages that mention the account. */
  readonly mentions: number;
}

/** Who reads. */
interface Reader {
  readonly id: number;
  readonly nick: string;
}

/** A conversation as the server lists it, over what came meanwhile: a list may be older than a change that was heard. */
export function withListed(known: ConversationEntry | undefined, info: Conversation): ConversationEntry {
  const listed: ConversationEntry = {
    info,
    firstSeq: info.first_seq ?? 1,
    lastSeq: info.last_seq,
    lastAt: info.last_at,
    lastMessage: info.last_message ?? null,
    readSeq: info.read_seq ?? info.last_seq - info.unread,
    mentions: info.unread_mentions ?? 0,
  };
  if (known === undefined) return listed;
  const isOlder = known.lastSeq > listed.lastSeq || known.readSeq > listed.readSeq;
  return {
    info,
    firstSeq: Math.max(known.firstSeq, listed.firstSeq),
    lastSeq: Math.max(known.lastSeq, listed.lastSeq),
    lastAt: known.lastSeq > listed.lastSeq ? known.lastAt : listed.lastAt,
    // Of two of the same message the known one may have been edited since the list was made.
    lastMessage: known.lastSeq >= listed.lastSeq ? (known.lastMessage ?? listed.lastMessage) : listed.lastMessage,
    readSeq: Math.max(known.readSeq, listed.readSeq),
    mentions: isOlder ? known.mentions : listed.mentions,
  };
}

/** After a message came or changed. The server takes what its author sent for read by them. */
export function withMessage(entry: ConversationEntry, message: Message, reader: Reader): ConversationEntry {
  const { seq, sender, sent_at: lastAt, mentions = [] } = message;
  if (seq < entry.lastSeq) return entry;
  const lastMessage = asLastMessage(message);
  if (seq === entry.lastSeq) return { ...entry, lastMessage };
  if (sender.kind === 'user' && sender.id === reader.id)
    return { ...entry, lastSeq: seq, lastAt, lastMessage, readSeq: seq, mentions: 0 };
  const isMention = seq > entry.readSeq && mentions.some((nick) => nick.toLowerCase() === reader.nick.toLowerCase());
  return { ...entry, lastSeq: seq, lastAt, lastMessage, mentions: entry.mentions + (isMention ? 1 : 0) };
}

function asLastMessage({ seq, sender, label, text, deleted, attachments = [] }: Message): LastMessage {
  return {
    seq,
    sender,
    text: text.slice(0, PREVIEW_LENGTH),
    attachments: attachments.length,
    ...(label === undefined ? {} : { label }),
    ...(deleted === undefined ? {} : { deleted }),
  };
}

/** After the account has read up to a message, here or on another device. */
export function withRead(entry: ConversationEntry, seq: number): ConversationEntry {
  if (seq <= entry.readSeq) return entry;
  return { ...entry, readSeq: seq, mentions: seq >= entry.lastSeq ? 0 : entry.mentions };
}

/** How many messages are unread. */
export function unreadOf({ lastSeq, readSeq, firstSeq }: ConversationEntry): number {
  return Math.max(0, lastSeq - Math.max(readSeq, firstSeq - 1));
}

/** Messages that wait for this person: all of private conversations, and mentions. The title of the page counts them. */
export function waitingOf(entry: ConversationEntry): number {
  return entry.info.kind === 'private' ? unreadOf(entry) : entry.mentions;
}

/** Compares for a list in which the conversation that was written in last comes first. */
export function byActivity(a: ConversationEntry, b: ConversationEntry): number {
  return (b.lastAt ?? '').localeCompare(a.lastAt ?? '') || a.info.id - b.info.id;
}
