import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ResumePositionsFile } from '../../../client/node/resume-positions-file.ts';
import { eventually } from '../../support/eventually.ts';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'klatch-chat-state-'));
  path = join(folder, 'klatch/chat.json');
});

afterEach(() => rmSync(folder, { recursive: true }));

test('what was heard is there for the next client of the same sign-in, and for no other', () => {
  const state = new ResumePositionsFile(path, 'one');
  expect(state.loadRevs()).toBeNull();
  state.scheduleSave(() => new Map([[7, 43]]));
  state.flushPendingSave();
  expect(new ResumePositionsFile(path, 'one').loadRevs()).toEqual(new Map([[7, 43]]));
  expect(new ResumePositionsFile(path, 'two').loadRevs()).toBeNull();
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('with it the epochs of what was heard, where they are not 0', () => {
  const state = new ResumePositionsFile(path, 'one');
  expect(state.loadEpochs()).toEqual(new Map());
  const revs = new Map([
    [7, 43],
    [8, 1],
  ]);
  state.scheduleSave(
    () => revs,
    () =>
      new Map([
        [7, 29_711_520],
        [8, 0],
        [9, 29_711_520],
      ]),
  );
  state.flushPendingSave();
  const next = new ResumePositionsFile(path, 'one');
  expect([next.loadRevs(), next.loadEpochs()]).toEqual([revs, new Map([[7, 29_711_520]])]);
});

test('it is written by itself a moment after the first change, as it is then', async () => {
  const revs = new Map([[7, 1]]);
  const state = new ResumePositionsFile(path, 'one');
  state.scheduleSave(() => revs);
  revs.set(7, 2);
  state.scheduleSave(() => revs);
  expect(state.loadRevs()).toBeNull();
  await eventually(
    async () => state.loadRevs()?.get(7),
    (rev) => rev === 2,
  );
});

test('nothing is written where nothing was heard', () => {
  const state = new ResumePositionsFile(path, 'one');
  state.flushPendingSave();
  expect(state.loadRevs()).toBeNull();
});

test('it holds a bounded number of conversations, those that were heard last', () => {
  const state = new ResumePositionsFile(path, 'one');
  state.scheduleSave(() => new Map(Array.from({ length: 30_000 }, (_, id) => [id + 1, 1])));
  state.flushPendingSave();
  expect(state.loadRevs()?.size).toBe(20_000);
  expect(state.loadRevs()?.has(30_000)).toBe(true);
  expect(readFileSync(path).length).toBeLessThan(1024 * 1024);
});

test.each(['', 'null', '{"version":2}', '{"version":1,"sign_in":"one","revs":{"x":1}}'])(
  'a file that holds %s begins anew',
  (text) => {
    const state = new ResumePositionsFile(path, 'one');
    state.scheduleSave(() => new Map([[1, 1]]));
    state.flushPendingSave();
    writeFileSync(path, text);
    expect(state.loadRevs()).toBeNull();
  },
);

test('a file that cannot be written is told with the next change', async () => {
  writeFileSync(join(folder, 'klatch'), '');
  const state = new ResumePositionsFile(path, 'one');
  state.scheduleSave(() => new Map([[1, 1]]));
  await eventually(
    async () => {
      try {
        state.scheduleSave(() => new Map([[1, 2]]));
        return null;
      } catch (error) {
        return (error as NodeJS.ErrnoException).code;
      }
    },
    (code) => code === 'EEXIST' || code === 'ENOTDIR',
  );
});
