import { LocalBus } from '../../src/bus/bus.ts';
import type { PushConfig } from '../../src/config/services.ts';
import { silentLog } from '../../src/log.ts';
import { deviceKinds, type DeviceKind, type ConversationNotificationLevel } from '../../src/model/device.ts';
import type { AccountId, ConversationId, DeviceId, Seq } from '../../src/model/ids.ts';
import { PushQueue, type PushQueueDeps } from '../../src/push/queue.ts';
import type { PushVendor } from '../../src/push/vendors/vendor.ts';
import type { Database } from '../../src/storage/database.ts';
import { MessageLog } from '../../src/storage/messages/message-log.ts';
import { Sealer } from '../../src/storage/db/sealed.ts';
import { logOptions, makeGroups, makeMembers, post, sha256, type StoredGroup } from '../storage/fixture.ts';
import { testConfig } from '../support/config.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { Receiver, type Arrival } from '../support/receiver.ts';
import { HttpVendor, type GotPush } from './http-vendor.ts';

export const SECRET = 'a secret of the stage of pushes';

/** A push that the service of a vendor got. */
export interface Got {
  readonly kind: DeviceKind;
  readonly token: string;
  readonly note: GotPush;
}

/**
 * A stage for tests of the push queue: a database with a group, a log that records its lines, and a service for each
 * vendor. Tests start queues on it.
 */
export class PushStage {
  readonly database: TestDatabase;
  readonly pools: Database;
  readonly bus = new LocalBus();
  group: StoredGroup;
  readonly services: ReadonlyMap<DeviceKind, Receiver>;
  /** The accounts that use Klatch in the foreground, and so get no push. */
  readonly foreground = new Set<AccountId>();
  readonly log: MessageLog;
  readonly #queues: PushQueue[] = [];
  #devices = 0;

  private constructor(
    database: TestDatabase,
    parts: { group: StoredGroup; services: ReadonlyMap<DeviceKind, Receiver> },
  ) {
    this.database = database;
    this.pools = database.open();
    this.group = parts.group;
    this.services = parts.services;
    this.log = new MessageLog(
      this.pools.intake,
      logOptions({ onCommitted: (heads) => this.bus.publish('messagesCommitted', heads) }),
    );
  }

  /** Opens a stage. Its end drops the database, also a given one. */
  static async open(given?: TestDatabase): Promise<PushStage> {
    const database = given ?? (await createTestDatabase());
    const [group] = await makeGroups(database, 1);
    const services = await Promise.all(deviceKinds.map(async (kind) => [kind, await Receiver.start()] as const));
    return new PushStage(database, { group: group!, services: new Map(services) });
  }

