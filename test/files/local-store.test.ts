import { randomBytes } from 'node:crypto';
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SYNC_INTERVAL_BYTES } from '../../src/files/append-to-file.ts';
import { DEFAULT_MAX_BUFFERED_BYTES } from '../../src/files/chunk-buffer.ts';
import { toStoreError } from '../../src/files/local-errors.ts';
import { LocalStore } from '../../src/files/local-store.ts';
import {
  NotInStoreError,
  STORE_PAGE_SIZE,
  StoreUnavailableError,
  StoreFullError,
  type UploadProgress,
} from '../../src/files/store.ts';
import { eventually } from '../support/eventually.ts';
import { newKey, NOTHING, storeFile } from './store-fixture.ts';

let parent: string;
let location: string;
let store: LocalStore;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'klatch-store-'));
  location = join(parent, 'files');
  store = new LocalStore(location);
});

afterEach(async () => {
  await store.stop();
  await rm(parent, { recursive: true, force: true });
});

describe('a local store', () => {
  test('keeps a file in a folder by the beginning of its key, for its user alone', async () => {
    const key = newKey();
    await storeFile(store, key, 'hello');
    const path = join(location, key.slice(0, 2), key);
    expect(await readFile(path, 'utf8')).toBe('hello');
    const modes = await Promise.all([path, join(location, key.slice(0, 2)), location].map((each) => stat(each)));
    expect(modes.map(({ mode }) => mode & 0o777)).toEqual([0o600, 0o700, 0o700]);
    expect(await readdir(join(location, 'uploads'))).toEqual([]);
    expect(await store.size(key)).toBe(5);
  });

  test('gives the bytes of a file, and of a range of it', async () => {
    const key = newKey();
    const bytes = randomBytes(2_000_000);
    await storeFile(store, key, bytes);
    expect((await buffer(await store.read(key, null))).equals(bytes)).toBe(true);
    const range = await buffer(await store.read(key, { start: 700_000, end: 1_400_000 }));
    expect(range.equals(bytes.subarray(700_000, 1_400_001))).toBe(true);
  });

  test('keeps a file without a byte', async () => {
    const key = newKey();
    await store.prepareStoreForUpload(key);
    await store.finish(key, NOTHING);
    await store.finish(key, NOTHING);
    expect(await store.size(key)).toBe(0);
    expect((await buffer(await store.read(key, null))).length).toBe(0);
  });

  test('takes many small chunks and chunks larger than what it gathers', async () => {
    const key = newKey();
    const chunks = [
      ...Array.from({ length: 5_000 }, (_, index) => Buffer.from(`${index},`)),
      randomBytes(DEFAULT_MAX_BUFFERED_BYTES * 2 + 1),
    ];
    await storeFile(store, key, Readable.from(chunks));
    expect((await readFile(join(location, key.slice(0, 2), key))).equals(Buffer.concat(chunks))).toBe(true);
  });

  test('is told how far an upload is safe while it goes on', async () => {
    const key = newKey();
    const source = new PassThrough();
    const told = Promise.withResolvers<UploadProgress>();
    await store.prepareStoreForUpload(key);
    const appending = store.append(key, NOTHING, { bytes: source, onProgress: told.resolve });
    const chunk = randomBytes(1024 * 1024);
    for (let sent = 0; sent <= SYNC_INTERVAL_BYTES; sent += chunk.length) {
      if (!source.write(chunk)) await new Promise((resolve) => source.once('drain', resolve));
    }
    const { receivedBytes: received } = await told.promise;
    expect(received).toBeGreaterThanOrEqual(SYNC_INTERVAL_BYTES);
    source.end();
    expect((await appending).receivedBytes).toBe(SYNC_INTERVAL_BYTES + chunk.length);
  });

  test('goes on from where the row says, over what is beyond it', async () => {
    const key = newKey();
    const state = await store.prepareStoreForUpload(key);
    await store.append(key, NOTHING, { bytes: Readable.from([Buffer.from('hello wrong')]), onProgress: () => {} });
    const progress = await store.append(
      key,
      { receivedBytes: 6, state },
      { bytes: Readable.from([Buffer.from('you')]), onProgress: () => {} },
    );
    expect(progress.receivedBytes).toBe(9);
    await store.finish(key, progress);
    expect((await buffer(await store.read(key, null))).toString()).toBe('hello you');
  });

  test('has no hole after two nodes wrote the same upload at once', async () => {
    const key = newKey();
    const content = randomBytes(200);
    const first = new PassThrough();
    const state = await store.prepareStoreForUpload(key);
    const appending = store.append(key, NOTHING, { bytes: first, onProgress: () => {} });
    first.write(content.subarray(0, 100));
    const path = join(location, 'uploads', key);
    await eventually(
      () =>
        stat(path).then(
          ({ size }) => size,
          () => 0,
        ),
      (size) => size === 100,
    );
    // The client has reconnected to another node, which continues at the position in the row.
    await new LocalStore(location).append(
      key,
      { receivedBytes: 0, state },
      { bytes: Readable.from([content.subarray(0, 10)]), onProgress: () => {} },
    );
    first.end(content.subarray(100));
    await store.finish(key, await appending);
    expect((await buffer(await store.read(key, null))).equals(content)).toBe(true);
  });

  test('cuts off at the end what the row does not count', async () => {
    const key = newKey();
    const state = await store.prepareStoreForUpload(key);
    await store.append(key, NOTHING, { bytes: Readable.from([Buffer.from('hello wrong')]), onProgress: () => {} });
    await store.finish(key, { receivedBytes: 5, state });
    expect((await buffer(await store.read(key, null))).toString()).toBe('hello');
  });

  test('keeps what arrived of an upload that is cut, says so and fails with the reason', async () => {
    const key = newKey();
    const source = new PassThrough();
    let safe = 0;
    await store.prepareStoreForUpload(key);
    const appending = store.append(key, NOTHING, {
      bytes: source,
      onProgress: ({ receivedBytes: received }) => (safe = received),
    });
    source.write('half a fi');
    setImmediate(() => source.destroy(new Error('the client went away')));
    await expect(appending).rejects.toThrow('the client went away');
    expect(safe).toBe(9);
    expect((await lstat(join(location, 'uploads', key))).size).toBe(9);
  });

  test('hears of a source that has failed before it was asked', async () => {
    const source = new PassThrough();
    source.on('error', () => {});
    source.destroy(new Error('gone before'));
    await new Promise((resolve) => source.once('close', resolve));
    const key = newKey();
    await store.prepareStoreForUpload(key);
    await expect(store.append(key, NOTHING, { bytes: source, onProgress: () => {} })).rejects.toThrow('gone before');
  });

  test('refuses to go on with an upload that has lost what was safe', async () => {
    const key = newKey();
    const state = await store.prepareStoreForUpload(key);
    const further = { bytes: Readable.from([Buffer.from('x')]), onProgress: () => {} };
    await expect(store.append(key, { receivedBytes: 3, state }, further)).rejects.toBeInstanceOf(NotInStoreError);
    await writeFile(join(location, 'uploads', key), 'ab');
    await expect(store.append(key, { receivedBytes: 3, state }, further)).rejects.toBeInstanceOf(NotInStoreError);
    await expect(store.finish(key, { receivedBytes: 3, state })).rejects.toBeInstanceOf(NotInStoreError);
  });

  test('ends an upload twice as well as once, and gives one up in any state', async () => {
    const [ended, begun, never] = [newKey(), newKey(), newKey()];
    const progress = await storeFile(store, ended, 'whole');
    await store.finish(ended, progress);
    expect(await store.size(ended)).toBe(5);
    await store.prepareStoreForUpload(begun);
    await store.append(begun, NOTHING, { bytes: Readable.from([Buffer.from('x')]), onProgress: () => {} });
    for (const key of [ended, begun, never, begun]) await store.removeUploadAndFile(key, null);
    expect(await store.list(null)).toEqual({ files: [], next: null });
    expect(await store.listUploads(null)).toEqual({ files: [], next: null });
  });

  test('says of a file that is not there that it is not', async () => {
    const key = newKey();
    await store.checkUsable();
    await expect(store.read(key, null)).rejects.toBeInstanceOf(NotInStoreError);
    expect(await store.size(key)).toBeNull();
    await store.remove(key);
  });

  test('lists everything in pages by key, and passes over what is not ours', async () => {
    await store.checkUsable();
    const keys = Array.from({ length: STORE_PAGE_SIZE + 300 }, newKey).sort();
    for (const key of keys) await mkdir(join(location, key.slice(0, 2)), { recursive: true });
    await Promise.all(keys.map((key) => writeFile(join(location, key.slice(0, 2), key), 'x')));
    await writeFile(join(location, 'lost+found.txt'), 'x');
    await mkdir(join(location, 'lost+found'));
    await writeFile(join(location, keys[0]!.slice(0, 2), 'notes.txt'), 'x');
    const first = await store.list(null);
    const second = await store.list(first.next);
    expect(first.files.length).toBe(STORE_PAGE_SIZE);
    expect([...first.files, ...second.files].map(({ key }) => key)).toEqual(keys);
    expect(second.next).toBeNull();
  });
});

