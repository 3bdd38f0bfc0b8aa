import { PostgresBus } from '../../../src/bus/postgres-bus.ts';
import type { PostgresqlConfig } from '../../../src/config/services.ts';
import { silentLog } from '../../../src/log.ts';
import type { AlertChange, AlertStatus, SenderAlert } from '../../../src/model/alert.ts';
import { parseMessageId, type Seq } from '../../../src/model/ids.ts';
import { IntegrationTokenCache } from '../../../src/operations/core/access.ts';
import type { Services } from '../../../src/operations/core/services.ts';
import { AlertWriter, type AlertPost, type AlertTexts } from '../../../src/operations/messages/alert-writer.ts';
import type { PresentedToken } from '../../../src/operations/messages/post-webhook.ts';
import type { Database } from '../../../src/storage/database.ts';
import { MessageLog } from '../../../src/storage/messages/message-log.ts';
import { logOptions, type StoredGroup } from '../../storage/fixture.ts';
import { testConfig } from '../../support/config.ts';
import { Sealer } from '../../../src/storage/db/sealed.ts';
import type { TestDatabase } from '../../support/database.ts';

interface AlertNodeOptions {
  readonly address?: Partial<PostgresqlConfig>;
  readonly intakeTimeoutMs?: number;
  /** The database for reads, if it is not the one for writes. */
  readonly reads?: Database;
}

/** A node with an AlertWriter and its dependencies. Its database may be shared with other nodes. */
export class AlertNode {
  readonly bus: PostgresBus;
  readonly log: MessageLog;
  readonly tokens: IntegrationTokenCache;
  readonly #writer: AlertWriter;

  constructor(database: TestDatabase, { address = {}, intakeTimeoutMs, reads }: AlertNodeOptions = {}) {
    const pools = database.open(address);
    const { limits, ...config } = testConfig(database.target, '/nowhere');
    this.bus = new PostgresBus(pools, silentLog());
    const options = logOptions({ onCommitted: (heads) => this.bus.publish('messagesCommitted', heads) });
    this.log = new MessageLog(pools.intake, options);
    this.tokens = new IntegrationTokenCache(pools.general, this.bus, limits, new Sealer('unused'));
    this.#writer = new AlertWriter({
      database: reads ?? pools,
      bus: this.bus,
      messageLog: this.log,
      tokens: this.tokens,
      config: { ...config, limits: { ...limits, intakeTimeoutMs: intakeTimeoutMs ?? limits.intakeTimeoutMs } },
    } as unknown as Services);
  }

  /** Starts the bus, so that the node notifies other nodes of its writes. */
  async connect(): Promise<void> {
    const listening = new Promise<void>((resolve) => this.bus.subscribe({ resync: () => resolve() }));
    this.bus.start();
    await listening;
  }

  /** Posts to the alert. Resolves to the seq of the message that shows it. */
  async post(access: PresentedToken, alertPost: AlertPost): Promise<Seq> {
    const id = await this.postForId(access, alertPost);
    return parseMessageId(id!)!.seq;
  }

  postForId(access: PresentedToken, alertPost: AlertPost): Promise<string | null> {
    return this.#writer.post(access, alertPost);
  }

  async stop(): Promise<void> {
    this.bus.stop();
    await this.log.stop();
  }
}

/** The access that the token of a group gives which was inserted into the database directly. */
export const accessTo = ({ id, accountId, tokenHash }: StoredGroup): PresentedToken => ({
  integration: {
    conversationId: id,
    accountId,
    tokenHash,
    admission: tokenHash,
    archived: false,
    incomingSecretSealed: null,
    signedOnly: false,
  },
  token: 'none',
});

const STARTS_AT = new Date('2026-11-23T10:00:00Z');
const OCCURRED_AT = new Date('2026-11-23T10:02:00Z');

export const alertNamed = (fingerprint: string, state: AlertStatus = 'firing'): SenderAlert => ({
  fingerprint,
  startsAt: STARTS_AT,
  state,
});

/** A post about the alert `cpu`. */
export function alertPost(
  state: AlertStatus,
  senderAlerts: readonly SenderAlert[],
  changes: Partial<AlertPost> = {},
): AlertPost {
  return {
    label: null,
    iconUrl: null,
    hops: 0,
    key: null,
    bodyHash: null,
    source: 'test',
    alertKey: 'cpu',
    update: { state, senderAlerts, fallbackStartedAt: OCCURRED_AT },
    writeTexts,
    ...changes,
  };
}

/**
 * Makes the texts of an alert: its message, such as `firing: a b`, and another message if the state of the alert has
 * changed.
 */
export function writeTexts({ before, after }: AlertChange): AlertTexts {
  const firing = after.senderAlerts.filter(({ state }) => state === 'firing').map(({ fingerprint }) => fingerprint);
  const hasChanged = before !== null && before.state !== after.state;
  const followUp = hasChanged ? { text: `cpu is ${after.state}`, cardsJson: null } : null;
  return { text: [`${after.state}:`, ...firing.sort()].join(' '), cardsJson: null, followUp };
}