  /** Stops the queues and empties the database: that is faster than a new database for each test. */
  async clear(): Promise<void> {
    for (const queue of this.#queues.splice(0)) await queue.stop(5_000);
    this.foreground.clear();
    this.#devices = 0;
    for (const service of this.services.values()) {
      service.arrivals.splice(0);
      service.answer = () => 200;
    }
    await this.database.query(
      (sql) => sql`truncate account, conversation, message, notice, push_pending, push_log restart identity cascade`,
    );
    [this.group] = (await makeGroups(this.database, 1)) as [StoredGroup];
  }

  async close(): Promise<void> {
    for (const queue of this.#queues) await queue.stop(5_000);
    await this.log.stop();
    for (const service of this.services.values()) await service.stop();
    await this.database.drop();
  }

  /** Starts a queue with short waits. */
  start(config: Partial<PushConfig> = {}, changes: Partial<PushQueueDeps> = {}, known = true): PushQueue {
    const base = testConfig(this.database.target, '/nowhere').push;
    const settings: PushConfig = { ...base, pushRetryDelaysMs: [50], timeoutMs: 5_000, ...config };
    const vendors = deviceKinds.map((kind): [DeviceKind, PushVendor] => [
      kind,
      new HttpVendor(kind, () => this.service(kind).url(''), settings.timeoutMs),
    ]);
    const queue = new PushQueue({
      database: this.pools,
      bus: this.bus,
      sealer: new Sealer(SECRET),
      config: settings,
      projectName: 'Klatch under test',
      vendors: new Map(vendors),
      foreground: () => this.foreground,
      maxPresenceStalenessMs: 60_000,
      postsWaiting: () => this.log.depth,
      log: silentLog(),
      ...changes,
    });
    this.#queues.push(queue);
    // The queue is told that a device was registered at this node, so that no test waits until the queue finds one.
    if (known) queue.onDeviceRegistered();
    queue.start();
    return queue;
  }

  service(kind: DeviceKind): Receiver {
    return this.services.get(kind)!;
  }

  members(...nicks: string[]): Promise<AccountId[]> {
    return makeMembers(this.database, this.group, nicks);
  }

  /** Registers a device. By default its token is `<kind>-<number>`. */
  async device(account: AccountId, kind: DeviceKind = 'web', token?: string): Promise<{ id: DeviceId; token: string }> {
    this.#devices += 1;
    const known = token ?? `${kind}-${this.#devices}`;
    const sealed = new Sealer(SECRET).seal('device-token', known);
    const id = await this.database.query(async (sql) => {
      const [session] = await sql<{ id: number }[]>`
        insert into session (account_id, token_hash, label) values (${account}, ${sha256(known)}, 'test') returning id`;
      const [device] = await sql<{ id: DeviceId }[]>`
        insert into device (account_id, session_id, kind, token_hash, token_sealed, label)
        values (${account}, ${session!.id}, ${kind}, ${sha256(known)}, ${sealed}, ${`${kind} of ${account}`})
        returning id`;
      return device!.id;
    });
    return { id, token: known };
  }

  /** Posts as the integration of the group, or as a member. Resolves with the seq. */
  async post(text: string, sender: AccountId | null = null, group = this.group): Promise<Seq> {
    const changes = sender === null ? {} : { admission: null, senderId: sender };
    const posted = await this.log.append(post(group, text, changes));
    if (posted.outcome !== 'new') throw new Error(`the post was ${posted.outcome}`);
    return posted.seq;
  }

  /** Moves a read position as the operation does. `silent`: without the notification. */
  async read(account: AccountId, seq: Seq, options: { silent?: boolean } = {}): Promise<void> {
    const conversationId = this.group.id;
    await this.database.query(
      (sql) => sql`
      update membership set read_seq = ${seq} where conversation_id = ${conversationId} and account_id = ${account}`,
    );
    if (options.silent === true) return;
    this.bus.publish('ephemeral', { kind: 'read', conversationId, accountId: account, seq });
  }

  async setting(
    account: AccountId,
    level: ConversationNotificationLevel,
    mutedForS: number | null = null,
  ): Promise<void> {
    await this.database.query(
      (sql) => sql`
      insert into notification_setting (conversation_id, account_id, level, muted_until)
      values (${this.group.id}, ${account}, ${level}, now() + ${mutedForS}::int * interval '1 second')
      on conflict (conversation_id, account_id) do update
      set level = excluded.level, muted_until = excluded.muted_until`,
    );
  }

  /** The pushes that the services have got so far, optionally of one vendor. */
  got(kind?: DeviceKind): Got[] {
    return deviceKinds
      .filter((each) => kind === undefined || each === kind)
      .flatMap((each) => this.service(each).arrivals.map((arrival) => gotOf(each, arrival)));
  }

  /** The rows of pushes that wait, from push_pending. */
  async pending(): Promise<PendingRow[]> {
    return this.database.query(async (sql) => [
      ...(await sql<PendingRow[]>`
        select device_id as "deviceId", conversation_id as "conversationId", kind, first_seq as "firstSeq",
          last_seq as "lastSeq", attempts, claim_number as "claimNumber", extract(epoch from next_at - now())::float8 as "dueInS"
        from push_pending order by device_id, conversation_id`),
    ]);
  }

  /**
   * Resolves when the fan-out (the worker that writes the rows) has processed all messages up to this seq, and no row
   * waits.
   */
  async settled(upTo: number): Promise<void> {
    await this.setForeground(upTo);
    await eventually(
      () => this.pending(),
      (rows) => rows.length === 0,
    );
  }

  async setForeground(upTo: number): Promise<void> {
    await eventually(
      () => this.cursor(),
      (seq) => seq === upTo,
    );
  }

  /** Resolves with the waiting rows, when there are this many. */
  async waits(count: number): Promise<PendingRow[]> {
    return eventually(
      () => this.pending(),
      (rows) => rows.length === count,
    );
  }

  /** The token of the device and the text of each push. */
  told(): [string, string | null][] {
    return this.got().map(({ token, note }) => [token, note.text]);
  }

  /** The seq up to which the fan-out has processed the group. */
  async cursor(conversation: ConversationId = this.group.id): Promise<number> {
    return this.database.query(async (sql) => {
      const [row] = await sql<{ seq: number }[]>`
        select pushed_seq as seq from push_cursor where conversation_id = ${conversation}`;
      return row?.seq ?? 0;
    });
  }

  /** The log of failures, oldest first. */
  async logged(): Promise<
    { account: AccountId; kind: string; event: string; category: string; code: number | null }[]
  > {
    return this.database.query(async (sql) => [
      ...(await sql<{ account: AccountId; kind: string; event: string; category: string; code: number | null }[]>`
        select account_id as account, kind, event, category, code from push_log order by id`),
    ]);
  }
}

export interface PendingRow {
  readonly deviceId: DeviceId;
  readonly conversationId: ConversationId;
  readonly kind: DeviceKind;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly attempts: number;
  readonly claimNumber: number;
  readonly dueInS: number;
}

function gotOf(kind: DeviceKind, { path, body }: Arrival): Got {
  return { kind, token: decodeURIComponent(path.slice(1)), note: body as GotPush };
}