describe('a local store never', () => {
  test('makes a path of what is no key', async () => {
    for (const key of ['', '..', '../../../../etc/passwd', `${newKey()}/x`, `/${newKey().slice(1)}`, `${newKey()}\n`]) {
      await expect(store.read(key, null)).rejects.toBeInstanceOf(TypeError);
      await expect(store.remove(key)).rejects.toBeInstanceOf(TypeError);
      await expect(store.prepareStoreForUpload(key)).rejects.toBeInstanceOf(TypeError);
      await expect(store.finish(key, NOTHING)).rejects.toBeInstanceOf(TypeError);
    }
  });

  test('follows a symbolic link', async () => {
    await store.checkUsable();
    const outside = join(parent, 'outside');
    await writeFile(outside, 'not yours');
    const [read, written, folder] = [newKey(), newKey(), newKey()];
    await mkdir(join(location, read.slice(0, 2)));
    await symlink(outside, join(location, read.slice(0, 2), read));
    await symlink(outside, join(location, 'uploads', written));
    const other = join(parent, 'other');
    await mkdir(other);
    await writeFile(join(other, folder), 'nor this');
    await symlink(other, join(location, folder.slice(0, 2)));
    await expect(store.read(read, null)).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(await store.size(read)).toBeNull();
    const bytes = Readable.from([Buffer.from('x')]);
    await expect(store.append(written, NOTHING, { bytes, onProgress: () => {} })).rejects.toBeInstanceOf(
      StoreUnavailableError,
    );
    await expect(store.read(folder, null)).rejects.toBeInstanceOf(StoreUnavailableError);
    await expect(store.remove(folder)).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(await readFile(outside, 'utf8')).toBe('not yours');
    expect(await readdir(other)).toEqual([folder]);
  });

  test('makes the folder above its own, or takes a missing one for an empty one', async () => {
    const astray = new LocalStore(join(parent, 'not', 'mounted'));
    await expect(astray.checkUsable()).rejects.toThrow(/is its file system mounted\? \(ENOENT\)/);
    for (const call of [
      () => astray.prepareStoreForUpload(newKey()),
      () => astray.read(newKey(), null),
      () => astray.size(newKey()),
      () => astray.remove(newKey()),
      () => astray.list(null),
    ]) {
      await expect(call()).rejects.toBeInstanceOf(StoreUnavailableError);
    }
    expect(await readdir(parent)).toEqual([]);
  });

  test('works with a file in the place of its folder', async () => {
    await writeFile(location, '');
    await expect(store.checkUsable()).rejects.toBeInstanceOf(StoreUnavailableError);
  });

  test('leaves a source that it does not take destroyed, or unheard', async () => {
    const source = new PassThrough();
    const failing = new LocalStore(join(parent, 'not', 'mounted'));
    await expect(failing.append(newKey(), NOTHING, { bytes: source, onProgress: () => {} })).rejects.toThrow();
    expect(source.destroyed).toBe(false);
    source.destroy();
  });
});

describe('what a file system says', () => {
  const failure = (code: string): Error =>
    Object.assign(new Error(`${code}: /secret/path`), { code, syscall: 'write' });

  test('is told apart by whether there is no room, or no store', () => {
    for (const code of ['ENOSPC', 'EDQUOT'])
      expect(toStoreError(failure(code), 'the folder /f')).toBeInstanceOf(StoreFullError);
    for (const code of ['EACCES', 'EIO', 'EROFS', 'ESTALE', 'EBUSY']) {
      const told = toStoreError(failure(code), 'the folder /f') as Error;
      expect(told).toBeInstanceOf(StoreUnavailableError);
      expect(told.message).toContain(`(${code})`);
      expect(told.message).not.toContain('/secret/path');
    }
  });

  test('leaves every other error as it is', () => {
    const mistake = new TypeError('a defect');
    expect(toStoreError(mistake, 'the folder /f')).toBe(mistake);
  });
});
