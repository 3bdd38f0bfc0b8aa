import { asSuperuser } from '../seed-data.ts';
import type { Condition } from './page-probe.ts';
import type { ServerProcess } from '../../test/support/server-process.ts';

/** A group of the benchmark with its messages. */
export interface BenchConversation {
  readonly id: number;
  readonly title: string;
  readonly webhook: string;
  /** The last seq when the conversation was created. */
  readonly messages: number;
  /** Parts of the texts of the last message and of the eighth from the end; no other message has them. */
  readonly newestTexts: readonly string[];
}

/** The distances from the end of the messages whose texts show that a page has its newest messages. */
const FROM_END = [0, 7];

export function newestTexts(textOf: (n: number) => string, messages: number): string[] {
  return FROM_END.map((each) => textOf(messages - each));
}

/** The conditions that a page meets when it shows the newest messages of a conversation. */
export function newestShown(selector: string, { newestTexts: texts }: BenchConversation): Condition[] {
  return texts.map((text) => ({ text: [selector, text] }));
}

/** A part of the text of the nth message of `fillConversation`: unique in all conversations. */
export function messageText(title: string, n: number): string {
  return `message ${n} of ${title}:`;
}

/**
 * Writes messages of several senders into the database, as the server would have written them. The conversation must
 * have none. Each message has one to five sentences. They are 20 seconds apart, and the last one is a day old, so that
 * no sweep finds them.
 */
export async function fillConversation(
  server: ServerProcess,
  { id, title }: { readonly id: number; readonly title: string },
  senders: readonly number[],
  messages: number,
): Promise<void> {
  await asSuperuser(server, async (sql) => {
    await sql`
      insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
      select h.conversation_id, n, h.last_rev + n, (${[...senders]}::bigint[])[1 + (n / 3) % ${senders.length}::int],
        'message ' || n || ${` of ${title}:`}::text || repeat(' load on web-1 is above its threshold.', 1 + (n * 7919 % 17 / 4)::int),
        now() - interval '1 day' - (${messages}::bigint - n) * interval '20 seconds'
      from conversation_head h, generate_series(1, ${messages}::bigint) n
      where h.conversation_id = ${id}::bigint
      order by n`;
    await sql`
      update conversation_head
      set last_seq = ${messages}, last_rev = last_rev + ${messages}, last_at = now() - interval '1 day'
      where conversation_id = ${id}::bigint`;
    await sql`vacuum (analyze) message`;
  });
}

/** The texts of a conversation by seq, from the database. */
export async function storedTexts(server: ServerProcess, conversation: number): Promise<Map<number, string>> {
  const rows = await asSuperuser(
    server,
    (sql) => sql<{ seq: string; text: string }[]>`
      select seq, text from message where conversation_id = ${conversation}::bigint order by seq`,
  );
  return new Map(rows.map(({ seq, text }) => [Number(seq), text]));
}
