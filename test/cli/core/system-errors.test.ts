import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { exitCodes } from '../../../src/cli/core/exit-codes.ts';
import { explainFailure } from '../../../src/cli/core/explain-failure.ts';
import { SECRET, Workspace } from '../program.ts';

let workspace: Workspace;
beforeEach(async () => {
  workspace = await Workspace.create();
});
afterEach(async () => workspace.remove());

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

describe('an error of a system call', () => {
  test('is told apart from a defect, which has another status', () => {
    const defect = explainFailure(thrownBy(() => (undefined as unknown as string).length));
    expect(defect).toMatchObject({ exitCode: exitCodes.internal, text: expect.stringContaining('a defect of Klatch') });
    // An error with a code but without the name of a system call does not count as a system error.
    expect(explainFailure(Object.assign(new Error('odd'), { code: 'E_ODD' }))).toMatchObject({ exitCode: 70 });
  });

  test('ends the program so: a backup into a folder that is not there', async () => {
    await workspace.write([
      `secret = "${SECRET}"`,
      'http { port = 0, base-uri = "http://127.0.0.1" }',
      'data-dir = "data"',
      'services.postgresql.embedded = true',
    ]);
    await mkdir(workspace.dataDir);
    await chmod(workspace.folder, 0o711);
    const { code, stderr } = await workspace.run(['backup', join(workspace.folder, 'nowhere/klatch.tar.gz')]);
    expect({ code, stderr }).toEqual({
      code: 73,
      stderr: expect.stringMatching(/^klatch: The system refused: ENOENT: .*nowhere\/klatch\.tar\.gz\.partial'\n$/),
    });
  });
});
