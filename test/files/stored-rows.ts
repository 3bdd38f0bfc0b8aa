import type { AccountId } from '../../src/model/ids.ts';
import { finishUpload, insertUpload, recordUploadProgress } from '../../src/storage/files/files.ts';
import type { Pool } from '../../src/storage/db/pool.ts';
import type { FileKey, FileStore } from '../../src/files/store.ts';
import { Readable } from 'node:stream';
import { newKey, storeFile } from './store-fixture.ts';

const LIMITS = { maxAccountBytes: 1e12, maxTotalBytes: 1e12, maxUnfinishedUploads: 1_000 };

/** Creates files with their rows, as the server leaves them. */
export class StoredRows {
  readonly #pool: Pool;
  readonly #store: FileStore;
  readonly #owner: AccountId;

  constructor(pool: Pool, store: FileStore, owner: AccountId) {
    this.#pool = pool;
    this.#store = store;
    this.#owner = owner;
  }

  /** Creates the row of an upload that was announced. */
  async announced(bytes: number): Promise<FileKey> {
    const id = newKey();
    await this.#pool.transaction((tx) =>
      insertUpload(tx, { id, ownerId: this.#owner, name: 'a.txt', announcedBytes: bytes }, LIMITS),
    );
    return id;
  }

  /** Creates an upload of which a part has arrived. */
  async uploading(content: string): Promise<FileKey> {
    const id = await this.announced(1_000);
    const state = await this.#store.prepareStoreForUpload(id);
    const bytes = Readable.from([Buffer.from(content)]);
    const progress = await this.#store.append(id, { receivedBytes: 0, state }, { bytes, onProgress: () => {} });
    const { receivedBytes: received, state: upload } = progress;
    await this.#pool.run((sql) =>
      recordUploadProgress(sql, id, { minRowReceived: 0, maxRowReceived: received, received, upload }),
    );
    return id;
  }

  /** Creates a complete file: its row, and its content in the store. */
  async stored(content: string): Promise<FileKey> {
    const id = await this.announced(content.length);
    await storeFile(this.#store, id, content);
    await this.#pool.transaction((tx) => finishUpload(tx, id, { size: content.length, type: 'text/plain' }));
    return id;
  }
}
