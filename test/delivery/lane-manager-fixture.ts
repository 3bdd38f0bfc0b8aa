import { LocalBus } from '../../src/bus/bus.ts';
import { LaneManager } from '../../src/delivery/lane-manager.ts';
import { silentLog } from '../../src/log.ts';
import { newHookSecret } from '../../src/model/hook-secret.ts';
import type { HookId } from '../../src/model/ids.ts';
import type { DeliveryClient } from '../../src/outbound/delivery-client.ts';
import { DnsResolver, type ResolveName } from '../../src/outbound/dns-resolver.ts';
import type { Database } from '../../src/storage/database.ts';
import type { NewHook } from '../../src/storage/hooks/hooks.ts';
import { MessageLog, type MessageLogOptions } from '../../src/storage/messages/message-log.ts';
import { Sealer } from '../../src/storage/db/sealed.ts';
import { Fixture } from '../outbound/fixture.ts';
import { logOptions, makeHook, post, type StoredGroup } from '../storage/fixture.ts';
import { testConfig } from '../support/config.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import type { Receiver } from '../support/receiver.ts';

/** Longer than any test: waits that are staged end by what ends them, not by a time-out. */
export const PATIENT_MS = 600_000;
export const SEALER = new Sealer('a secret of the lanes under test');

/** The lanes of one process with their log and their bus, without the rest of a server. */
export class LaneManagerFixture {
  readonly database: TestDatabase;
  readonly bus = new LocalBus();
  readonly log: MessageLog;
  readonly lanes: LaneManager;
  readonly pools: Database;
  readonly #outbound = new Fixture();

  private constructor(database: TestDatabase, resolve: ResolveName | undefined) {
    this.database = database;
    this.pools = database.open({ queryTimeoutMs: PATIENT_MS, flushTimeoutMs: PATIENT_MS, lockTimeoutMs: PATIENT_MS });
    const onCommitted: MessageLogOptions['onCommitted'] = (heads) => this.bus.publish('messagesCommitted', heads);
    this.log = new MessageLog(this.pools.intake, logOptions({ onCommitted }));
    this.lanes = new LaneManager({
      database: this.pools,
      bus: this.bus,
      client: patientClient(this.#outbound, resolve),
      sealer: SEALER,
      serverKeys: [],
      config: { ...testConfig(database.target, '/nowhere').delivery, retryMs: [50] },
      linkFile: () => '',
      node: 'us',
      onSchemaTooNew: () => {},
      log: silentLog(),
    });
  }

  static async start(resolve?: ResolveName): Promise<LaneManagerFixture> {
    const fixture = new LaneManagerFixture(await createTestDatabase(), resolve);
    await fixture.lanes.start();
    return fixture;
  }

  hook(group: StoredGroup, changes: Partial<NewHook>): Promise<HookId> {
    return makeHook(this.database, group, { secretSealed: SEALER.seal('hook-secret', newHookSecret()), ...changes });
  }

  /** Posts to the group until its receiver has got so many more, one after the other. */
  async tick(group: StoredGroup, receiver: Receiver, count: number): Promise<void> {
    for (let n = 0; n < count; n += 1) {
      const before = receiver.arrivals.length;
      await this.log.append(post(group, 'tick'));
      await receiver.received(before + 1);
    }
  }

  async stop(): Promise<void> {
    await this.lanes.stop(5_000);
    await this.log.stop();
    await this.#outbound.close();
    await this.database.drop();
  }
}

/** A client that waits for a name and for an answer as long as a test does. */
export function patientClient(outbound: Fixture, resolve: ResolveName = toLoopback): DeliveryClient {
  const lookup = new DnsResolver({
    timeoutMs: PATIENT_MS,
    cacheMs: 0,
    failureCacheMs: 0,
    concurrency: 8,
    resolve,
  });
  return outbound.client({ lookup, headersTimeoutMs: PATIENT_MS, perHost: 8 });
}

const toLoopback: ResolveName = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]);

/** Look-ups of names that end with `release`. */
export class HeldLookups {
  readonly #begun = Promise.withResolvers<void>();
  readonly #end = Promise.withResolvers<void>();

  /** Resolves when a connection waits for its name. */
  get begun(): Promise<void> {
    return this.#begun.promise;
  }

  readonly resolve: ResolveName = async () => {
    this.#begun.resolve();
    await this.#end.promise;
    return [{ address: '127.0.0.1', family: 4 }];
  };

  release(): void {
    this.#end.resolve();
  }
}
