import type { Scope } from '../../src/model/scopes.ts';
import type { Log } from '../../src/log.ts';
import type { ConfigChanges } from '../support/config.ts';
import { TestGate } from '../support/gate.ts';
import { Receiver } from '../support/receiver.ts';
import { TestServer } from '../support/server.ts';
import { Situation } from './situation.ts';

/** High limits: the real ones have tests of their own, and would refuse calls before the tested check. */
const WIDE: NonNullable<ConfigChanges['limits']> = {
  unknownTokensPerSecondPerSource: 1_000_000,
  sessionRequestBurst: 1_000_000,
  hookRegistrationsPerGroupPerMinute: 10_000,
  hookChangesPerGroupPerMinute: 10_000,
  hooksPerGroup: 10_000,
  botsPerUser: 10_000,
  createdOrJoinedConversationsPerUser: 100_000,
  invitesPerGroup: 10_000,
  codesPerHourPerBudget: 100_000,
  codesPerSourcePerHour: 100_000,
  dailyCodesPerAddressAndNetwork: 100_000,
  intakeTimeoutMs: 60_000,
};

/** A server with what its operations need: a receiver of deliveries, and an activation gate. */
export class Stage {
  readonly server: TestServer;
  readonly gate: TestGate;
  readonly #receiver: Receiver;

  private constructor(server: TestServer, gate: TestGate, receiver: Receiver) {
    this.server = server;
    this.gate = gate;
    this.#receiver = receiver;
  }

  static async set(log?: Log): Promise<Stage> {
    const [gate, receiver] = await Promise.all([TestGate.start(), Receiver.start()]);
    const server = await TestServer.start(
      {
        limits: WIDE,
        registration: 'open',
        activation: gate.config,
        // Devices of this project can register; no push can be sent to them.
        googlePush: { keys: [{ projectId: 'stage', key: '/nowhere.json' }] },
        // The server trusts the test as a proxy, so that each call can name a client address of its own.
        http: { trustedProxies: ['127.0.0.1'], requestToResponseTimeoutMs: 60_000 },
        // Many calls use the same rows at the same time; how long they wait for locks is not the subject of the test.
        postgresql: { lockTimeoutMs: 60_000, databaseCallTimeoutMs: 60_000, flushTimeoutMs: 60_000 },
        log: { level: 'debug' },
      },
      log === undefined ? {} : { log },
    );
    return new Stage(server, gate, receiver);
  }

  /** Makes a situation with new people and a new group. One bot has `scope` and the other lacks it. */
  situation(scope: Scope | null): Promise<Situation> {
    return Situation.make(this.server, scope, this.#receiver.url());
  }

  async strike(): Promise<void> {
    await this.server.stop();
    await Promise.all([this.gate.stop(), this.#receiver.stop()]);
  }
}
