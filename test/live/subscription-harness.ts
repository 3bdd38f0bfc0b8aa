import { LocalBus } from '../../src/bus/bus.ts';
import { FeedRegistry } from '../../src/live/feed-registry.ts';
import type { LiveConnection } from '../../src/live/transport/live-connection.ts';
import { LiveCounts } from '../../src/live/live-counts.ts';
import type { LiveSessions } from '../../src/live/live-sessions.ts';
import { MembershipSync } from '../../src/live/membership-sync.ts';
import type { EncodedFrames } from '../../src/live/encoded-frames.ts';
import { SessionSubscriptions } from '../../src/live/session-subscriptions.ts';
import type { SendableSession } from '../../src/live/sendable-session.ts';
import { silentLog } from '../../src/log.ts';
import type { AccountId, ConversationId, Rev, Seq } from '../../src/model/ids.ts';
import type { HeadForSubscriptions } from '../../src/storage/groups/conversation-heads.ts';
import { listHeadsOfAccount } from '../../src/storage/groups/conversation-heads.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import { Witness } from '../../src/storage/messages/witness.ts';
import type { TestDatabase } from '../support/database.ts';
import type { StoredGroup } from '../storage/fixture.ts';

/**
 * A connection pool. A test can hold answers back after the database gave them, so that they are out of date when they
 * arrive.
 */
export class DelayedPool {
  readonly #database: TestDatabase;
  #isHolding = false;
  readonly #held: PromiseWithResolvers<void>[] = [];

  constructor(database: TestDatabase) {
    this.#database = database;
  }

  /** Holds back all answers from now on, until `release`. */
  hold(): void {
    this.#isHolding = true;
  }

  /** The number of answers that are held back. */
  get held(): number {
    return this.#held.length;
  }

  /** Lets the oldest answer arrive, and holds later ones back. */
  releaseOne(): void {
    this.#held.shift()?.resolve();
  }

  /** Makes the oldest answer fail, as if it was lost. */
  failOne(): void {
    this.#held.shift()?.reject(new Error('the answer was lost'));
  }

  /** Lets all answers arrive, and holds none back from now on. */
  release(): void {
    this.#isHolding = false;
    for (const answer of this.#held.splice(0)) answer.resolve();
  }

  get pool(): Pool {
    const run: Pool['run'] = async (work) => {
      const result = await this.#database.query(work);
      if (this.#isHolding) {
        const answer = Promise.withResolvers<void>();
        this.#held.push(answer);
        await answer.promise;
      }
      return result;
    };
    return { run } as Pool;
  }
}

/** The session of a client as a feed sees it: it accepts everything at once. */
export class Client implements SendableSession {
  readonly connection = { isFull: false } as LiveConnection;
  readonly accountId: AccountId;
  readonly subscriptions: SessionSubscriptions;
  readonly isOpen = true;
  /** Everything that was sent to the client, in order. */
  readonly sent: { readonly method: string; readonly params: { rev?: number; message?: { text: string } } }[] = [];

  constructor(accountId: AccountId, feeds: FeedRegistry) {
    this.accountId = accountId;
    this.subscriptions = new SessionSubscriptions(this, feeds);
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text) as (typeof this.sent)[number]);
  }

  sendEncoded(frames: EncodedFrames, skip: number): void {
    const lines = frames.bytes('tcp', skip).toString('utf8').trim().split('\n');
    for (const line of lines) this.send(line);
  }

  get texts(): string[] {
    return this.sent.flatMap(({ params }) => params.message?.text ?? []);
  }

  get revs(): number[] {
    return this.sent.filter(({ method }) => method === 'conversation.change').map(({ params }) => params.rev!);
  }

  get methods(): string[] {
    return this.sent.map(({ method }) => method);
  }
}

/** An interval that is longer than any test takes. */
const POLL_MS = 3_600_000;

