import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from '@jest/globals';
import { parseSync } from '@swc/core';
import { FOLDERS, root, sourceFiles } from './source-graph.ts';

/** Names that strangers could not guess, each with the one that took its place. */
const retired = JSON.parse(readFileSync(join(import.meta.dirname, 'retired-names.json'), 'utf8')) as Readonly<
  Record<string, string>
>;

/** Every identifier of a file, declared or used: properties and private names too, not what is in texts and comments. */
function identifiersOf(text: string): Set<string> {
  const found = new Set<string>();
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const { type, value } = node as { type?: unknown; value?: unknown };
    if ((type === 'Identifier' || type === 'PrivateName') && typeof value === 'string') found.add(value);
    for (const child of Object.values(node)) visit(child);
  };
  visit(parseSync(text, { syntax: 'typescript', target: 'es2024' }));
  return found;
}

test('identifiers are found wherever they stand', () => {
  const text = "class Door { #ear = 'stretch'; open(word: number) { return this.#ear + word; } } // luggage";
  expect([...identifiersOf(text)].sort()).toEqual(['Door', 'ear', 'open', 'word']);
});

test('no retired name comes back', () => {
  const back = FOLDERS.flatMap((folder) => sourceFiles(join(root, folder))).flatMap((file) =>
    [...identifiersOf(readFileSync(file, 'utf8'))]
      .filter((name) => Object.hasOwn(retired, name))
      .map((name) => `${relative(root, file)}: ${name}, which is ${retired[name]} now`),
  );
  expect(back).toEqual([]);
});
