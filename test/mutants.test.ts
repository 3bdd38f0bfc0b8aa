import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { listMutants } from '../scripts/mutants/list.ts';
import { plantedText } from '../scripts/mutants/tree.ts';

const ROOT = join(import.meta.dirname, '..');

describe('the mutants of `make mutants`', () => {
  test('each of them fits the sources as they are', async () => {
    const mutants = await listMutants();
    expect(mutants.length).toBeGreaterThan(0);
    for (const mutant of mutants) expect(() => plantedText(mutant)).not.toThrow();
  });

  test('each of them names tests that exist', async () => {
    for (const { name, tests } of await listMutants()) {
      const named = tests.filter((argument) => /^(?:test|packages)\//.test(argument));
      expect({ name, named }).not.toEqual({ name, named: [] });
      const missing = named.filter(
        (path) => !existsSync(join(ROOT, path)) && !existsSync(join(ROOT, `${path}.test.ts`)),
      );
      expect({ name, missing }).toEqual({ name, missing: [] });
    }
  });
});
