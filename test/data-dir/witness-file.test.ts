import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  BrokenWitnessFileError,
  readWitnessFile,
  writeWitnessFile,
  type WitnessRow,
} from '../../src/data-dir/witness-file.ts';

const WRITER = join(import.meta.dirname, '../support/witness-writing-node.ts');

let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'klatch-witness-'));
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

test('comes back as it was written, for this user alone', async () => {
  expect(await readWitnessFile(dataDir)).toBeNull();
  const heads: WitnessRow[] = [[1, 2, 3, 4, -1, 0]];
  const content = { storeId: 'abc', logEpoch: 7, heads };
  await writeWitnessFile(dataDir, content);
  expect(await readWitnessFile(dataDir)).toEqual(content);
  expect((await stat(join(dataDir, 'witness.json'))).mode & 0o777).toBe(0o600);
});

test.each([
  ['nothing', ''],
  ['half of it', '{"format":1,"database":"abc","log_ep'],
  ['another format', '{"format":2,"database":"abc","log_epoch":0,"heads":[]}'],
  ['rows that are none', '{"format":1,"database":"abc","log_epoch":0,"heads":[[1,2]]}'],
])('is broken when it holds %s', async (_, text) => {
  await writeFile(join(dataDir, 'witness.json'), text);
  await expect(readWitnessFile(dataDir)).rejects.toThrow(BrokenWitnessFileError);
});

test('is there whole after a kill at any moment, and not older than what was written', async () => {
  for (let round = 1; round <= 10; round += 1) {
    const child = spawn(process.execPath, [WRITER, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    const ended = once(child, 'close');
    while (output.split('\n').length <= round) await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await ended;
    const written = Number(output.trimEnd().split('\n').at(-1));
    const content = await readWitnessFile(dataDir);
    expect(content!.heads).toHaveLength(1_000);
    expect(content!.logEpoch).toBeGreaterThanOrEqual(written);
    expect(new Set(content!.heads.map(([, seq]) => seq))).toEqual(new Set([content!.logEpoch]));
  }
});
