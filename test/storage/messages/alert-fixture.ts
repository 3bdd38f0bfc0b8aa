import { expect } from '@jest/globals';
import type { PostedAlertState } from '../../../src/model/alert.ts';
import type { ConversationId } from '../../../src/model/ids.ts';
import type { Database } from '../../../src/storage/database.ts';
import { readAlert, type AlertWrite, type StoredAlert } from '../../../src/storage/messages/alerts.ts';
import { MessageLog } from '../../../src/storage/messages/message-log.ts';
import type { Post } from '../../../src/storage/messages/write-posts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { logOptions, makeGroups, post, type StoredGroup } from '../fixture.ts';

// These time-outs are longer than any test: a lock time-out would end the waits that the tests arrange.
const PATIENT = { lockTimeoutMs: 600_000, flushTimeoutMs: 600_000, databaseCallTimeoutMs: 600_000 };
export const SINCE = new Date('2026-11-23T10:02:00Z');

export const stateOf = (changes: Partial<PostedAlertState> = {}): PostedAlertState => ({
  state: 'firing',
  since: SINCE,
  senderAlerts: [],
  ...changes,
});

/** A group with an alert `cpu`, and message logs of several nodes that write to it. */
export class AlertFixture {
  readonly testDatabase: TestDatabase;
  readonly database: Database;
  readonly group: StoredGroup;
  readonly logs: MessageLog[] = [];
  readonly log: MessageLog;

  private constructor(testDatabase: TestDatabase, group: StoredGroup) {
    this.testDatabase = testDatabase;
    this.group = group;
    this.database = testDatabase.open(PATIENT);
    this.log = this.openLog();
  }

  static async start(): Promise<AlertFixture> {
    const testDatabase = await createTestDatabase();
    const [group] = (await makeGroups(testDatabase, 1)) as [StoredGroup];
    return new AlertFixture(testDatabase, group);
  }

  async stop(): Promise<void> {
    for (const log of this.logs.splice(0)) {
      await log.stop();
      expect([log.depth, log.depthBytes]).toEqual([0, 0]);
    }
    await this.testDatabase.drop();
  }

  /** Opens a message log as another node would. */
  openLog(options: Parameters<typeof logOptions>[0] = {}): MessageLog {
    const log = new MessageLog(this.testDatabase.open(PATIENT).intake, logOptions(options));
    this.logs.push(log);
    return log;
  }

  alertPost(text: string, alert: Partial<AlertWrite>, changes: Partial<Post> = {}): Post {
    const write = {
      source: 'test',
      key: 'cpu',
      decidedFrom: null,
      editedText: null,
      editedCardsJson: null,
      state: stateOf(),
    };
    return post(this.group, text, { ...changes, alert: { ...write, newMessage: 'shows-alert', ...alert } });
  }

  /** A post that edits the message of the alert. With a `followUp` it also writes a new message after the edit. */
  edit(from: StoredAlert, editedText: string, followUp: string | null, changes: Partial<Post> = {}): Post {
    const state = stateOf({ state: 'resolved' });
    const newMessage = followUp === null ? 'none' : 'follow-up';
    return this.alertPost(followUp ?? '', { decidedFrom: from, editedText, newMessage, state }, changes);
  }

  /** A post that leaves the alert and its message as they are. */
  unchanged(from: StoredAlert, changes: Partial<Post> = {}): Post {
    return this.alertPost('', { decidedFrom: from, newMessage: 'none', state: null }, changes);
  }

  read(alert: { source: string; key: string } = { source: 'test', key: 'cpu' }): Promise<StoredAlert | null> {
    return this.database.general.run((sql) => readAlert(sql, { conversationId: this.group.id, ...alert }));
  }

  /** Begins the alert with its first message. */
  async begin(): Promise<StoredAlert> {
    await this.log.append(this.alertPost('CPU firing', {}));
    return (await this.read())!;
  }

  /** The messages, each as its seq, its rev, its text, and whether it was edited. */
  async messages(id: ConversationId = this.group.id): Promise<[number, number, string, boolean][]> {
    const rows = await this.testDatabase.query(
      (sql) => sql<{ seq: number; rev: number; text: string; edited: boolean }[]>`
        select seq, rev, text, edited_at is not null as edited from message where conversation_id = ${id} order by seq`,
    );
    return rows.map(({ seq, rev, text, edited }) => [seq, rev, text, edited]);
  }

  async head(): Promise<{ seq: number; rev: number; at: Date }> {
    const [row] = await this.testDatabase.query(
      (sql) => sql<{ seq: number; rev: number; at: Date }[]>`
        select last_seq as seq, last_rev as rev, last_at as at from conversation_head
        where conversation_id = ${this.group.id}`,
    );
    return { ...row! };
  }

  events(): Promise<object[]> {
    return this.testDatabase.query(async (sql) => [
      ...(await sql`select rev, after_seq, seq, kind, actor_id as actor, hops from hook_event order by rev`),
    ]);
  }

  /** Makes the group's hook ask for events. */
  async askForEvents(): Promise<void> {
    await this.testDatabase.query(
      (sql) => sql`update conversation_head set wants_events = true where conversation_id = ${this.group.id}`,
    );
  }
}
