import type { Bus } from '../bus/bus.ts';
import {
  BrokenWitnessFileError,
  readWitnessFile,
  writeWitnessFile,
  type WitnessFileContent,
} from '../data-dir/witness-file.ts';
import type { Log } from '../log.ts';
import type { ConversationId, LogEpoch } from '../model/ids.ts';
import type { Database } from '../storage/database.ts';
import { findStoreId, UNASSIGNED_STORE_ID } from '../storage/files/store-id.ts';
import { readLogEpoch } from '../storage/messages/log-epoch.ts';
import { readHeads } from '../storage/messages/lost-heads.ts';

const WRITE_INTERVAL_MS = 1_000;
/**
 * Before each write of the file, the keeper reads at most this many conversations from the database. They are those
 * that changed last, since a failover loses the newest changes first.
 */
const MAX_LOOKUPS_PER_WRITE = 200;
const LOOKUP_TIMEOUT_MS = 1_000;
/** The time-out of the query that `load` makes at a start. */
const LOAD_TIMEOUT_MS = 20_000;

export interface WitnessKeeperDeps {
  readonly database: Database;
  readonly bus: Bus;
  readonly dataDir: string;
  readonly log: Log;
}

/**
 * Records in the witness the changes that this node commits and that other nodes announce. Once a second it writes the
 * witness to a file in the data directory, if the witness has changed. For a post, this costs an entry in a map.
 *
 * Before a write, the keeper reads from the database what notifications do not contain, such as times. It cannot take a
 * new change for a lost one with the same number, since such changes exist only in a new timeline. There, only the
 * connection pool for leases works until all heads have been compared.
 */
export class WitnessKeeper {
  readonly #deps: WitnessKeeperDeps;
  #storeId: string | null = null;
  #writtenVersion = 0;
  #writing: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #unsubscribe: () => void = () => {};
  #hasWarned = false;
  #isLookupFailing = false;

  constructor(deps: WitnessKeeperDeps) {
    this.#deps = deps;
  }

  /**
   * Loads the witness from the file that the last process wrote. Ignores the file, and logs it, if it is broken or of
   * another database.
   */
  async load(): Promise<void> {
    const { database, dataDir, log } = this.#deps;
    let content: WitnessFileContent | null;
    try {
      content = await readWitnessFile(dataDir);
    } catch (error) {
      if (!(error instanceof BrokenWitnessFileError)) throw error;
      log.warn(
        'what the server knew of the log before cannot be used: whether anything of it is lost is not compared',
        {
          error,
        },
      );
      return;
    }
    if (content === null) return;
    this.#storeId = await database.lease.run(findAssignedStoreId, LOAD_TIMEOUT_MS);
    if (content.storeId !== this.#storeId) {
      log.info('what the server knew of the log is of another database, and is not compared with this one');
      return;
    }
    const { witness } = database;
    witness.logEpoch = content.logEpoch as LogEpoch;
    witness.load(
      content.heads.map(([conversationId, seq, sentAtMs, rev, changedSeq, changedAtMs]) => {
        return { conversationId: conversationId as ConversationId, seq, sentAtMs, rev, changedSeq, changedAtMs };
      }),
    );
  }

  start(): void {
    const { bus, database } = this.#deps;
    const { witness } = database;
    this.#unsubscribe = bus.subscribe({
      messagesCommitted: (newestSeqs) => {
        for (const [conversationId, seq] of newestSeqs) witness.recordMessage(conversationId, seq);
      },
      nonMessageChangesCommitted: (conversationIds) => {
        for (const id of conversationIds) witness.recordUnknownChange(id);
      },
    });
    this.#timer = setInterval(() => this.#startWrite(), WRITE_INTERVAL_MS);
    this.#timer.unref();
  }

  /** Stops the keeper, and writes the changes that are not in the file yet. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#unsubscribe();
    await this.#writing;
    this.#startWrite();
    await this.#writing;
  }

  /** Starts a write, unless one is under way or nothing has changed. */
  #startWrite(): void {
    const { version, hasIncomplete } = this.#deps.database.witness;
    if (this.#writing !== null || (version === this.#writtenVersion && !hasIncomplete)) return;
    this.#writing = this.#writeWitness().finally(() => (this.#writing = null));
  }

  async #writeWitness(): Promise<void> {
    const { database, dataDir, log } = this.#deps;
    const { witness } = database;
    await this.#lookUpIncomplete();
    const { version } = witness;
    if (this.#storeId === null || version === this.#writtenVersion) return;
    const heads = witness.heads.map(
      ({ conversationId, seq, sentAtMs, rev, changedSeq, changedAtMs }) =>
        [conversationId, seq, sentAtMs, rev, changedSeq, changedAtMs] as [
          number,
          number,
          number,
          number,
          number,
          number,
        ],
    );
    try {
      await writeWitnessFile(dataDir, { storeId: this.#storeId, logEpoch: witness.logEpoch, heads });
      this.#writtenVersion = version;
      this.#hasWarned = false;
    } catch (error) {
      if (!this.#hasWarned) {
        log.warn('what this server knows of the log cannot be written to data-dir: a loss may stay unnoticed', {
          error,
        });
      }
      this.#hasWarned = true;
    }
  }

  /**
   * Reads from the database the newest conversations of which the witness lacks facts. If that fails, they are read
   * before the next write.
   */
  async #lookUpIncomplete(): Promise<void> {
    const { database, log } = this.#deps;
    const { witness, general } = database;
    const incomplete = witness.takeNewestIncomplete(MAX_LOOKUPS_PER_WRITE);
    try {
      await general.run(async (sql) => {
        this.#storeId ??= await findAssignedStoreId(sql);
        const epoch = await readLogEpoch(sql);
        const heads = incomplete.length === 0 ? [] : await readHeads(sql, incomplete);
        witness.logEpoch = epoch;
        witness.load(heads);
      }, LOOKUP_TIMEOUT_MS);
      this.#isLookupFailing = false;
    } catch (error) {
      if (!this.#isLookupFailing) log.info('the newest changes cannot be read for the witness, repeating', { error });
      this.#isLookupFailing = true;
      witness.putBackIncomplete(incomplete);
    }
  }
}

async function findAssignedStoreId(sql: Parameters<typeof findStoreId>[0]): Promise<string | null> {
  const id = await findStoreId(sql);
  return id === UNASSIGNED_STORE_ID ? null : id;
}
