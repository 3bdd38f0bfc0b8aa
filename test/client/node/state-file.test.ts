import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { StateFile } from '../../../client/node/state-file.ts';
import { eventually } from '../../support/eventually.ts';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'klatch-chat-state-'));
  path = join(folder, 'klatch/chat.json');
});

afterEach(() => rmSync(folder, { recursive: true }));

test('what was heard is there for the next client of the same sign-in, and for no other', () => {
  const state = new StateFile(path, 'one');
  expect(state.load()).toBeNull();
  state.saveSoon(() => new Map([[7, 43]]));
  state.save();
  expect(new StateFile(path, 'one').load()).toEqual(new Map([[7, 43]]));
  expect(new StateFile(path, 'two').load()).toBeNull();
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('it is written by itself a moment after the first change, as it is then', async () => {
  const revs = new Map([[7, 1]]);
  const state = new StateFile(path, 'one');
  state.saveSoon(() => revs);
  revs.set(7, 2);
  state.saveSoon(() => revs);
  expect(state.load()).toBeNull();
  await eventually(
    async () => state.load()?.get(7),
    (rev) => rev === 2,
  );
});

test('nothing is written where nothing was heard', () => {
  const state = new StateFile(path, 'one');
  state.save();
  expect(state.load()).toBeNull();
});

test('it holds a bounded number of conversations, those that were heard last', () => {
  const state = new StateFile(path, 'one');
  state.saveSoon(() => new Map(Array.from({ length: 30_000 }, (_, id) => [id + 1, 1])));
  state.save();
  expect(state.load()?.size).toBe(20_000);
  expect(state.load()?.has(30_000)).toBe(true);
  expect(readFileSync(path).length).toBeLessThan(1024 * 1024);
});

test.each(['', 'null', '{"version":2}', '{"version":1,"sign_in":"one","revs":{"x":1}}'])(
  'a file that holds %s begins anew',
  (text) => {
    const state = new StateFile(path, 'one');
    state.saveSoon(() => new Map([[1, 1]]));
    state.save();
    writeFileSync(path, text);
    expect(state.load()).toBeNull();
  },
);

test('a file that cannot be written is told with the next change', async () => {
  writeFileSync(join(folder, 'klatch'), '');
  const state = new StateFile(path, 'one');
  state.saveSoon(() => new Map([[1, 1]]));
  await eventually(
    async () => {
      try {
        state.saveSoon(() => new Map([[1, 2]]));
        return null;
      } catch (error) {
        return (error as NodeJS.ErrnoException).code;
      }
    },
    (code) => code === 'EEXIST' || code === 'ENOTDIR',
  );
});
