import type { Conversation, LastMessage, Message } from '../../client/core/shapes.ts';

/** The maximum number of characters of the newest message in the server's list of conversations. */
const PREVIEW_LENGTH = 200;

/** The state of a conversation, from the server's list and from the changes after that list. */
export interface ConversationEntry {
  readonly info: Conversation;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly lastAt: string | null;
  /**
   * The newest message, as the list of conversations shows it; null: there is none, or an older server did not send it.
   */
  readonly lastMessage: LastMessage | null;
  readonly readSeq: number;
  /** The number of unread messages that mention the account. */
  readonly unreadMentionCount: number;
}

/** The signed-in account, which reads the messages. */
interface ReadingAccount {
  readonly id: number;
  readonly nick: string;
}

/**
 * Merges a conversation from the server's list into the page's entry. A change that has arrived may be newer than the
 * list.
 */
export function withListed(known: ConversationEntry | undefined, info: Conversation): ConversationEntry {
  const listed: ConversationEntry = {
    info,
    firstSeq: info.first_seq ?? 1,
    lastSeq: info.last_seq,
    lastAt: info.last_at,
    lastMessage: info.last_message ?? null,
    readSeq: info.read_seq ?? info.last_seq - info.unread,
    unreadMentionCount: info.unread_mentions ?? 0,
  };
  if (known === undefined) return listed;
  const isListOlder = known.lastSeq > listed.lastSeq || known.readSeq > listed.readSeq;
  return {
    info,
    firstSeq: Math.max(known.firstSeq, listed.firstSeq),
    lastSeq: Math.max(known.lastSeq, listed.lastSeq),
    lastAt: known.lastSeq > listed.lastSeq ? known.lastAt : listed.lastAt,
    // If both entries have the same last message, an edit after the list was made is only in the page's entry.
    lastMessage: known.lastSeq >= listed.lastSeq ? (known.lastMessage ?? listed.lastMessage) : listed.lastMessage,
    readSeq: Math.max(known.readSeq, listed.readSeq),
    unreadMentionCount: isListOlder ? known.unreadMentionCount : listed.unreadMentionCount,
  };
}

/** The entry after a message arrived or changed. The server counts a message as read by its sender. */
export function withMessage(entry: ConversationEntry, message: Message, reader: ReadingAccount): ConversationEntry {
  const { seq, sender, sent_at: lastAt, mentions = [] } = message;
  if (seq < entry.lastSeq) return entry;
  const lastMessage = asLastMessage(message);
  if (seq === entry.lastSeq) return { ...entry, lastMessage };
  if (sender.kind === 'user' && sender.id === reader.id)
    return { ...entry, lastSeq: seq, lastAt, lastMessage, readSeq: seq, unreadMentionCount: 0 };
  const isMention = seq > entry.readSeq && mentions.some((nick) => nick.toLowerCase() === reader.nick.toLowerCase());
  return {
    ...entry,
    lastSeq: seq,
    lastAt,
    lastMessage,
    unreadMentionCount: entry.unreadMentionCount + (isMention ? 1 : 0),
  };
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

/** The entry after the account has read up to a message, here or on another device. */
export function withRead(entry: ConversationEntry, seq: number): ConversationEntry {
  if (seq <= entry.readSeq) return entry;
  return { ...entry, readSeq: seq, unreadMentionCount: seq >= entry.lastSeq ? 0 : entry.unreadMentionCount };
}

/** The number of unread messages of a conversation, without those that retention has removed. */
export function unreadOf({ lastSeq, readSeq, firstSeq }: ConversationEntry): number {
  return Math.max(0, lastSeq - Math.max(readSeq, firstSeq - 1));
}

/**
 * The number of messages of a conversation that the page's title counts: all unread ones of a private conversation, in
 * a group only mentions.
 */
export function titleCountOf(entry: ConversationEntry): number {
  return entry.info.kind === 'private' ? unreadOf(entry) : entry.unreadMentionCount;
}

/** The number that the page's title shows. */
export function titleCountOfAll(entries: readonly ConversationEntry[]): number {
  return entries.reduce((sum, entry) => sum + titleCountOf(entry), 0);
}

/**
 * Compares two entries for a list in which the conversation with the newest message comes first. One without messages
 * has the place of its creation.
 */
export function byActivity(a: ConversationEntry, b: ConversationEntry): number {
  return activityOf(b).localeCompare(activityOf(a)) || a.info.id - b.info.id;
}

const activityOf = ({ lastAt, info }: ConversationEntry): string => lastAt ?? info.created_at ?? '';