/** The feeds and memberships of one node over a real database. A test can hold back the answers of the database. */
export class SubscriptionHarness {
  readonly bus = new LocalBus();
  readonly counts = new LiveCounts();
  /** The pool that reads the changes of conversations. */
  readonly changes: DelayedPool;
  /** The pool that reads memberships. */
  readonly members: DelayedPool;
  readonly feeds: FeedRegistry;
  readonly #database: TestDatabase;
  readonly #group: StoredGroup;
  readonly #memberships: MembershipSync;
  readonly #clients: Client[] = [];

  constructor(database: TestDatabase, group: StoredGroup) {
    this.#database = database;
    this.#group = group;
    this.changes = new DelayedPool(database);
    this.members = new DelayedPool(database);
    const [bus, log] = [this.bus, silentLog()];
    // The periodic reads are off: none may repair the states that these tests are about.
    this.feeds = new FeedRegistry({
      bus,
      pool: this.changes.pool,
      counts: this.counts,
      witness: new Witness(),
      log,
      pollIntervalMs: POLL_MS,
    });
    const sessions = { ofAccount: (id: AccountId) => this.#clients.filter(({ accountId }) => accountId === id) };
    const all = sessions as unknown as LiveSessions;
    this.#memberships = new MembershipSync({ bus, pool: this.members.pool, sessions: all, log });
    this.feeds.start();
    this.#memberships.start();
  }

  stop(): void {
    this.changes.release();
    this.members.release();
    this.#memberships.stop();
    this.feeds.stop();
  }

  /** Makes a client follow. `known` is the rev that it has; `whileListing` runs after the heads were read. */
  async follow(
    accountId: AccountId,
    { known, whileListing = async () => {} }: { known?: number; whileListing?: () => Promise<void> } = {},
  ): Promise<Client> {
    const client = new Client(accountId, this.feeds);
    this.#clients.push(client);
    const has = new Map<ConversationId, Rev>(known === undefined ? [] : [[this.#group.id, known as Rev]]);
    await client.subscriptions.load(
      { since: has, default: 'now' },
      async (): Promise<readonly HeadForSubscriptions[]> => {
        const { heads } = await this.#database.query((sql) => listHeadsOfAccount(sql, accountId, 10));
        await whileListing();
        return heads;
      },
    );
    for (const id of client.subscriptions.startFollowingTakingChangedMemberships())
      this.#memberships.recheck(id, accountId);
    return client;
  }

  /** Commits a message without a notification; resolves with its rev. */
  async commit(text: string): Promise<number> {
    const { id, accountId } = this.#group;
    return this.#database.query(async (sql) => {
      const [row] = await sql<{ rev: number }[]>`
        with head as (
          update conversation_head set last_seq = last_seq + 1, last_rev = last_rev + 1 where conversation_id = ${id}
          returning last_seq, last_rev
        )
        insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
        select ${id}, last_seq, last_rev, ${accountId}, ${text}, now() from head returning rev`;
      return row!.rev;
    });
  }

  /** Deletes the newest message, and publishes the notification of that. */
  async deleteNewest(): Promise<void> {
    const { id } = this.#group;
    await this.#database.query(
      (sql) => sql`
        with head as (
          update conversation_head set last_rev = last_rev + 1 where conversation_id = ${id}
          returning last_seq, last_rev
        )
        update message set text = '', deleted_at = clock_timestamp(), rev = head.last_rev
        from head where conversation_id = ${id} and seq = head.last_seq`,
    );
    this.bus.publish('nonMessageChangesCommitted', [id]);
  }

  /** Publishes the notification of a new message. */
  notifyCommitted(): void {
    this.bus.publish('messagesCommitted', new Map([[this.#group.id, 0 as Seq]]));
  }

  /** Publishes the notification that the membership of an account has changed. */
  memberChanged(accountId: AccountId): void {
    this.bus.publish('membersChanged', [{ conversationId: this.#group.id, accountId }]);
  }
}
