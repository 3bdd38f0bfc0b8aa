import { describe, expect, test } from '@jest/globals';
import { ConnectionError } from '../../client/core/chat-error.ts';
import { DraftAttachments, type StoredFile, type UploadOptions } from '../../web/core/uploads/attachments.ts';
import { eventually } from '../support/eventually.ts';

/** Makes attachments of a composer, with a server whose answers the test gives. */
function start({ maxBytes = 1_000, maxFiles = 10 } = {}) {
  const uploads: {
    name: string;
    options: UploadOptions;
    answer: (stored: StoredFile) => void;
    fail: (error: Error) => void;
  }[] = [];
  const removed: string[] = [];
  const attachments = new DraftAttachments({
    upload: ({ name }, options) =>
      new Promise((answer, fail) => {
        options.signal.addEventListener('abort', () => fail(options.signal.reason as Error));
        uploads.push({ name, options, answer, fail });
      }),
    remove: async (id) => void removed.push(id),
    readLimits: async () => ({ maxBytes, maxFiles }),
  });
  const started = () => uploads.map(({ name }) => name);
  return { attachments, uploads, removed, started };
}

const file = (name: string, size = 1) => new File(['x'.repeat(size)], name);
const stored = (name: string): StoredFile => ({ id: `id of ${name}`, name, size: 1 });

describe('attached files', () => {
  test('are uploaded three at once, and a message takes them in their order once all are stored', async () => {
    const { attachments, uploads, started } = start();
    await attachments.add(
      7,
      ['a', 'b', 'c', 'd'].map((name) => file(name)),
    );
    expect(started()).toEqual(['a', 'b', 'c']);
    uploads[1]!.answer(stored('b'));
    await eventually(started, ({ length }) => length === 4);
    expect(attachments.take(7)).toBeNull();
    for (const index of [3, 2, 0]) uploads[index]!.answer(stored(started()[index]!));
    await eventually(
      () => attachments.filesOf(7).filter((each) => each.stored !== null).length,
      (count) => count === 4,
    );
    expect(attachments.take(8)).toEqual([]);
    expect(attachments.take(7)).toEqual(['a', 'b', 'c', 'd'].map(stored));
    expect(attachments.filesOf(7)).toEqual([]);
  });

  test('tell how much of them was sent', async () => {
    const { attachments, uploads } = start();
    await attachments.add(7, [file('a', 10)]);
    uploads[0]!.options.onProgress(4);
    expect(attachments.filesOf(7)[0]!.sentBytes).toBe(4);
  });

  test('that are too large are not uploaded, and those beyond the number of a message are left out', async () => {
    const { attachments, started } = start({ maxBytes: 5, maxFiles: 2 });
    expect(await attachments.add(7, [file('large', 6), file('small'), file('left out')])).toBe(2);
    expect(attachments.filesOf(7).map(({ problem }) => problem)).toEqual([
      'The file is larger than 5 B, the most of this server',
      null,
    ]);
    expect(started()).toEqual(['small']);
    expect(await attachments.add(8, [file('elsewhere')])).toBeNull();
  });

  test('that were not stored say why, hold the message back, and are uploaded again', async () => {
    const { attachments, uploads, started } = start();
    await attachments.add(7, [file('a')]);
    uploads[0]!.fail(new ConnectionError('the connection broke'));
    const [failed] = await eventually(
      () => attachments.filesOf(7),
      ([each]) => each!.problem === 'the connection broke',
    );
    expect(attachments.take(7)).toBeNull();
    attachments.retryUpload(failed!.key);
    expect(started()).toEqual(['a', 'a']);
    uploads[1]!.answer(stored('a'));
    await eventually(
      () => attachments.filesOf(7),
      ([each]) => each!.stored !== null,
    );
    expect(attachments.take(7)).toEqual([stored('a')]);
  });

  test('continue their upload after a new connection, and only those that the connection interrupted', async () => {
    const { attachments, uploads, removed, started } = start();
    await attachments.add(7, [file('a', 10), file('b', 10)]);
    uploads[0]!.options.partial.url = 'http://chat.example/v1/files/uploads/id-of-a';
    uploads[0]!.options.onProgress(6);
    uploads[0]!.fail(new ConnectionError('the connection broke'));
    uploads[1]!.fail(new Error('The storage of this server is full'));
    await eventually(
      () => attachments.filesOf(7),
      (files) => files.every(({ problem }) => problem !== null),
    );
    attachments.retryInterrupted();
    expect(started()).toEqual(['a', 'b', 'a']);
    expect(uploads[2]!.options.partial).toBe(uploads[0]!.options.partial);
    expect(attachments.filesOf(7)[0]).toMatchObject({ sentBytes: 6, problem: null });
    uploads[2]!.fail(new ConnectionError('the connection broke'));
    const [failed] = await eventually(
      () => attachments.filesOf(7),
      ([each]) => each!.problem !== null,
    );
    attachments.remove(failed!.key);
    expect(removed).toEqual(['id-of-a']);
    attachments.retryInterrupted();
    expect(started()).toEqual(['a', 'b', 'a']);
  });

  test('are all removed before a sign-out, also those of which the server has only a part', async () => {
    const { attachments, uploads, removed } = start();
    await attachments.add(7, [file('a'), file('b')]);
    await attachments.add(8, [file('c')]);
    uploads[0]!.answer(stored('a'));
    uploads[1]!.options.partial.url = 'http://chat.example/v1/files/uploads/id-of-b';
    await eventually(
      () => attachments.filesOf(7),
      ([each]) => each!.stored !== null,
    );
    await attachments.removeAll();
    expect(removed).toEqual(['id of a', 'id-of-b']);
    expect(uploads.slice(1).map(({ options }) => options.signal.aborted)).toEqual([true, true]);
    expect([...attachments.filesOf(7), ...attachments.filesOf(8)]).toEqual([]);
  });

  test('that are removed end their upload, or leave the server', async () => {
    const { attachments, uploads, removed, started } = start();
    await attachments.add(
      7,
      ['a', 'b', 'c', 'd'].map((name) => file(name)),
    );
    const [first, second] = attachments.filesOf(7);
    attachments.remove(first!.key);
    expect(uploads[0]!.options.signal.aborted).toBe(true);
    await eventually(started, ({ length }) => length === 4);
    uploads[1]!.answer(stored('b'));
    await eventually(
      () => attachments.filesOf(7),
      ([each]) => each!.stored !== null,
    );
    attachments.remove(second!.key);
    expect(removed).toEqual(['id of b']);
    expect(attachments.filesOf(7).map(({ file: { name } }) => name)).toEqual(['c', 'd']);
  });
});
