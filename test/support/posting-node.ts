// A process that posts to a message log until standard input is closed: `node posting-node.ts <JSON of PostingPlan>`.
// For each answered post it writes a line `<group> <seq> <text>` at once, so that a kill loses none.
import { writeSync } from 'node:fs';
import { Database } from '../../src/storage/database.ts';
import type { ConnectionTarget } from '../../src/storage/db/connection.ts';
import { silentLog } from '../../src/log.ts';
import { MessageLog } from '../../src/storage/messages/message-log.ts';
import type { Post } from '../../src/storage/messages/write-posts.ts';
import { postgresqlConfig } from './config.ts';

/** The plan that the process gets as its argument. */
export interface PostingPlan {
  readonly name: string;
  readonly target: ConnectionTarget;
  /** Templates that the process uses for its posts in turn; it adds the text. */
  readonly templates: readonly Post[];
  /** The number of callers; each posts one message after the other. */
  readonly callers: number;
  /** True: every post has an idempotency key of its own. */
  readonly keyed: boolean;
}

const { name, target, templates, callers, keyed } = JSON.parse(process.argv[2]!) as PostingPlan;
const database = new Database(target, postgresqlConfig, silentLog());
const log = new MessageLog(database.intake, {
  maxUnansweredPosts: 5_000,
  maxUnansweredBytes: 1024 * 1024,
  maxFlushPosts: 500,
  maxFlushBytes: 1024 * 1024,
  maxQueueWaitMs: 5_000,
  onCommitted: () => {},
});

let next = 0;
let ended = false;
process.stdin.on('end', () => (ended = true)).resume();

async function call(): Promise<void> {
  // oxlint-disable-next-line no-unmodified-loop-condition -- the end of the input does.
  while (!ended) {
    const index = next;
    next += 1;
    const text = `${name}-${index}`;
    const key = keyed ? { key: text, bodyHash: text } : {};
    const post = { ...templates[index % templates.length]!, text, ...key };
    const posted = await log.append(post);
    writeSync(1, `${post.conversationId} ${posted.outcome === 'new' ? posted.seq : posted.outcome} ${post.text}\n`);
  }
}

await Promise.all(Array.from({ length: callers }, call));
await log.stop();
await database.stop();
