import { deleteDB, openDB, type DBSchema, type IDBPDatabase } from 'idb';
import type { QueuedMessage } from './send-queue.ts';

/** A text that a person has begun to write. It names its conversation, so that it is never sent to another one. */
export interface Draft {
  readonly account: number;
  readonly conversation: number;
  readonly text: string;
}

interface Schema extends DBSchema {
  drafts: { key: [number, number]; value: Draft };
  unsent: { key: string; value: QueuedMessage };
}

const DATABASE_VERSION = 1;

/**
 * Stores drafts and unsent messages in IndexedDB, so that they survive a restart of the browser. Where IndexedDB fails
 * (a private window, a full disk), and on a shared computer, the page works, but stores nothing.
 */
export class BrowserStore {
  readonly #databaseName: string;
  readonly #database: Promise<IDBPDatabase<Schema> | null>;

  /** `basePathname` distinguishes several servers of one origin. `isPersistent: false`: nothing is stored. */
  constructor(basePathname: string, { isPersistent = true } = {}) {
    this.#databaseName = `klatch${basePathname}`;
    this.#database = isPersistent ? this.#open() : Promise.resolve(null);
  }

  #open(): Promise<IDBPDatabase<Schema> | null> {
    return openDB<Schema>(this.#databaseName, DATABASE_VERSION, {
      upgrade: (database) => {
        database.createObjectStore('drafts', { keyPath: ['account', 'conversation'] });
        database.createObjectStore('unsent', { keyPath: 'clientId' });
      },
      // Closes this connection, for which another tab waits: that tab deletes the database at a sign-out, or upgrades
      // it for a newer page.
      blocking: (_current, _blocked, event) => (event.target as IDBDatabase).close(),
    }).catch(() => null);
  }

  /** Whether this browser stores drafts or unsent messages of an account. */
  async hasTextsOf(account: number): Promise<boolean> {
    const { drafts, unsent } = await this.readAll();
    return [...drafts, ...unsent].some((each) => each.account === account);
  }

  async readAll(): Promise<{ drafts: Draft[]; unsent: QueuedMessage[] }> {
    const found = await this.#attempt(async (database) => {
      // One transaction reads drafts and messages. A text that is stored after this call is not in the result.
      const transaction = database.transaction(['drafts', 'unsent']);
      const [drafts, unsent] = await Promise.all([
        transaction.objectStore('drafts').getAll(),
        transaction.objectStore('unsent').getAll(),
      ]);
      return { drafts, unsent };
    });
    return found ?? { drafts: [], unsent: [] };
  }

  /** Stores a draft; removes it if its text is empty. */
  async keepDraft(draft: Draft): Promise<void> {
    await this.#attempt((database) =>
      draft.text === ''
        ? database.delete('drafts', [draft.account, draft.conversation])
        : database.put('drafts', draft).then(() => {}),
    );
  }

  async keepQueuedMessage(entry: QueuedMessage): Promise<void> {
    await this.#attempt((database) => database.put('unsent', entry));
  }

  async removeQueuedMessage(clientId: string): Promise<void> {
    await this.#attempt((database) => database.delete('unsent', clientId));
  }

  async close(): Promise<void> {
    (await this.#database)?.close();
  }

  /** Deletes the database, for a sign-out. */
  async deleteAll(): Promise<void> {
    await this.close();
    await deleteDB(this.#databaseName).catch(() => {});
  }

  async #attempt<Result>(work: (database: IDBPDatabase<Schema>) => Promise<Result>): Promise<Result | null> {
    const database = await this.#database;
    if (database === null) return null;
    return work(database).catch(() => null);
  }
}
