import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from '@jest/globals';
import { parseSync } from '@swc/core';
import { FOLDERS, root, sourceFiles } from './source-graph.ts';

/** Names that strangers could not guess and that must not return, each with its replacement. */
const retired = JSON.parse(readFileSync(join(import.meta.dirname, 'retired-names.json'), 'utf8')) as Readonly<
  Record<string, string>
>;

/**
 * Every identifier of a file, declared or used, including properties and private names; not those in texts and
 * comments.
 */
function identifiersOf(text: string, tsx = false): Set<string> {
  const found = new Set<string>();
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const { type, value } = node as { type?: unknown; value?: unknown };
    if ((type === 'Identifier' || type === 'PrivateName') && typeof value === 'string') found.add(value);
    for (const child of Object.values(node)) visit(child);
  };
  visit(parseSync(text, { syntax: 'typescript', tsx, target: 'es2024' }));
  return found;
}

test('identifiers are found wherever they stand', () => {
  const text = "class Door { #ear = 'stretch'; open(word: number) { return this.#ear + word; } } // luggage";
  expect([...identifiersOf(text)].sort()).toEqual(['Door', 'ear', 'open', 'word']);
});

test('no retired name comes back', () => {
  const back = FOLDERS.flatMap((folder) => sourceFiles(join(root, folder))).flatMap((file) =>
    [...identifiersOf(readFileSync(file, 'utf8'), file.endsWith('.tsx'))]
      .filter((name) => Object.hasOwn(retired, name))
      .map((name) => `${relative(root, file)}: ${name}, which is ${retired[name]} now`),
  );
  expect(back).toEqual([]);
});

/** Retired error codes, operations, configuration keys, metrics and commands, each with its replacement. */
const retiredWire = JSON.parse(readFileSync(join(import.meta.dirname, 'retired-wire-names.json'), 'utf8')) as Readonly<
  Record<string, Readonly<Record<string, string>>>
>;

/**
 * Finds retired names in a text. Matches whole names only: not `limits.file` in `limits.file-size`, and not the call
 * `live.follow(` in a test.
 */
function findRetiredWireNames(text: string): readonly string[] {
  return Object.values(retiredWire)
    .flatMap((names) => Object.entries(names))
    .filter(([name]) => text.includes(name))
    .filter(([name]) => new RegExp(`(?<![\\w.-])${name.replaceAll('.', '\\.')}(?![\\w(-])`).test(text))
    .map(([name, successor]) => `${name}, which is ${successor} now`);
}

test('retired names of the interfaces are found as whole names', () => {
  expect(findRetiredWireNames('code: rate_exceeded, `limits.file`')).toHaveLength(2);
  expect(findRetiredWireNames('token_rate_exceeded limits.file-size live.follow(url)')).toEqual([]);
});

/** Code, documents and configuration, except the lists of retired names. */
const TEXT_FILES = [
  ...[...FOLDERS, 'docs', 'etc'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.(ts|conf|template|md|json|yml|1|5)$/.test(file))
      .map((file) => join(root, folder, file)),
  ),
  ...['README.md', 'ARCHITECTURE.md', 'DEVELOPING.md', 'GLOSSARY.md', 'CHANGELOG.md'].map((file) => join(root, file)),
].filter((file) => !file.startsWith(import.meta.dirname));

test('no retired name of an interface comes back', () => {
  const names = TEXT_FILES.flatMap((file) =>
    findRetiredWireNames(readFileSync(file, 'utf8')).map((name) => `${relative(root, file)}: ${name}`),
  );
  expect(names).toEqual([]);
});

test('no merge was left half done', () => {
  const marked = TEXT_FILES.filter((file) => /^(<{7}|>{7}) /m.test(readFileSync(file, 'utf8')));
  expect(marked.map((file) => relative(root, file))).toEqual([]);
});
